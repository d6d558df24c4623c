"""What every engine promises, and what engines with workers have in common."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures import TimeoutError as NotYet
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar, TypeVarTuple

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


# Work for many seeds of which some has failed: what the others gave is kept first.


def ends_all(error: BaseException, *, kept: bool) -> bool:
    """Whether work on other items should end, too: where its results are not kept, or a node is not as it must be.

    Such a node fails at once, and would take one item after the other.

    >>> ends_all(ValueError("diverged"), kept=True), ends_all(EngineError("another NumPy"), kept=True)
    (False, True)
    """
    return not kept or (isinstance(error, EngineError) and not isinstance(error, WorkerLostError))


def raise_first(failed: Sequence[tuple[Sequence[int], BaseException]]) -> None:
    """Raise what the work for some seeds has raised, naming those of other work that failed; nothing if none did.

    >>> raise_first([])
    """
    if not failed:
        return
    (seeds, first), *others = failed
    first.add_note(f"raised by the work for seed {', '.join(map(str, seeds))}")
    if others:
        first.add_note(
            f"work for other seeds failed, too: {', '.join(str(seed) for some, _ in others for seed in some)}"
        )
    raise first
