"""What every engine promises, and what engines with workers have in common."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar, TypeVarTuple

T = TypeVar("T")
R = TypeVar("R")
Shared = TypeVarTuple("Shared")

Results = Generator[R, None, None]
"""One result per item, in the order of the items; `close()` ends the work on those that are left."""

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


def cores() -> int:
    """How many processor cores this process may use.

    Returns
    -------
    int
        At least 1. Where the system can confine a process to some cores (Linux), only these count.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
