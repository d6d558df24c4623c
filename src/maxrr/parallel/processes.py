"""Processes with one thread each, for work that holds the interpreter."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any

from maxrr.parallel import parcels
from maxrr.parallel.engine import R, Results, Shared, T, cores, in_order
from maxrr.parallel.threads import BLAS


class WorkerLostError(RuntimeError):
    """A process ended before its work."""


@dataclass(frozen=True)
class Processes:
    """Several items at once, each in a fresh process that is used again.

    The function is one that can be imported, but not from the script that runs. Arrays that are an item, or stand in
    one that is a tuple, or among `shared`, travel in memory that both processes see, and can only be read there.

    Attributes
    ----------
    count
        Processes; by default one per core.
    ahead
        Items taken beyond those being worked on.
    """

    count: int = field(default_factory=cores)
    ahead: int = 2

    def map(self, function: Callable[[T, *Shared], R], items: Iterable[T], *shared: *Shared) -> Results[R]:
        """As `Engine.map`.

        Raises
        ------
        WorkerLostError
            In the place of a result.
        """
        packed, context = parcels.pack(shared), Spawn()
        pool = ProcessPoolExecutor(self.count, context, initializer=settle_in)

        def submit(item: T) -> Future[R]:
            sent = parcels.pack(item)
            try:
                with without_the_script():
                    future: Future[R] = pool.submit(call, function, sent, packed)
            except BaseException:
                parcels.close(sent)
                raise
            future.add_done_callback(lambda _: parcels.close(sent))
            return future

        try:
            yield from in_order(submit, items, self.count + self.ahead)
        except BrokenProcessPool as error:
            raise WorkerLostError("a worker process ended early; it may have run out of memory") from error
        except BaseException:  # closed, interrupted, or an item failed: nobody waits for the others
            context.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            parcels.close(packed)


class Spawn(SpawnContext):
    """Starts fresh processes, and knows which."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[SpawnProcess] = []

    def Process(self, *arguments: Any, **named: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        """The name under which the pool asks for one."""
        self.started.append(SpawnProcess(*arguments, **named))
        return self.started[-1]

    def terminate(self) -> None:
        """End them, whatever they are doing."""
        for process in self.started:
            if process.is_alive():
                process.terminate()


@contextmanager
def without_the_script() -> Iterator[None]:
    """Processes that start meanwhile do not import the calling script, as Python would have them do.

    They need nothing of it, and one without `if __name__ == "__main__":` would start processes without end.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


# In the worker processes


def settle_in() -> None:
    """What a worker does once: use one thread, end when its parent is killed, and leave Ctrl-C to that."""
    end_with_the_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    BLAS.limit(limits=1)


def call(function: Callable[..., R], item: Any, shared: Any) -> R:
    return function(parcels.unpack(item), *parcels.unpack(shared))


def end_with_the_parent() -> None:
    """Called in a worker: it would wait for work for ever after its parent was killed, with what it holds in memory."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
