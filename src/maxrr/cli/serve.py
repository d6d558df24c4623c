"""`maxrr serve`: requests of people and predictions over HTTP, and a worker that carries the requests out."""

from __future__ import annotations

import gc
import logging
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from maxrr.cli import show
from maxrr.cli.options import CorePolicy, Source
from maxrr.cli.run import USAGE, Stop

if TYPE_CHECKING:
    from maxrr.service.settings import Settings
    from maxrr.service.worker import Worker

SERVER = "MAXRR_SERVER"  # the process that a worker was started beside
DATABASE, RESOLVER, PROTOCOLS = "MAXRR_DATABASE", "MAXRR_RESOLVER", "MAXRR_PROTOCOLS"
"""Variables of the environment: the URL of the database, which may hold a password; the operator's function that maps
identities to subjects, as package.module:function; and the file that says by which protocols others plug in."""
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"  # of TLS 1.2, and no earlier version has them; all those of TLS 1.3 are as good
LOCAL = "127.0.0.1"
AGAIN = 2.0  # seconds, after which a worker that has ended is started again


def serve(
    workspace: Annotated[Path | None, Argument(metavar="[WORKSPACE]", help="A folder that `maxrr fit` made.")] = None,
    host: Annotated[str, Option(help="The address to listen at. If not of this machine alone, give --cert.")] = LOCAL,
    port: Annotated[int, Option(help="The port to listen at.", min=0, max=65535)] = 8080,
    policy: CorePolicy = "refuse",
    source: Source = None,
    cert: Annotated[Path | None, Option(help="A file with the certificate and its chain, for TLS.")] = None,
    key: Annotated[Path | None, Option(help="A file with its key, if that is not in the same one.")] = None,
    worker: Annotated[bool, Option("--worker/--no-worker", help="Whether to carry requests out, too.")] = True,
    server: Annotated[bool, Option("--server/--worker-only", help="Whether to listen to calls, too.")] = True,
    demo: Annotated[bool, Option("--demo", help="Serve a workspace of handwritten digits, with three tokens.")] = False,
) -> None:
    """Serve a workspace: take requests of people, carry them out, predict.

    A request for core records waits for a decision, unless --policy says one for all. Callers need tokens, which
    `maxrr token new` makes. The database is a file beside the workspace, or what MAXRR_DATABASE names, such as
    postgresql://user:password@host/name, which several servers and workers may share.

    Examples:

        maxrr serve ws/
        maxrr serve ws/ --host 0.0.0.0 --cert /etc/maxrr/server.pem --policy retrain
        maxrr serve --demo
    """
    if (workspace is None) != demo:
        raise Stop(USAGE, "name the workspace to serve, or say --demo: one of them")
    from maxrr.cli.workspaces import own_code

    if cert is None and host not in (LOCAL, "localhost", "::1"):
        show.warning(f"nothing is encrypted at {host}: tokens can be read on the way, where no proxy of yours adds TLS")
    if cert is not None:
        check_certificate(cert, key)
    with own_code(), ExitStack() as until_ended:
        if workspace is None:
            from maxrr.cli.serve_demo import demo_workspace

            workspace = demo_workspace(Path(until_ended.enter_context(TemporaryDirectory(prefix="maxrr-demo-"))), port)
        settings = settings_of(workspace, policy, source)
        logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s", level=logging.INFO)
        if not server:
            work(settings)
            return
        if worker:
            until_ended.enter_context(beside(workspace, policy, source))
        listen(settings, host, port, cert, key)


def check_certificate(cert: Path, key: Path | None) -> None:
    """Refuse files that cannot be used, before anything is started. A key under a pass phrase is one of these."""
    try:
        ssl.create_default_context().load_cert_chain(cert, key, lambda: "")
    except OSError as error:
        which = f"--cert {cert}" + ("" if key is None else f" with --key {key}")
        words = "give the certificate with its chain, and the key that belongs to it, without a pass phrase"
        raise Stop(USAGE, f"{which} cannot be used ({error}): {words}") from None


def settings_of(workspace: Path, policy: str = "refuse", source: list[str] | None = None) -> Settings:
    """What the service is told, by options and the environment."""
    from maxrr.cli.workspaces import open_as_named, sides
    from maxrr.nets.naming import find_maker
    from maxrr.service.protocols import Protocols
    from maxrr.service.settings import Settings
    from maxrr.workspace import overview

    overview(workspace)  # says what is missing

    named, plugs = os.environ.get(RESOLVER), os.environ.get(PROTOCOLS)
    return Settings(
        workspace.absolute(), lambda read_only: open_as_named(workspace, source, None, read_only),
        os.environ.get(DATABASE, ""), policy, sides=lambda opened: sides(opened, source),
        resolver=None if named is None else find_maker(named),
        protocols=None if plugs is None else Protocols.read(Path(plugs)),
    )  # fmt: skip


def work(settings: Settings) -> None:
    """Carry requests out until somebody ends this process."""
    from maxrr.service.api import Service
    from maxrr.service.worker import Worker

    service = Service.of(settings)
    worker = Worker(settings, service.requests)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    if SERVER in os.environ:
        threading.Thread(target=end_with_server, args=[worker], daemon=True).start()
    worker.run()
    service.close()


def end_with_server(worker: Worker) -> None:
    """Stop a worker whose server was killed: the next server brings its own."""
    while str(os.getppid()) == os.environ[SERVER]:
        time.sleep(AGAIN)
    worker.stop()


def listen(settings: Settings, host: str, port: int, cert: Path | None, key: Path | None) -> None:
    """Listen until somebody ends this process."""
    import uvicorn

    from maxrr.service import app
    from maxrr.service.connection import Connection

    gc.collect()
    gc.freeze()  # what was imported is no garbage: looking through it stopped predictions for a quarter of a second
    gc.set_threshold(100_000, 20, 20)
    sys.setswitchinterval(0.0005)  # seconds that predictions wait for the thread that reads the model anew
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn ends first, and then raises it again
    uvicorn.run(
        app(settings), host=host, port=port, access_log=False, log_config=None, server_header=False,
        ssl_certfile=cert, ssl_keyfile=key, ssl_ciphers=CIPHERS, limit_concurrency=500, timeout_keep_alive=10,
        http=Connection, ws="none",
    )  # fmt: skip


@contextmanager
def beside(workspace: Path, policy: str, source: list[str] | None) -> Iterator[None]:
    """A worker in a process of its own for as long as the block lasts, started again where it ends."""
    places = [part for each in source or [] for part in ("--source", each)]
    command = [sys.executable, "-m", "maxrr", "serve", str(workspace), "--worker-only", "--policy", policy, *places]
    ending = threading.Event()
    environment = {**os.environ, SERVER: str(os.getpid())}
    running = [subprocess.Popen(command, env=environment)]

    def keep() -> None:
        while not ending.is_set():
            running[0].wait()
            if not ending.wait(AGAIN):
                show.warning("the worker has ended, and is started again")
                running[0] = subprocess.Popen(command, env=environment)

    threading.Thread(target=keep, daemon=True).start()
    try:
        yield
    finally:
        ending.set()
        running[0].terminate()
        running[0].wait()
