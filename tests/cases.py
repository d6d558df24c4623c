"""How many cases are tried: some in `make test`, always the same; all in `make long`, and others each time."""

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")
THOROUGH = "MAXRR_THOROUGH" in os.environ  # as in `make long`


def examples(count: int) -> settings:
    """A part of this number. What is rare or was once wrong is an `@example`, and tried always."""
    return settings(max_examples=fewer(count))


def fewer(count: int) -> int:
    """One in forty-eight of so many examples."""
    return count if THOROUGH else max(count // 48, 4)


def seeds(first: int, count: int) -> range:
    """A twelfth of the cases that follow from a number."""
    return range(first, first + (count if THOROUGH else max(count // 12, 1)))


def some(few: int, cases: Sequence[T]) -> Sequence[T]:
    """The first few of them."""
    return cases if THOROUGH else cases[:few]


def thinned(few: int, cases: Iterable[T]) -> Sequence[T]:
    """Each so-manieth of them."""
    return list(cases)[:: stride(few)]


def stride(few: int) -> int:
    """From one point to the next, where there are many and something is tried at each: so many, or one."""
    return 1 if THOROUGH else few


def every(few: int, count: int) -> range:
    """The numbers below a count, of which only each so-manieth is tried."""
    return range(0, count, 1 if THOROUGH else few)
