"""What every engine promises, and those of this process: the caller's thread, and several threads."""

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as NotYet
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, TypeVarTuple
from weakref import WeakSet

import scipy.linalg  # noqa: F401 - brings a BLAS of its own, which the controller below should find
from threadpoolctl import ThreadpoolController

from maxrr.errors import EngineError, WorkerLostError

T = TypeVar("T")
R = TypeVar("R")
Shared = TypeVarTuple("Shared")

Results = Generator[R, None, None]
"""One result per item, in the order of the items; `close()` ends the work on those that are left."""

Finished = Generator[tuple[int, Future[R]], None, None]
"""The number of each item and a future that has its result, or what was raised, as soon as that is known."""

GLANCE = 0.2  # seconds between two calls of `meanwhile`


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

    def as_finished(self, function: Callable[[T, *Shared], R], items: Iterable[T], *shared: *Shared) -> Finished[R]:
        """As `map`, but each result is given as soon as it is there, and an error ends the work on its own item alone.

        Parameters
        ----------
        function, items, *shared
            As in `map`.

        Returns
        -------
        generator
            One pair per item: its number, and a future that is done.
        """

    def kept(self) -> "AbstractContextManager[Engine]":
        """An engine that works as this one, whose workers stay for several maps.

        Returns
        -------
        context manager
            They end with its block.
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
        """As `Engine.map`; an item is taken when its result is asked for."""
        return (function(item, *shared) for item in items)

    def as_finished(self, function: Callable[[T, *Shared], R], items: Iterable[T], *shared: *Shared) -> Finished[R]:
        """As `Engine.as_finished`."""
        for number, item in enumerate(items):
            future = Future[R]()
            try:
                future.set_result(function(item, *shared))
            except Exception as error:
                future.set_exception(error)
            yield number, future

    def kept(self) -> AbstractContextManager[Engine]:
        """As `Engine.kept`; there is nothing to keep."""
        return nullcontext(self)


_most: int | None = None  # cores that this process was told to keep to


def cores() -> int:
    """How many processor cores this process may use.

    Returns
    -------
    int
        At least 1. Where the system can confine a process to some cores (Linux), only these count; a worker of a
        cluster keeps to those that its engine asked for.
    """
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return here if _most is None else min(here, _most)


def keep_to(count: int) -> None:
    """Let `cores` be so many at most, in a process whose others are for other workers."""
    global _most
    _most = max(1, count)


def in_order(
    submit: Callable[[T], Future[R]], items: Iterable[T], most: int, meanwhile: Callable[[], None] | None = None
) -> Iterator[R]:  # fmt: skip
    """The results of all items. At most `most` of them are under way, or finished but not yet asked for.

    `meanwhile` is called now and then while a result is waited for, and once when it is there.
    """
    waiting: deque[Future[R]] = deque()
    for item in items:
        waiting.append(submit(item))
        if len(waiting) == most or waiting[0].done():
            yield result_of(waiting.popleft(), meanwhile)
    while waiting:
        yield result_of(waiting.popleft(), meanwhile)


def result_of(future: Future[R], meanwhile: Callable[[], None] | None) -> R:
    if meanwhile is not None:
        while not future.done():
            with suppress(NotYet):
                future.result(GLANCE)
            meanwhile()
        meanwhile()
    return future.result()


def as_they_finish(
    submit: Callable[[T], Future[R]], items: Iterable[T], most: int, meanwhile: Callable[[], None] | None = None
) -> Iterator[tuple[int, Future[R]]]:  # fmt: skip
    """The finished work on all items. At most `most` of them are under way; `meanwhile` as in `in_order`."""
    under_way: dict[Future[R], int] = {}

    def some() -> Iterator[tuple[int, Future[R]]]:
        while not (done := wait(under_way, GLANCE if meanwhile else None, FIRST_COMPLETED).done) and meanwhile:
            meanwhile()
        if meanwhile is not None:
            meanwhile()
        for future in sorted(done, key=under_way.__getitem__):
            yield under_way.pop(future), future

    for number, item in enumerate(items):
        under_way[submit(item)] = number
        if len(under_way) >= most:
            yield from some()
    while under_way:
        yield from some()


BLAS = ThreadpoolController()
_stops: WeakSet[threading.Event] = WeakSet()


class _OneThread:
    """BLAS without threads while anybody wants that. Only the first asks the libraries for it, which takes a while."""

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
    """Keep NumPy and SciPy from starting threads for matrix products.

    For small products: waking other threads for each of them costs more than they give, on a busy processor a lot more.

    Returns
    -------
    context manager
        Inside it every product is computed by the thread that asks for it.
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
    """An engine that works on several items at once, in threads of this process.

    Attributes
    ----------
    count
        How many threads; by default one per core.
    ahead
        How many items are taken beyond those being worked on; by default as many as there are threads.
    meanwhile
        Called in the caller's thread while it waits for a result, five times a second. What it raises ends the map.
    stop
        Set when no more results are wanted. A function that takes long should look at it now and then, and raise:
        the map waits for its threads. An engine with such an event is for one map.

    Examples
    --------
    >>> list(Threads(2).map(pow, [2, 3], 2))
    [4, 9]
    """

    count: int = field(default_factory=cores)
    ahead: int | None = None
    meanwhile: Callable[[], None] | None = None
    stop: threading.Event | None = None

    def map(self, function: Callable[[T, *Shared], R], items: Iterable[T], *shared: *Shared) -> Results[R]:
        """As `Engine.map`, in threads.

        Raises
        ------
        ValueError
            An earlier map has set `stop`.
        """
        with self._submitting(function, *shared) as submit:
            yield from in_order(submit, items, self._most, self.meanwhile)

    def as_finished(self, function: Callable[[T, *Shared], R], items: Iterable[T], *shared: *Shared) -> Finished[R]:
        """As `Engine.as_finished`, in threads."""
        with self._submitting(function, *shared) as submit:
            yield from as_they_finish(submit, items, self._most, self.meanwhile)

    def kept(self) -> AbstractContextManager[Engine]:
        """As `Engine.kept`; threads are quickly started, and none is kept."""
        return nullcontext(self)

    @property
    def _most(self) -> int:
        return self.count + (self.count if self.ahead is None else self.ahead)

    @contextmanager
    def _submitting(
        self, function: Callable[[T, *Shared], R], *shared: *Shared
    ) -> Iterator[Callable[[T], Future[R]]]:  # fmt: skip
        if self.stop is not None:
            if self.stop.is_set():
                raise ValueError("`stop` is set already, which would stop this map: make an engine with another event")
            _stops.add(self.stop)
        pool = ThreadPoolExecutor(self.count)
        try:
            yield lambda item: pool.submit(function, item, *shared)
        finally:
            if self.stop is not None:
                self.stop.set()
            pool.shutdown(cancel_futures=True)


