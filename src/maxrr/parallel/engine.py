"""What every engine promises, and those of this process: the caller's thread, and several threads."""

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, TypeVarTuple
from weakref import WeakSet

import scipy.linalg  # noqa: F401 - brings a BLAS of its own, which the controller below should find
from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")
Shared = TypeVarTuple("Shared")

Results = Generator[R, None, None]
"""One result per item, in the order of the items; `close()` ends the work on those that are left."""


class Engine(Protocol):
    """Where work on many items is done. Functions with such work take any engine."""

    def map(self, function: Callable[[T, *Shared], R], items: Iterable[T], *shared: *Shared) -> Results[R]:
        """Call `function(item, *shared)` for every item, and give the results in the order of the items.

        Parameters
        ----------
        function
            Called once per item.
        items
            Taken one by one in the caller's thread, only a few ahead of the results that were asked for.
        *shared
            Further arguments, the same for every item.

        Returns
        -------
        generator
            One result per item. What the function raises is raised in the place of its result; what taking an item
            raises, at once. When the generator is closed, or interrupted, no worker is left behind.
        """


@dataclass(frozen=True)
class InProcess:
    """An engine that works on one item after the other, in the caller's thread.

    Examples
    --------
    >>> list(InProcess().map(pow, [2, 3], 2))
    [4, 9]
    """

    def map(self, function: Callable[[T, *Shared], R], items: Iterable[T], *shared: *Shared) -> Results[R]:
        """Do as `Engine.map`; an item is taken when its result is asked for."""
        return (function(item, *shared) for item in items)


_most: int | None = None  # cores that this process was told to keep to


def cores() -> int:
    """Count the processor cores that this process may use: at least 1.

    Where the system can confine a process to some cores (Linux), only these count; a worker of a cluster keeps to
    those that its engine asked for.
    """
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return here if _most is None else min(here, _most)


def keep_to(count: int) -> None:
    """Limit `cores` in a process that shares its machine with other workers."""
    global _most
    _most = max(1, count)


def in_order(submit: Callable[[T], Future[R]], items: Iterable[T], most: int) -> Iterator[R]:
    """Give the results of all items. At most `most` of them are under way, or finished but not yet asked for."""
    waiting: deque[Future[R]] = deque()
    for item in items:
        waiting.append(submit(item))
        if len(waiting) == most or waiting[0].done():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


BLAS = ThreadpoolController()
_stops: WeakSet[threading.Event] = WeakSet()


class _OneThread:
    """A context in which BLAS uses one thread. Only the first of several asks the libraries for it, which takes a
    while.
    """

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.limited = BLAS.limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limited.restore_original_limits()


_ONE_THREAD = _OneThread()


def single_threaded_blas() -> AbstractContextManager[object]:
    """Keep NumPy and SciPy from starting threads for matrix products inside a `with` block.

    For small products: waking other threads for each of them costs more than they give, on a busy processor a lot more.
    """
    return _ONE_THREAD


def _stop_all() -> None:
    for stop in _stops:
        stop.set()


# When the interpreter ends with items still worked on, it waits for their threads: ask these to stop first. There is no
# public way to be called before it waits; concurrent.futures uses this one as well.
threading._register_atexit(_stop_all)  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class Threads:
    """An engine that works on several items at once, in threads of this process; as many items again wait for one.

    Attributes
    ----------
    count
        How many threads; by default one per core.
    stop
        Set when no more results are wanted. A function that takes long should look at it now and then, and raise:
        the map waits for its threads. An engine with such an event is for one map.

    Examples
    --------
    >>> list(Threads(2).map(pow, [2, 3], 2))
    [4, 9]
    """

    count: int = field(default_factory=cores)
    stop: threading.Event = field(default_factory=threading.Event)

    def map(self, function: Callable[[T, *Shared], R], items: Iterable[T], *shared: *Shared) -> Results[R]:
        """Do as `Engine.map`, in threads."""
        _stops.add(self.stop)
        pool = ThreadPoolExecutor(self.count)
        try:
            yield from in_order(lambda item: pool.submit(function, item, *shared), items, 2 * self.count)
        finally:
            self.stop.set()
            pool.shutdown(cancel_futures=True)
