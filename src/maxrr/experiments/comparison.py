"""Our number beside the paper's, and whether they agree: one rule, fixed before the paper-size runs were made.

The paper gives no errors, but its table has one: nothing is unlearned in the row 'No', so its six accuracies measure
the same thing, each over 100 runs, and they spread by a standard deviation of 0.0023. Of counts and shares it gives one
value each; we allow them an error of 2.5 % and of 2.5 points. Two numbers agree if they differ by no more than twice
the joint standard error, theirs and ours together. Up to twice that they are near, beyond it they differ.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from maxrr.experiments import published

Kind = Literal["accuracy", "count", "share"]
Verdict = Literal["agrees", "near", "differs"]

RELATIVE = 0.025  # of a count
POINTS = 0.025  # of a share


@dataclass(frozen=True)
class Cell:
    """A mean over runs with its standard error (None for one run), and the paper's number, if it gives one.

    Attributes
    ----------
    mean, stderr
    paper, difference, verdict
        None where the paper has nothing to say.
    """

    mean: float
    stderr: float | None
    paper: float | None
    difference: float | None
    verdict: Verdict | None

    def to_json(self) -> dict[str, Any]:
        """For a result file."""
        return asdict(self)


def compared(values: Sequence[float], paper: float | None = None, kind: Kind = "accuracy") -> Cell:
    """The mean of our runs beside the paper's number.

    >>> compared([0.90, 0.91, 0.89], 0.8971).verdict, compared([9_000.0], 10_745.3, "count").verdict
    ('agrees', 'differs')
    """
    mean = statistics.fmean(values)
    stderr = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    if paper is None:
        return Cell(mean, stderr, None, None, None)
    return Cell(mean, stderr, paper, mean - paper, verdict(mean - paper, error(paper, kind), stderr))


def verdict(difference: float, theirs: float, ours: float | None) -> Verdict:
    """What a difference means, given both standard errors; a single run is taken to be as uncertain as the paper."""
    allowed = 2.0 * math.hypot(theirs, theirs if ours is None else ours)
    return "agrees" if abs(difference) <= allowed else "near" if abs(difference) <= 2.0 * allowed else "differs"


def error(paper: float, kind: Kind) -> float:
    """The standard error that one of the paper's numbers is taken to have."""
    return {"accuracy": spread(), "count": RELATIVE * paper, "share": POINTS}[kind]


def spread() -> float:
    """How the paper's accuracies spread where it measured the same thing six times.

    >>> round(spread(), 4)
    0.0023
    """
    return statistics.stdev(published.table()["No"].values())
