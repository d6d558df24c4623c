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
            "is better than a constant, whatever C. Nearly every record is influential in it. Longer training, another "
            "core or another network may help",
            FlatHeadWarning,
            stacklevel=stacklevel + 1,
        )


def in_words(classes: Sequence[str]) -> str:
    """Why records are influential that should not be; nothing where no head is flat.

    >>> in_words(["shirt"])
    "the head of class 'shirt' has weights of zero, so that every record is influential in it"
    >>> in_words(["a", "b", "c", "d", "e"])
    "the heads of classes 'a', 'b', 'c' and 2 others have weights of zero, so that every record is influential in them"
    """
    if not classes:
        return ""
    if len(classes) == 1:
        return f"the head of class {classes[0]!r} has weights of zero, so that every record is influential in it"
    named = [repr(name) for name in classes[: 3 if len(classes) > 4 else 4]]
    last = f"{len(classes) - 3} others" if len(classes) > 4 else named.pop()
    return (
        f"the heads of classes {', '.join(named)} and {last} have weights of zero, so that every record is influential "
        "in them"
    )
