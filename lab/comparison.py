"""Our number beside the paper's, and whether they agree: one rule, fixed before the paper-size runs were made, and a
test of equivalence, which came after them.

The paper gives no errors, but its table has one: nothing is unlearned in the row 'No', so its six accuracies measure
the same thing, each over 100 runs, and they spread by a standard deviation of 0.0023. Of counts and shares it gives one
value each; we allow them an error of 2.5 % and of 2.5 points. Two numbers agree if they differ by no more than twice
the joint standard error, theirs and ours together. Up to twice that they are near, beyond it they differ.

By this rule a number with a large error agrees more easily. The test has fixed margins: a point of accuracy, what the
smallest loss that the paper speaks of amounts to; a tenth of a count, less than the two kinds of SVM differ by; five
points of a share, one of the paper's 20 runs. Its number is taken as it is printed. Ours is equivalent if the 90 %
interval of its mean lies within the margin around it (two one-sided tests at 5 %), different if all of the interval
lies outside, and else open. One number over all runs has no interval of its own: it is taken to have the error that
the rule allows the paper's.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from scipy.special import ndtri, stdtr, stdtrit

from lab import published
from lab.parts import Kind
from lab.rule import LEVEL, MARGINS, POINTS, RELATIVE

Verdict = Literal["agrees", "near", "differs"]
Equivalence = Literal["equivalent", "different", "open"]


@dataclass(frozen=True)
class Cell:
    """A mean over runs with its standard error (None for one run), and the paper's number, if it gives one.

    Attributes
    ----------
    kind
        What kind of number it is; it decides how the cell is compared and printed.
    mean, stderr
    paper, difference, verdict, equivalence
        None where the paper has nothing to say.
    """

    kind: Kind
    mean: float
    stderr: float | None
    paper: float | None
    difference: float | None
    verdict: Verdict | None
    equivalence: Equivalence | None

    def to_json(self) -> dict[str, Any]:
        """For a result file."""
        return asdict(self)


def compare(
    values: Sequence[float], kind: Kind, paper: float | None = None, times: int = 1, given: float = 0.0
) -> Cell:  # fmt: skip
    """Put the mean of our runs beside the paper's number.

    If the paper measured it several times, its number is the mean, and the error smaller by the root of how often. What
    is given, as the core is in a count of records that are core or influential, has no error: that is of the rest.

    >>> compare([0.90, 0.91, 0.89], "accuracy", 0.8971).verdict, compare([9_000.0], "count", 10_745.3).verdict
    ('agrees', 'differs')
    >>> uncertain = compare([0.75, 0.89], "accuracy", 0.7572)
    >>> uncertain.verdict, uncertain.equivalence
    ('agrees', 'open')
    """
    mean = statistics.fmean(values)
    stderr = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    if paper is None:
        return Cell(kind, mean, stderr, None, None, None, None)
    theirs, difference = error(paper - given, kind) / math.sqrt(times), mean - paper
    reach = half_interval(stderr, len(values)) if stderr is not None else half_interval(theirs)
    found = equivalence(difference, reach, margin(paper - given, kind))
    return Cell(kind, mean, stderr, paper, difference, verdict(difference, theirs, stderr), found)


def verdict(difference: float, theirs: float, ours: float | None) -> Verdict:
    """What a difference means, given both standard errors; a single run is taken to be as uncertain as the paper."""
    allowed = 2.0 * math.hypot(theirs, theirs if ours is None else ours)
    return "agrees" if abs(difference) <= allowed else "near" if abs(difference) <= 2.0 * allowed else "differs"


def equivalence(difference: float, reach: float, margin: float) -> Equivalence:
    """Where the interval around a difference lies.

    >>> equivalence(0.004, 0.005, 0.01), equivalence(-0.02, 0.005, 0.01), equivalence(0.004, 0.05, 0.01)
    ('equivalent', 'different', 'open')
    """
    if abs(difference) + reach <= margin:
        return "equivalent"
    return "different" if abs(difference) - reach > margin else "open"


def half_interval(stderr: float, runs: int | None = None) -> float:
    """How far the interval of a mean reaches to either side; an error that is assumed counts as known.

    >>> round(half_interval(1.0), 3), round(half_interval(1.0, 20), 3)
    (1.645, 1.729)
    """
    # `scipy.stats` has these quantiles as norm.ppf and t.ppf, and takes much longer to import.
    return stderr * float(ndtri(1.0 - LEVEL) if runs is None else stdtrit(runs - 1, 1.0 - LEVEL))


def margin(paper: float, kind: Kind) -> float:
    """How far a number may be from the paper's and still be called equivalent."""
    return MARGINS[kind] * (paper if kind == "count" else 1.0)


def error(paper: float, kind: Kind) -> float:
    """The standard error that one of the paper's numbers is taken to have."""
    return {"accuracy": spread(), "count": RELATIVE * paper, "share": POINTS}[kind]


def spread() -> float:
    """How the paper's accuracies spread where it measured the same thing six times.

    >>> round(spread(), 4)
    0.0023
    """
    return statistics.stdev(published.table()["No"].values())


# Ours beside ours: differences paired by seed


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences, with its standard error, t and the p-value of a two-sided t-test."""

    mean: float
    stderr: float
    t: float | None  # none where all differences are the same
    p: float


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Difference:
    """By how much ours are larger, pair by pair. Two pairs are the least that say how much it varies.

    >>> found = difference([3.0, 5.0, 7.0], [2.0, 2.0, 2.0])
    >>> found.mean, round(found.stderr, 4), round(found.t, 4), round(found.p, 4)
    (3.0, 1.1547, 2.5981, 0.1217)
    """
    each = [one - other for one, other in zip(ours, theirs, strict=True)]
    mean, stderr = statistics.fmean(each), statistics.stdev(each) / math.sqrt(len(each))
    if stderr == 0.0:  # all alike: certain, or nothing at all
        return Difference(mean, 0.0, None, 0.0 if mean else 1.0)
    t = mean / stderr  # as `scipy.stats.ttest_rel`, whose standard error is not to be had
    return Difference(mean, stderr, t, float(2.0 * stdtr(len(each) - 1, -abs(t))))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction (1979): below a level, none of these is so by chance, but for a share of that level.

    The smallest is multiplied by how many there are, the next by one less, and so on; none becomes smaller than the one
    before it.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    # SciPy corrects for false discoveries only, and for these few lines statsmodels would be a dependency.
    adjusted, most = [1.0] * len(p), 0.0
    for place, which in enumerate(sorted(range(len(p)), key=lambda which: p[which])):
        most = max(most, min(1.0, (len(p) - place) * p[which]))
        adjusted[which] = most
    return adjusted
