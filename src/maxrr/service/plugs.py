"""What plugs into a service: the routes of the protocols that its operator chose, and what tells others of requests."""

import base64
from collections.abc import Sequence
from pathlib import Path

from fastapi import APIRouter

from maxrr.service import fides, webhooks
from maxrr.service.callbacks import Callbacks, Teller
from maxrr.service.opendsr import OpenDSR
from maxrr.service.protocols import Protocols
from maxrr.service.requests import Requests
from maxrr.service.settings import Settings

SECRET = "whsec_"


def plugged(settings: Settings, requests: Requests) -> tuple[list[APIRouter], Callbacks]:
    """Return the routes, and what is to be started and stopped with the server.

    Raises
    ------
    ValueError
        A file that the operator named is not as it has to be, or nothing maps identities to subjects.
    """
    said = settings.protocols or Protocols()
    if (said.opendsr or said.fides) and settings.resolver is None:
        raise ValueError("OpenDSR and Fides name people by identities: a resolver is to map them to subjects")
    routers, tellers, hosts = list[APIRouter](), dict[str, Teller](), dict[str, Sequence[str]]()
    if said.opendsr is not None:
        opendsr = OpenDSR(said.opendsr)
        routers.append(opendsr.router())
        tellers["opendsr"] = opendsr.message
        hosts["opendsr"] = [host for some in said.opendsr.callbacks.values() for host in some]
    if said.fides is not None:
        routers.append(fides.router(said.fides))
        tellers["fides"], hosts["fides"] = fides.teller(requests), [said.fides.host]
    secrets = {each.url: secret_in(each.secret) for each in said.webhooks}
    tellers["webhook"] = lambda step: webhooks.message(step, secrets)
    hosts["webhook"] = ["/".join(url.split("/")[:3]) for url in secrets]
    callbacks = Callbacks(requests, tellers, hosts)
    callbacks.follow(list(secrets))
    return routers, callbacks


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
