"""Threads of this process: no copies, any function, but one interpreter for all of them."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from weakref import WeakSet

import scipy.linalg  # noqa: F401 - brings a BLAS of its own, which the controller below should find
from threadpoolctl import ThreadpoolController

from maxrr.parallel.engine import Engine, Finished, R, Results, Shared, T, as_they_finish, cores, in_order

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
