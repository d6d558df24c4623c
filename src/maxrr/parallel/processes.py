"""Processes with one thread each, for work that holds the interpreter.

Arrays travel to them in shared memory. A pipe takes an array in hundreds of small pieces, and a busy interpreter lets
each of them wait. Where the system has memory without a name (Linux), the array is written there once and only its
address is sent; the memory is freed when the process that made it ends, however it ends. Elsewhere the array itself is
sent.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import spawn
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.errors import WorkerLostError
from maxrr.parallel.engine import BLAS, Engine, R, Results, Shared, T, cores, in_order, keep_to

AHEAD = 2  # items that are taken beyond those being worked on
STAY = 60.0  # seconds that processes wait for the next work, where they stay
BETWEEN = 0.05  # seconds between two interruptions
LOST = "a worker process ended early; it may have run out of memory"
STARTING = threading.local()  # whether this thread is starting processes that import no script


@dataclass(frozen=True)
class Processes:
    """An engine that works on several items at once, in worker processes with one thread each.

    The function must be importable, and from another module than the script that runs. NumPy arrays (as an item, in a
    tuple that is an item, or among `shared`) are handed over in shared memory, and the function can only read them.

    Attributes
    ----------
    count
        How many processes; by default one per core.
    """

    count: int = field(default_factory=cores)

    def map(self, function: Callable[[T, *Shared], R], items: Iterable[T], *shared: *Shared) -> Results[R]:
        """Do as `Engine.map`, in worker processes.

        Raises
        ------
        WorkerLostError
            A worker ended early; raised in the place of a result.
        """
        with closing(Workers(self.count)) as workers:
            yield from workers.map(function, items, *shared)

    @contextmanager
    def _kept(self) -> Iterator[Engine]:
        """Start all processes at once, and keep them for several maps until the end of the block."""
        with closing(Workers(self.count)) as workers:
            for _ in range(self.count):
                workers.submit(os.getpid)
            yield workers


_idle: list[tuple["Workers", threading.Timer]] = []  # that stay, and what ends them
os.register_at_fork(after_in_child=_idle.clear)


@contextmanager
def staying(module: str) -> Iterator[Engine]:
    """Give one process per core for the block, which stay a minute after it and are given to who asks first then.

    To start them takes a second: those that are new import the module meanwhile, which their work is from.
    """
    try:
        workers, timer = _idle.pop()
        timer.cancel()
    except IndexError:
        workers = Workers(cores())
        for _ in range(cores()):
            workers.submit(import_module, module)
    try:
        yield workers
    except BaseException:
        workers.close()
        raise
    timer = threading.Timer(STAY, end_idle, [workers])
    timer.daemon = True
    _idle.append((workers, timer))
    timer.start()


def are_idle() -> bool:
    """Whether processes have stayed that nobody uses."""
    return bool(_idle)


def end_idle(workers: "Workers") -> None:
    """Let processes end that nobody has asked for."""
    for known in [known for known in _idle if known[0] is workers]:
        with suppress(ValueError):  # somebody has just taken them
            _idle.remove(known)
            workers.close()


class Workers:
    """Worker processes, for one map or several."""

    def __init__(self, count: int) -> None:
        self.most, self.context = count + AHEAD, Spawn()
        self.pool = ProcessPoolExecutor(count, self.context, initializer=settle_in_with_one_thread)

    def submit(self, function: Callable[..., R], *arguments: Any) -> Future[R]:
        """Send a call to a worker; one is started where there is none for it."""
        with without_the_script(), self.context.uninterrupted():
            return self.pool.submit(call, function, *arguments)

    def map(self, function: Callable[[T, *Shared], R], items: Iterable[T], *shared: *Shared) -> Results[R]:
        """Do as `Processes.map`. At the end no item is worked on any more."""
        packed, under_way = pack(shared), list[Future[R]]()

        def send(item: T) -> Future[R]:
            sent = pack(item)
            try:
                future = self.submit(unpack_and_call, function, sent, packed)
            except BaseException:
                close(sent)
                raise
            future.add_done_callback(lambda _: close(sent))
            under_way[:] = [*(known for known in under_way if not known.done()), future]
            return future

        try:
            yield from in_order(send, items, self.most)
        except BrokenProcessPool as error:
            raise WorkerLostError(LOST) from error
        except BaseException:  # closed, interrupted, or an item failed: nobody waits for the others
            self.context.interrupt_until_done(under_way)
            raise
        finally:
            wait(under_way)
            close(packed)

    def close(self) -> None:
        """Let the processes end."""
        self.pool.shutdown(cancel_futures=True)


def call_in_fresh_process(function: Callable[[*Shared], R], *arguments: *Shared, with_the_script: bool = False) -> R:
    """Call an importable function in a process of its own, with as many threads as it likes.

    Parameters
    ----------
    function, *arguments
    with_the_script
        Whether the process imports the calling script first, as it must where something is defined there.

    Raises
    ------
    WorkerLostError
        The process ended early.
    """
    context = Spawn()
    pool = ProcessPoolExecutor(1, context, initializer=settle_in)
    under_way = list[Future[R]]()
    try:
        with ExitStack() as start:
            if not with_the_script:  # which may work for long while it is imported: an interruption ends it then
                start.enter_context(without_the_script())
                start.enter_context(context.uninterrupted())
            under_way.append(pool.submit(call, function, *arguments))
        return under_way[0].result()
    except BrokenProcessPool as error:
        raise WorkerLostError(LOST) from error
    except BaseException:
        context.interrupt_until_done(under_way)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def can_be_sent(thing: Any) -> bool:
    """Whether a value can be sent to a fresh process. Functions are sent by name, and have to be importable."""
    try:
        ForkingPickler.dumps(thing)
    except Exception:  # each kind of thing that cannot be sent says so in its own way
        return False
    return True


class Spawn(SpawnContext):
    """A context that starts fresh processes, keeps a list of them, and can interrupt their work.

    They are not terminated: one that is just sending a result would leave half of it, and its reader would wait.
    """

    def __init__(self) -> None:
        super().__init__()
        self.started: list[SpawnProcess] = []

    def Process(self, *arguments: Any, **named: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        """Start a process; the pool asks for it under this name."""
        self.started.append(SpawnProcess(*arguments, **named))
        return self.started[-1]

    @contextmanager
    def uninterrupted(self) -> Iterator[None]:
        """Keep processes that start in this block from being interrupted before they have settled in."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def interrupt(self) -> None:
        """Interrupt the processes that work on an item, as Ctrl-C does."""
        for process in self.started:
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, signal.SIGINT)

    def interrupt_until_done(self, under_way: Iterable[Future[Any]]) -> None:
        """Interrupt all work that is under way, and wait for its end."""
        for future in under_way:
            future.cancel()
        while wait(under_way, BETWEEN).not_done:  # those that were queued start when those before them end
            self.interrupt()


