"""Fides: what its connector calls to have a person forgotten, and how Fides is told that it was done.

Fides knows one thing to be told of a task that it waits for: that it is complete. It is told so for exact answers and
where nothing is here, and never for others: such a task waits in Fides for somebody who ends it there.
"""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Header
from fastapi import Request as Call

from maxrr.errors import DataError
from maxrr.service import protocols
from maxrr.service.callbacks import Message, Step, Teller
from maxrr.service.guard import Guarded
from maxrr.service.planning import take
from maxrr.service.requests import Callback, Requests, today
from maxrr.service.routes import Asker, Identity
from maxrr.service.sealing import unseal
from maxrr.service.states import DONE

REPLY_TO = "/api/v1/request-task/callback"
Token = Annotated[str, Header(min_length=1, max_length=4000, pattern="^[!-~]+$")]


def router(said: protocols.Fides) -> APIRouter:
    """Return the routes."""
    made = APIRouter(prefix="/fides", route_class=Guarded)

    @made.get("/connection")
    def connection(_: Asker) -> dict[str, str]:
        """Say that the connector reaches this service, with a token that it takes."""
        return {"status": "connected"}

    @made.post("/erasures", status_code=202)
    def erase(
        call: Call, person: Identity, actor: Asker, reply_to: Annotated[str, Header(max_length=200)],
        reply_to_token: Token,
    ) -> dict[str, Any]:  # fmt: skip
        """Take an erasure of a task that waits for the callback. The same token gives the same request again."""
        if reply_to != REPLY_TO:
            raise DataError(f"reply-to is not {REPLY_TO}, which is where Fides takes callbacks")
        request = take(
            call.app.state.service, [(person.type, person.value)], actor.name, f"fides:{reply_to_token}",
            [Callback("fides", said.host + REPLY_TO, reply_to_token)], asked_on=today(),
        )  # fmt: skip
        return {"id": request.id, "state": request.state}

    return made


def teller(requests: Requests) -> Teller:
    """Return what tells Fides of a step: the last one alone, and only where nothing of the person is left."""

    def message(step: Step) -> Message | None:
        if step.state != DONE or step.is_approximate:
            return None
        assert step.sealed is not None
        token = unseal(requests.keys.find(step.request.serial), step.request.id, step.sealed).decode()
        masked = step.request.plan["requested"] if step.request.plan and step.request.outcome == "done" else 0
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        return Message(headers, json.dumps({"rows_masked": masked}).encode())

    return message
