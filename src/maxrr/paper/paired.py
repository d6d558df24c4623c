"""Differences paired by seed, and what is left of their p-values when there are several."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtr


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
    t = mean / stderr
    return Difference(mean, stderr, t, float(2.0 * stdtr(len(each) - 1, -abs(t))))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction (1979): below a level, none of these is so by chance, but for a share of that level.

    The smallest is multiplied by how many there are, the next by one less, and so on; none becomes smaller than the one
    before it.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, most = [1.0] * len(p), 0.0
    for place, which in enumerate(sorted(range(len(p)), key=lambda which: p[which])):
        most = max(most, min(1.0, (len(p) - place) * p[which]))
        adjusted[which] = most
    return adjusted