@contextmanager
def without_the_script() -> Iterator[None]:
    """Keep processes that this thread starts meanwhile from importing the calling script, as Python has them do.

    They need nothing of it, and one without `if __name__ == "__main__":` would start processes without end. For other
    threads nothing changes.
    """
    before = getattr(STARTING, "without_the_script", False)
    STARTING.without_the_script = True
    try:
        yield
    finally:
        STARTING.without_the_script = before


PREPARING = spawn.get_preparation_data


def preparation_data(name: str) -> dict[str, Any]:
    """Return what Python tells a new process: where it is, and which script to import unless that is switched off."""
    told: dict[str, Any] = PREPARING(name)
    if getattr(STARTING, "without_the_script", False):
        return {key: value for key, value in told.items() if not key.startswith("init_main_from")}
    return told


spawn.get_preparation_data = preparation_data  # asked for each process, in the thread that starts it


# In the worker processes


def settle_in() -> None:
    """Prepare a worker: it ends when its parent is killed, and ignores Ctrl-C except in `call`."""
    end_with_the_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def settle_in_with_one_thread() -> None:
    """Prepare a worker that shares its machine with other workers."""
    settle_in()
    keep_to(1)
    BLAS.limit(limits=1)


def call(function: Callable[..., R], *arguments: Any) -> R:
    """Call a function in a worker, where Ctrl-C interrupts it."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return function(*arguments)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def unpack_and_call(function: Callable[..., R], item: Any, shared: Any) -> R:
    """Call a function with an item and shared arguments that were packed."""
    return function(unpack(item), *unpack(shared))


def end_with_the_parent() -> None:
    """Let this worker end when its parent is killed; it would otherwise wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()


# Arrays on their way


@dataclass(frozen=True)
class Parcel:
    """An array on its way to another process of the same user."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sender: int
    descriptor: int

    @classmethod
    def of(cls, array: NDArray[Any]) -> "Parcel":
        """Pack an array. Close the parcel when the other process has opened it."""
        descriptor = os.memfd_create("maxrr")
        with open(descriptor, "wb", closefd=False) as memory:
            memory.write(np.ascontiguousarray(array).data)
        return cls(array.shape, array.dtype, os.getpid(), descriptor)

    def opened(self) -> NDArray[Any]:
        """Return the array, in the process that it was sent to."""
        return np.asarray(np.memmap(f"/proc/{self.sender}/fd/{self.descriptor}", self.dtype, "r", shape=self.shape))


def pack(value: Any) -> Any:
    """Make a value ready to be sent: arrays become parcels, also those in a tuple."""
    if type(value) is tuple:
        return tuple(map(pack, value))
    fits = isinstance(value, np.ndarray) and value.size > 0 and not value.dtype.hasobject
    return Parcel.of(value) if fits and hasattr(os, "memfd_create") else value


def unpack(packed: Any) -> Any:
    """Return what `pack` packed, in the process that it was sent to."""
    if type(packed) is tuple:
        return tuple(map(unpack, packed))
    return packed.opened() if isinstance(packed, Parcel) else packed


def close(packed: Any) -> None:
    """Let go of the memory of what was packed, in the process that packed it."""
    if type(packed) is tuple:
        for part in packed:
            close(part)
    elif isinstance(packed, Parcel):
        os.close(packed.descriptor)
