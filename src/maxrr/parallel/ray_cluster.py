"""Workers of a Ray cluster, of many machines or of this one; and engines by name, as the shell takes them.

Shared inputs are put into Ray's object store once, and every node fetches them once. A worker or node that is lost
costs the items that it worked on: these are given to others. Ray itself is an extra, `pip install maxrr[ray]`.
"""

import importlib
import inspect
import os
import platform
import socket
import sys
import threading
import time
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from maxrr.errors import EngineError, OtherVersions, WorkerLostError
from maxrr.files import from_plain
from maxrr.parallel.engine import BLAS, Engine, R, Results, Shared, T, cores, in_order, keep_to
from maxrr.parallel.processes import Processes

MISSING = "Ray is not installed here: pip install 'maxrr[ray]', or leave the engine out to work on this machine"
UNSENDABLE = "something cannot be sent to workers (locks, open files, generators cannot):"
RETRIES = 3  # how often an item is given to another worker when its worker is lost
REACH = 10.0  # seconds for a cluster to take a connection
PATIENCE = 2.0  # seconds for work that is interrupted, to end by itself
AGAIN = 1.0  # seconds until it is ended by force again
LONGEST = 30.0  # seconds until the end of workers is believed, whatever the cluster says
MUST_AGREE = ("maxrr", "torch", "numpy", "scipy", "scikit-learn")  # bytes depend on these


@dataclass(frozen=True)
class Ray:
    """An engine that works on several items at once, in worker processes of a Ray cluster.

    Functions, items and shared inputs travel by pickle between processes of the cluster, and nothing of them is written
    to a disk by this library. What the function needs must be installed on every node, in the same versions as here;
    that is checked.

    Attributes
    ----------
    address
        Where the cluster is, as in "ray://host:10001". By default the one that this process is connected to, that
        $RAY_ADDRESS names, or that runs on this machine (`ray start --head`).
    cpus
        How many cores the work on an item takes.
    gpus
        How many graphics processors it takes; 0.25 lets four items share one.
    """

    address: str | None = None
    cpus: float = 1
    gpus: float = 0

    def __post_init__(self) -> None:
        if not (self.cpus >= 0 and self.gpus >= 0 and self.cpus + self.gpus > 0):
            raise ValueError(f"an item takes some part of a processor, not cpus={self.cpus}, gpus={self.gpus}")

    def map(self, function: Callable[[T, *Shared], R], items: Iterable[T], *shared: *Shared) -> Results[R]:
        """Do as `Engine.map`, on the cluster.

        Raises
        ------
        WorkerLostError
            The workers of an item were lost again and again; the message names it. Raised in the place of its result.
        ModuleNotFoundError
            Ray is not installed.
        """
        with CONNECTION.open(self) as ray, closing(Sender(self, ray, function, shared)) as sender:
            yield from in_order(sender.send, items, 2 * slots(ray, self))

    @contextmanager
    def _kept(self) -> Iterator[Engine]:
        """Keep the connection for several maps until the end of the block."""
        with CONNECTION.open(self):
            yield self