# Work on many items of which some has failed: what the others gave is kept first.


def completed(
    engine: Engine,
    function: Callable[[T, *Shared], R],
    items: Sequence[T],
    *shared: *Shared,
    kept: bool,
    purpose: Callable[[T], str],
) -> Generator[tuple[T, R]]:
    """Each item with its result, as soon as that is there. What has failed is raised, with a note on its purpose.

    It is raised after the others, whose results the caller has `kept`; at once where it keeps none, or where a node is
    not as it must be: such a node fails at once, and would take one item after the other.
    """
    failed: list[tuple[str, BaseException]] = []
    with closing(engine.as_finished(function, items, *shared)) as finished:
        for number, future in finished:
            if (error := future.exception()) is None:
                yield items[number], future.result()
                continue
            failed.append((purpose(items[number]), error))
            if not kept or (isinstance(error, EngineError) and not isinstance(error, WorkerLostError)):
                break
    if failed:
        (what, first), *others = failed
        first.add_note(f"raised by the work for {what}")
        if others:
            first.add_note(f"other work failed, too: for {', '.join(what for what, _ in others)}")
        raise first


def of_seeds(seeds: Iterable[int]) -> str:
    """What work is for that is done for some seeds.

    >>> of_seeds((3, 4))
    'seed 3, 4'
    """
    return f"seed {', '.join(map(str, seeds))}"
