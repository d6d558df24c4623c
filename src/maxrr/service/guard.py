"""What stands before every route: who calls, in which role, how often, with how large a body; and what is counted."""

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from threading import Lock
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from maxrr.errors import NotAllowed, NoToken, TooLarge, TooMany
from maxrr.service.problems import note, problem
from maxrr.service.tokens import Actor, Tokens

log = logging.getLogger("maxrr.access")

SAVED = 2.0  # seconds of its rate that a caller may save up
WRONG = 5.0  # calls a second without a valid token that an address may make
MOST = 10_000  # callers that are remembered
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}  # that are counted by their names
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0)  # seconds, for histograms
SAFE = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store",
}  # fmt: skip
"""Headers of every answer that has no others by these names."""


class Limits:
    """How many calls each caller has left: so many a second, saved up for two seconds at most."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._left = dict[str, tuple[float, float]]()
        self._lock = Lock()

    def take(self, who: str) -> None:
        """Count a call.

        Raises
        ------
        maxrr.errors.TooMany
            None is left.
        """
        now = time.monotonic()
        with self._lock:
            left, then = self._left.get(who, (self.rate * SAVED, now))
            left = min(self.rate * SAVED, left + (now - then) * self.rate)
            if len(self._left) > MOST:
                self._left.clear()
            self._left[who] = max(0.0, left - 1.0), now
        if left < 1.0:
            raise TooMany("too many calls: wait a second")


class Guard:
    """Finds out who calls.

    Parameters
    ----------
    tokens : Tokens
        The tokens that are taken.
    rate : float
        How many calls a second each may make.
    """

    def __init__(self, tokens: Tokens, rate: float) -> None:
        self.tokens = tokens
        self.limits = Limits(rate)
        self.wrong = Limits(WRONG)

    async def actor(self, request: Request) -> Actor:
        """Return who calls, by the token in the header."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token:
            raise NoToken("this needs a token: Authorization: Bearer …")
        found = self.tokens.remembered(token)
        if found is None:
            try:
                found = await run_in_threadpool(self.tokens.find, token)
            except NoToken:
                self.wrong.take(request.client.host if request.client else "")
                raise
        self.limits.take(f"{found.role} {found.name}")
        return found


class needs:  # noqa: N801 (reads as a verb where a route depends on it)
    """What a route depends on: a caller in one of these roles."""

    def __init__(self, *roles: str) -> None:
        self.roles = roles

    async def __call__(self, request: Request) -> Actor:
        actor: Actor = request.scope.get("caller") or await request.app.state.guard.actor(request)
        request.scope["actor"] = actor.name
        if actor.role not in self.roles:
            raise NotAllowed(f"the role {actor.role} does not allow this: it takes {' or '.join(self.roles)}")
        request.scope["caller"] = actor
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
            return await handle(call)

        return handled


class Watch:
    """The outermost layer: bounds the body, adds headers, counts and logs each call by its route, and hides faults."""

    def __init__(self, app: ASGIApp, body: int) -> None:
        self.app = app
        self.body = body
        self.larger = f"the body has more than {body:,} bytes"
        self.calls = Counter[tuple[str, str, int]]()
        self.times = Counter[tuple[str, float]]()
        self.seconds = defaultdict[str, float](float)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope["app_watch"] = self
        begun, status, taken = time.perf_counter(), 0, 0

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HTTPException(400, "the call has broken off")
            taken += len(message.get("body", b""))
            if taken > self.body:
                raise HTTPException(413, self.larger)  # the framework hides errors of other kinds here
            return message

        async def safe(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, said in SAFE.items():
                    headers.setdefault(name, said)
            await send(message)

        try:
            said = dict(scope["headers"]).get(b"content-length", b"0")
            if not said.isdigit() or int(said) > self.body:
                await problem(413, TooLarge.code, self.larger, {"Connection": "close"})(scope, receive, safe)
            else:
                await self.app(scope, bounded, safe)
        except Exception as error:
            note(error)
            if status == 0:
                await problem(500, "fault", "a fault of the service: its log says where")(scope, receive, safe)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            seconds = time.perf_counter() - begun
            self.count(scope["method"], route, status, seconds)
            log.info("%s %s %d %.1f ms %s", scope["method"], route, status, 1e3 * seconds, scope.get("actor", "-"))

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a call."""
        self.calls[method if method in METHODS else "OTHER", route, status] += 1
        self.seconds[route] += seconds
        self.times[route, next((bound for bound in BOUNDS if seconds <= bound), float("inf"))] += 1