class Sender:
    """Sends items to workers, and knows which are under way."""

    def __init__(self, engine: Ray, ray: Any, function: Callable[..., Any], shared: tuple[Any, ...]) -> None:
        self.ray, self.sent = ray, 0
        self.task = ray.remote(num_cpus=engine.cpus, num_gpus=engine.gpus, max_retries=RETRIES)(call)
        try:
            self.common = ray.put((function, shared, versions(), engine.cpus))
        except ModuleNotFoundError as error:  # where the cluster's own client unpacks it first
            raise lacking(str(error)) from error
        except TypeError as error:  # whose message shows what it is about
            raise TypeError(f"{UNSENDABLE} {type(error).__name__}") from None
        self.under_way: dict[Future[Any], Any] = {}
        self.lock = threading.Lock()

    def send(self, item: Any) -> Future[Any]:
        """Send an item to a worker; return the future of its result."""
        number, found = self.sent, Future[Any]()
        self.sent += 1
        try:
            reference = self.task.remote(item, self.common)
        except TypeError as error:
            found.set_exception(TypeError(f"item {number}: {UNSENDABLE} {type(error).__name__}"))
            return found
        with self.lock:
            self.under_way[found] = reference

        def settle(theirs: Future[Any]) -> None:
            with self.lock:
                self.under_way.pop(found, None)
            try:
                found.set_result(self.result_of(theirs, number, item))
            except BaseException as error:  # whatever it is, somebody waits for it
                found.set_exception(error)

        reference.future().add_done_callback(settle)
        return found

    def result_of(self, theirs: Future[Any], number: int, item: Any) -> Any:
        """Return the result for an item, or raise what the work on it has raised."""
        if (error := theirs.exception()) is not None:
            raise self.explained(error, f"item {number}{named(item)}") from error
        result = theirs.result()
        if isinstance(result, Failure):
            result.error.add_note(f"raised by a worker of Ray on node {result.node}, which has modules of its own")
            result.error.add_note(result.where)
            raise result.error
        return result

    def explained(self, error: BaseException, item: str) -> BaseException:
        """Make the error that says why no worker has finished an item."""
        kinds, cause = self.ray.exceptions, getattr(error, "cause", None)
        if isinstance(error, kinds.RayTaskError) and isinstance(cause, BaseException):
            return cause  # its result could not be sent
        said = next(iter(str(error).strip().splitlines()), "").removeprefix("System error: ")
        if isinstance(error, kinds.RaySystemError) and "No module named" in said:
            return lacking(said)
        if isinstance(error, kinds.WorkerCrashedError | kinds.NodeDiedError | kinds.OutOfMemoryError):
            lost = f"its worker was lost {RETRIES + 1} times; it may have run out of memory ({said})"
            return WorkerLostError(f"{item}: {lost}")
        return EngineError(f"{item}: {type(error).__name__}: {said}")

    def close(self) -> None:
        """Cancel the work that is left, and wait for its end; by force where it does not end by itself."""
        started = time.monotonic()
        while (waited := time.monotonic() - started) < LONGEST:
            with self.lock:
                left = dict(self.under_way)
            for reference in left.values():
                with suppress(Exception):  # it may just have ended
                    self.ray.cancel(reference, force=waited >= PATIENCE)  # one that just began may not hear it
            if not wait(left, AGAIN if waited >= PATIENCE else PATIENCE).not_done:
                return


