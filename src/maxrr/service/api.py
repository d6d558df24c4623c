"""The HTTP interface: what it is made of, and how it starts."""

import time
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from threading import Event, Thread
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import func, select

from maxrr.errors import DatabaseGone
from maxrr.service import fides, pages, problems, routes, tables, webhooks
from maxrr.service.callbacks import Callbacks, Teller
from maxrr.service.current import Current
from maxrr.service.database import Database
from maxrr.service.guard import Limits, Watch
from maxrr.service.jobs import Jobs
from maxrr.service.opendsr import OpenDSR
from maxrr.service.protocols import Protocols
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
    limits: Limits

    @classmethod
    def of(cls, settings: Settings) -> "Service":
        """Open the database and the file of keys, or make them."""
        keys = RequestKeys(settings.folder / "request-keys.bin")
        database = Database(settings.url, may_be_new=not keys.are_some)
        if not keys.are_some and database.rows(select(tables.requests.c.serial).limit(1)):
            database.close()
            raise DatabaseGone("the database has requests, and their keys are gone: restore request-keys.bin")
        parts = Requests(database, keys), Tokens(database), Current(settings), Jobs(settings, database)
        return cls(settings, *parts, Limits(settings.rate))

    def workers(self) -> Sequence[Any]:
        """Return of each worker its `name`, what it is `doing`, the `code` of what stops it, and how many seconds `ago`
        it was heard of.
        """
        table, ago = tables.workers.c, func.abs(time.time() - tables.workers.c.seen).label("ago")
        return self.requests.database.rows(select(table.name, table.doing, table.code, ago).order_by(table.name))

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
        stopping = Event()
        threads = [Thread(target=do, args=[stopping], daemon=True) for do in (service.current.follow, callbacks.run)]
        for each in threads:
            each.start()
        yield
        stopping.set()
        for each in threads:
            await run_in_threadpool(each.join)
        service.close()

    made = FastAPI(
        title="MaxRR", version=__version__, lifespan=running, docs_url=None, redoc_url=None, openapi_url=None,
        redirect_slashes=False, responses={"4XX": problems.PROBLEM, "5XX": problems.PROBLEM},
        description="Requests of people to a classifier that forgets, and predictions from it.",
    )  # fmt: skip
    made.state.service, made.state.callbacks = service, callbacks
    for each in (routes.router, pages.router, *routers):
        made.include_router(each)
    for kind in (*problems.ANSWERED, OSError, 404):
        made.add_exception_handler(kind, pages.wrong)
    made.add_middleware(Watch, body=settings.body)
    return made


def plugged(settings: Settings, requests: Requests) -> tuple[list[APIRouter], Callbacks]:
    """Return the routes of the protocols that the operator chose, and what tells others of requests.

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
        routers.append(fides.router)
        tellers["fides"], hosts["fides"] = partial(fides.message, requests.keys), [said.fides.host]
    secrets = {each.url: webhooks.secret_in(each.secret) for each in said.webhooks}
    tellers["webhook"] = partial(webhooks.message, secrets)
    hosts["webhook"] = ["/".join(url.split("/")[:3]) for url in secrets]
    callbacks = Callbacks(requests, tellers, hosts)
    callbacks.follow(list(secrets))
    return routers, callbacks
