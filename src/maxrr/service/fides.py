"""Fides: what its connector calls to have a person forgotten, and how Fides is told that it was done.

Fides knows one thing to be told of a task that it waits for: that it is complete. It is told so for exact answers and
where nothing is here, and never for others: such a task waits in Fides for somebody who ends it there.
"""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Header
from fastapi import Request as Call

from maxrr.errors import DataError
from maxrr.service.callbacks import Message, Step
from maxrr.service.guard import Guarded
from maxrr.service.planning import take
from maxrr.service.requests import Callback, today
from maxrr.service.routes import Asker, Identity
from maxrr.service.sealing import RequestKeys, unseal
from maxrr.service.states import DONE

REPLY_TO = "/api/v1/request-task/callback"
Token = Annotated[str, Header(min_length=1, max_length=4000, pattern="^[!-~]+$")]


router = APIRouter(prefix="/fides", route_class=Guarded)


@router.get("/connection")
def connection(_: Asker) -> dict[str, str]:
    """Say that the connector reaches this service, with a token that it takes."""
    return {"status": "connected"}


@router.post("/erasures", status_code=202)
def erase(
    call: Call, person: Identity, actor: Asker, reply_to: Annotated[str, Header(max_length=200)], reply_to_token: Token
) -> dict[str, Any]:  # fmt: skip
    """Take an erasure of a task that waits for the callback. The same token gives the same request again."""
    service = call.app.state.service
    if reply_to != REPLY_TO:
        raise DataError(f"reply-to is not {REPLY_TO}, which is where Fides takes callbacks")
    request = take(
        service, [(person.type, person.value)], actor.name, f"fides:{reply_to_token}",
        [Callback("fides", service.settings.protocols.fides.host + REPLY_TO, reply_to_token)], asked_on=today(),
    )  # fmt: skip
    return {"id": request.id, "state": request.state}


def message(keys: RequestKeys, step: Step) -> Message | None:
    """Return what Fides is told of a step: of the last one alone, and only where nothing of the person is left."""
    if step.state != DONE or step.is_approximate:
        return None
    assert step.sealed is not None
    token = unseal(keys.find(step.request.serial), step.request.id, step.sealed).decode()
    masked = step.request.plan["requested"] if step.request.plan and step.request.outcome == "done" else 0
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return Message(headers, json.dumps({"rows_masked": masked}).encode())
