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

GLANCE = 0.2  # seconds between two calls of `meanwhile`


class Engine(Protocol):
    """Where work is done: whoever has many items for one function takes any engine."""

    def map(self, function: Callable[[T, *Shared], R], items: Iterable[T], *shared: *Shared) -> Results[R]:
        """`function(item, *shared)` for every item, in the order of the items.

        Items are taken one by one in the caller's thread, only a few before the results that were asked for. What the
        function raises is raised when its item's turn comes; what taking an item raises, at once. Whoever closes the
        iterator, or is interrupted in it, leaves no worker behind.
        """


@dataclass(frozen=True)
class InProcess:
    """One item after the other, in the caller's thread.

    >>> list(InProcess().map(pow, [2, 3], 2))
    [4, 9]
    """

    def map(self, function: Callable[[T, *Shared], R], items: Iterable[T], *shared: *Shared) -> Results[R]:
        """As `Engine.map`; an item is taken when its result is asked for."""
        return (function(item, *shared) for item in items)


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    submit: Callable[[T], Future[R]], items: Iterable[T], most: int, meanwhile: Callable[[], None] | None = None
) -> Iterator[R]:  # fmt: skip
    """The results of all items, of which at most so many are under way or finished before they are asked for.

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