class Connection:
    """The connection of this process to a cluster, shared by all that use it at one time."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a generator that is collected meanwhile may close in the same thread
        self.users, self.ours = 0, False
        self.address: str | None = None

    @contextmanager
    def open(self, engine: Ray) -> Iterator[Any]:
        """Connect where nobody has, and give the module `ray`; the last of our users disconnects."""
        with self.lock:
            ray = sys.modules.get("ray")
            if ray is None or not ray.is_initialized():
                ray = connected(engine.address)
                self.users, self.ours, self.address = 0, True, engine.address
            elif engine.address not in (None, self.address if self.ours else None):
                raise ValueError(
                    f"Ray is connected, and not with address={engine.address!r}: leave it out, or shut it down"
                )
            self.users += 1
        try:
            yield ray
        finally:
            with self.lock:
                self.users -= 1
                if self.users == 0 and self.ours:
                    self.ours = False
                    ray.shutdown()


CONNECTION = Connection()


def lacking(said: str) -> EngineError:
    """Return the error for a module that a node does not have."""
    return EngineError(
        f"{said} on a node of the cluster: install it on all nodes, or let Ray bring it: call "
        "ray.init(…, runtime_env={'working_dir': 'code'}) first"
    )


def check_reachable(address: str) -> None:
    """Refuse an address at which nobody listens, at once: Ray itself tries for a minute, or for ever."""
    if address == "auto":
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and host and port.isdigit()):
        raise EngineError(f"{address!r} is no address of a Ray cluster: host:6379 in RAY_ADDRESS, or ray://host:10001")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH).close()
    except OSError as error:
        raise EngineError(f"no Ray cluster answers at {address} ({error}): is it running, and reachable?") from None


def imported() -> Any:
    """Import `ray`, or say what to install."""
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ModuleNotFoundError(MISSING, name="ray") from None


def connected(address: str | None) -> Any:
    """Connect to a cluster: by default to the one of $RAY_ADDRESS, or the one that runs here."""
    ray = imported()
    named = address or os.environ.get("RAY_ADDRESS") or "auto"
    check_reachable(named)
    try:
        ray.init(named, log_to_driver=False, logging_level="warning")
    except Exception as error:  # none runs here, other versions, another token: Ray has no name for all of it
        raise EngineError(f"the Ray cluster {named} cannot be used: {error}. `ray start --head` makes one") from error
    return ray


def slots(ray: Any, engine: Ray) -> int:
    """Count how many items the nodes can work on at once."""
    wanted = [(name, each) for name, each in (("CPU", engine.cpus), ("GPU", engine.gpus)) if each]
    there = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    found = sum(int(min(node.get(name, 0) / each for name, each in wanted)) for node in there)
    if not found:
        most = {name: max((node.get(name, 0) for node in there), default=0) for name in ("CPU", "GPU")}
        raise ValueError(
            f"an item takes cpus={engine.cpus:g} and gpus={engine.gpus:g}, and no node of the cluster has so much (at "
            f"most {most['CPU']:g} cores, {most['GPU']:g} graphics processors): it would wait for ever. Ask for less, "
            "or add a node"
        )
    return found


def named(item: Any) -> str:
    """Name an item in a message if it is a number or a short word; others may hold records."""
    parts = item if isinstance(item, tuple | list) else (item,)
    plain = all(isinstance(part, int | float | str) for part in parts)
    return f", {item!r:.80}" if plain else ""


LOCAL = "local"
CHOICES = (
    "'local', 'ray' for the cluster that $RAY_ADDRESS names or that runs on this machine, its address as in "
    "'ray://host:10001', or a .toml file with address, cpus and gpus"
)

EngineLike = Engine | str | Path | None
"""An engine, or what `engine_from` makes one from."""


def engine_from(said: EngineLike) -> Engine | None:
    """Find the engine that somebody asks for; None stands for this machine, as each work likes best.

    >>> engine_from("local") is None, engine_from("ray://head:10001")
    (True, Ray(address='ray://head:10001', cpus=1, gpus=0))
    """
    if said is None or said == LOCAL:
        return None
    if not isinstance(said, str | Path):
        if not callable(getattr(said, "map", None)):
            raise ValueError(f"an engine is {CHOICES}, or an engine of maxrr.parallel, not {said!r:.80}")
        return said
    if said == "ray":
        return Ray()
    if str(said).startswith("ray://"):
        return Ray(str(said))
    if Path(said).suffix != ".toml":
        raise ValueError(f"an engine is {CHOICES}, not {str(said)!r}")
    try:
        return from_plain(Ray, tomllib.loads(Path(said).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ValueError(f"{said}: {error}; an engine is {CHOICES}") from None


@contextmanager
def working_on(said: EngineLike) -> Iterator[Engine | None]:
    """Give the engine that `engine_from` finds, whose workers stay for all that is done in the block."""
    engine = engine_from(said)
    with engine._kept() if isinstance(engine, Processes | Ray) else nullcontext(engine) as kept:
        yield kept


# In the workers


@dataclass(frozen=True)
class Failure:
    """The error that work on an item has raised."""

    error: Exception
    where: str
    node: str


@cache
def versions() -> dict[str, str]:
    """Return the versions that have to be the same on all machines."""
    found = {"Python": platform.python_version()}
    for name in MUST_AGREE:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name).partition("+")[0]  # after which PyTorch says what it is built for
    return found


def call(item: T, common: tuple[Callable[..., R], tuple[Any, ...], dict[str, str], float]) -> R | Failure:
    """Do the work on one item, in a worker."""
    function, shared, wanted, cpus = common
    try:
        settle_in(wanted, cpus)
        result = function(item, *shared)
        if inspect.isgenerator(result):
            raise TypeError(f"{function.__name__} gives a generator, which cannot be sent: give a list")
        return result
    except Exception as error:
        return Failure(sendable(error), traceback.format_exc(), platform.node())


def settle_in(wanted: dict[str, str], cpus: float) -> None:
    """Prepare a worker that shares its machine with other workers."""
    here = versions()
    other = [f"{name} {here.get(name, 'missing')} for {version}" for name, version in wanted.items()
             if here.get(name) != version]  # fmt: skip
    if other:
        raise OtherVersions(
            f"node {platform.node()} has {', '.join(other)}, so that results would not be the same bytes: install the "
            "same versions on all nodes"
        )
    keep_to(int(cpus))
    BLAS.limit(limits=cores())


def sendable(error: Exception) -> Exception:
    """Return the error itself, or an equivalent one if it cannot be sent."""
    try:
        whole = type(ForkingPickler.loads(ForkingPickler.dumps(error))) is type(error)
    except Exception:  # each kind of thing that cannot be sent says so in its own way
        whole = False
    return error if whole else RuntimeError(f"{type(error).__name__}: {error}")
