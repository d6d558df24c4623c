"""Heads with weights of zero: which classes have them, and what is said about them.

Where no linear function of the features beats a constant under the hinge loss, the best head has no weights and says
the same of every record. Every record then lies on its margin or inside it, so that every record is influential. It is
so for every C: where multipliers balance the features to zero, any multiple of them does.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from maxrr.svm import FlatHeadWarning


@contextmanager
def quietly() -> Iterator[None]:
    """Fit heads without warnings about flat ones: they know classes by numbers, and `warn` by their names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlatHeadWarning)
        yield


def warn(classes: Sequence[str], stacklevel: int) -> None:
    """Say of which classes the heads are flat, and what helps. `stacklevel` counts from the caller of this one."""
    for name in classes:
        warnings.warn(
            f"the head of class {name!r} has weights of zero: under the hinge loss no linear function of the features "
            "is better than a constant, whatever C. Every record is influential in it. For a rare class, a larger "
            "class_weight helps; otherwise longer training, another core or another network may help",
            FlatHeadWarning,
            stacklevel=stacklevel + 1,
        )


def counted(heads: int) -> str:
    """How many heads are flat, without naming their classes: plans and receipts keep it, and a class may be a person.

    >>> counted(1)
    '1 head has weights of zero, so that every record is influential in it'
    """
    if heads == 1:
        return "1 head has weights of zero, so that every record is influential in it"
    return f"{heads} heads have weights of zero, so that every record is influential in them"
