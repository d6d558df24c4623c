"""The HTTP interface: what it is made of, and how it starts."""

import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import select

from maxrr.service import pages, problems, routes, tables
from maxrr.service.current import Current
from maxrr.service.database import Database
from maxrr.service.guard import Guard, Watch
from maxrr.service.jobs import Jobs
from maxrr.service.plugs import plugged
from maxrr.service.requests import Requests
from maxrr.service.sealing import RequestKeys
from maxrr.service.settings import Settings
from maxrr.service.tokens import Tokens
from maxrr.version import __version__
from maxrr.workspace import OlderCopyWarning


@dataclass(frozen=True)
class Service:
    """What a service consists of, beside its routes."""

    settings: Settings
    requests: Requests
    tokens: Tokens
    current: Current
    jobs: Jobs

    @classmethod
    def of(cls, settings: Settings) -> "Service":
        """Open the database and the file of keys, or make them."""
        keys = RequestKeys(settings.folder / "request-keys.bin")
        database = Database(settings.url, may_be_new=not keys.are_some)
        return cls(settings, Requests(database, keys), Tokens(database), Current(settings), Jobs(settings, database))

    def workers(self) -> dict[str, tuple[str, str, float]]:
        """Return what each worker does, what stops it, and when it was last heard of."""
        table = tables.workers.c
        with self.requests.database.read() as connection:
            rows = connection.execute(select(table.name, table.doing, table.code, table.seen))
            return {row.name: (row.doing, row.code, row.seen) for row in rows}

    def close(self) -> None:
        """Close what was opened."""
        self.requests.database.close()
        self.requests.keys.close()


def app(settings: Settings) -> FastAPI:
    """Make the application that `maxrr serve` serves. It carries out nothing: that is a worker's part.

    Parameters
    ----------
    settings : Settings
        What the service is told.

    Returns
    -------
    fastapi.FastAPI
        An ASGI application. It reads the workspace from its start to its end.
    """
    warnings.simplefilter("ignore", OlderCopyWarning)  # the worker is stopped by it, and says so
    service = Service.of(settings)
    routers, callbacks = plugged(settings, service.requests)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        service.current.start()
        callbacks.start()
        yield
        await run_in_threadpool(callbacks.stop)
        await run_in_threadpool(service.current.stop)
        service.close()

    made = FastAPI(
        title="MaxRR", version=__version__, lifespan=running, docs_url=None, redoc_url=None, openapi_url=None,
        redirect_slashes=False, responses={"4XX": problems.PROBLEM, "5XX": problems.PROBLEM},
        description="Requests of people to a classifier that forgets, and predictions from it.",
    )  # fmt: skip
    made.state.service, made.state.guard = service, Guard(service.tokens, settings.rate)
    made.state.callbacks = callbacks
    for each in (routes.router, pages.router, *routers):
        made.include_router(each)
    for kind in (*problems.ANSWERED, OSError):
        made.add_exception_handler(kind, problems.answer_with)
    made.add_middleware(Watch, body=settings.body)
    return made
