"""What stands before every route: who calls, in which role, how often, with how large a body; and what is counted."""

import json
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from maxrr.errors import DataError, NotAllowed, NoToken, TooLarge, TooMany
from maxrr.files.strict_json import pairs
from maxrr.service.problems import note, problem
from maxrr.service.tokens import Actor

log = logging.getLogger("maxrr.access")

WINDOW = 2.0  # seconds whose calls are counted together
UNKNOWN = 1 << 14  # bytes that who has shown no token may send
LARGER = "the body has more than {:,} bytes"
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}  # that are counted by their names
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0)  # seconds, for histograms
SAFE = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store",
}  # fmt: skip
"""Headers of every answer that has no others by these names."""


POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)  # of pages


class Limits:
    """How many calls each actor makes: so many a second, counted over two seconds. All are counted on one thread."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._calls, self._until = Counter[Actor](), 0.0

    def take(self, actor: Actor) -> None:
        """Count a call.

        Raises
        ------
        maxrr.errors.TooMany
            They are too many.
        """
        if time.monotonic() > self._until:
            self._calls, self._until = Counter(), time.monotonic() + WINDOW
        self._calls[actor] += 1
        if self._calls[actor] > self.rate * WINDOW:
            raise TooMany("too many calls: wait a second")


async def caller(request: Request) -> Actor:
    """Return who calls, by the token in the header."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token:
        raise NoToken("this needs a token: Authorization: Bearer …")
    service = request.app.state.service
    found: Actor = service.tokens.remembered(token) or await run_in_threadpool(service.tokens.find, token)
    service.limits.take(found)
    return found


class needs(HTTPBearer):  # noqa: N801 (reads as a verb where a route depends on it)
    """What a route depends on: a caller in one of these roles."""

    def __init__(self, *roles: str) -> None:
        super().__init__(scheme_name="token")  # as the description of the interface has it
        self.roles = roles

    async def __call__(self, request: Request) -> Actor:  # type: ignore[override]
        actor: Actor = request.scope.get("caller") or await caller(request)
        request.scope["caller"] = actor
        if actor.role not in self.roles:
            raise NotAllowed(f"the role {actor.role} does not allow this: it takes {' or '.join(self.roles)}")
        return actor


class Guarded(APIRoute):
    """A route that finds out who calls before it reads what is sent."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the handler of the framework, which reads the body first."""
        handle = super().get_route_handler()
        checks = [each.call for each in self.dependant.dependencies if isinstance(each.call, needs)]

        async def handled(call: Request) -> Response:
            for check in checks:
                await check(call)
            if body := await call.body():
                try:
                    call._json = json.loads(body, object_pairs_hook=pairs)  # where the framework looks for it
                except (ValueError, RecursionError):
                    raise DataError("the body is no JSON, or an object in it has one name twice") from None
            return await handle(call)

        return handled


def is_page(scope: Scope) -> bool:
    """Say whether a call is of a page: those are not in the description of the interface."""
    return not getattr(scope.get("route"), "include_in_schema", True)


class Watch:
    """The outermost layer: bounds the body, adds headers, counts and logs each call by its route, and hides faults."""

    def __init__(self, app: ASGIApp, body: int) -> None:
        self.app = app
        self.body = body
        self.calls = Counter[tuple[str, str, int]]()
        self.times = Counter[tuple[str, float]]()
        self.seconds = defaultdict[str, float](float)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope["app_watch"] = self
        begun, status, taken, sent = time.perf_counter(), 0, 0, dict(scope["headers"])
        length = sent.get(b"content-length", b"0")
        is_large = not length.isdigit() or int(length) > self.body
        is_rest = is_large or b"transfer-encoding" in sent

        async def bounded() -> Message:
            nonlocal taken, is_rest
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HTTPException(400, "the call has broken off")
            taken += len(message.get("body", b""))
            if taken > (most := self.body if "caller" in scope else min(UNKNOWN, self.body)):
                raise HTTPException(413, LARGER.format(most))  # the framework hides errors of other kinds here
            is_rest = is_rest and message.get("more_body", False)
            return message

        async def safe(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                if is_page(scope):
                    headers.setdefault("content-security-policy", POLICY)
                for name, said in SAFE.items():
                    headers.setdefault(name, said)
                if scope["scheme"] == "https":
                    headers["strict-transport-security"] = "max-age=31536000"
                if is_rest:  # which nobody reads
                    headers["connection"] = "close"
            await send(message)

        try:
            app = problem(413, TooLarge.code, LARGER.format(self.body)) if is_large else self.app
            await app(scope, bounded, safe)
        except Exception as error:
            note(error)
            if status == 0:
                await problem(500, "fault", "a fault of the service: its log says where")(scope, receive, safe)
        finally:
            route, who = getattr(scope.get("route"), "path", "none"), getattr(scope.get("caller"), "name", "-")
            seconds = time.perf_counter() - begun
            self.calls[scope["method"] if scope["method"] in METHODS else "OTHER", route, status] += 1
            self.seconds[route] += seconds
            self.times[route, next((bound for bound in BOUNDS if seconds <= bound), float("inf"))] += 1
            log.info("%s %s %d %.1f ms %s", scope["method"], route, status, 1e3 * seconds, who)
