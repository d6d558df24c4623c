"""Webhooks: each step of each request as an event of CloudEvents 1.0, signed as Standard Webhooks has it."""

import base64
import hmac
import json
import time
from collections.abc import Mapping
from pathlib import Path

from maxrr.service.callbacks import Message, Step
from maxrr.service.states import ENDED

SECRET = "whsec_"
SOURCE = "urn:maxrr:requests"
APPROXIMATELY = "done-approximately"  # no receiver that waits for "done" takes it for that
ALWAYS, AT_THE_END = ("kind", "regulation", "due"), ("outcome", "code", "guarantee", "number")


def message(secrets: Mapping[str, bytes], step: Step) -> Message:
    """Return what is sent of a step: numbers, states and guarantees, and nothing that names a person."""
    names = ALWAYS + (AT_THE_END if step.state in ENDED else ())
    said = {"receipt" if name == "number" else name: getattr(step.request, name) for name in names}
    id_ = f"{step.number}-{''.join(filter(str.isdigit, step.time))}"  # the number alone may come again after a restore
    body = {
        "specversion": "1.0", "id": id_, "source": SOURCE, "subject": step.request.id, "time": step.time,
        "type": f"maxrr.request.{APPROXIMATELY if step.is_approximate else step.state}",
        "datacontenttype": "application/json", "data": {"state": step.state, **said},
    }  # fmt: skip
    content = json.dumps(body).encode()
    headers = {"Content-Type": "application/cloudevents+json", **signed(id_, content, secrets[step.url])}
    return Message(headers, content)


def signed(id_: str, body: bytes, secret: bytes, now: float | None = None) -> dict[str, str]:
    """Return the headers that say who sent a message and when: an HMAC of its id, the second and the body."""
    second = str(int(now or time.time()))
    signature = base64.b64encode(hmac.digest(secret, f"{id_}.{second}.".encode() + body, "sha256")).decode()
    return {"webhook-id": id_, "webhook-timestamp": second, "webhook-signature": f"v1,{signature}"}


def secret_in(path: Path) -> bytes:
    """Return the secret of a webhook, which lies in a file as Standard Webhooks writes it."""
    text = path.read_text().strip()
    try:
        secret = base64.b64decode(text.removeprefix(SECRET), validate=True)
    except ValueError:
        secret = b""
    if not text.startswith(SECRET) or not 24 <= len(secret) <= 64:
        raise ValueError(f"{path}: a secret is {SECRET} and 24 to 64 random bytes in Base64")
    return secret
