"""The test that decides: where does the audited model stand among models retrained without the records?

If it is one of them, as far as anybody can tell, every rank of its statistic is equally likely. That holds for any
statistic, whatever its distribution, as long as all models are treated alike: scored by the same rule, each against the
others. Test data is no substitute for retrained models: hard records score oddly in those too.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args, overload

import numpy as np
from numpy.typing import ArrayLike

from maxrr.audit.checks import Flags, Floats, finite
from maxrr.audit.roc import interval

Sides = Literal["greater", "both"]


@dataclass(frozen=True)
class Power:
    """How many of the models that still know the records the test would flag, and the 95 % interval of that rate."""

    flagged: int
    models: int
    rate: float
    low: float
    high: float


@overload
def rank_p_value(statistic: float, null_statistics: ArrayLike, sides: Sides = ..., tolerance: float = ...) -> float: ...
@overload
def rank_p_value(
    statistic: Floats, null_statistics: ArrayLike, sides: Sides = ..., tolerance: float = ...
) -> Floats: ...
def rank_p_value(
    statistic: float | Floats, null_statistics: ArrayLike, sides: Sides = "greater", tolerance: float = 0.0
) -> float | Floats:
    """(1 + number of retrained models with at least this statistic) / (1 + number of retrained models).

    Under the null hypothesis it is at most α with a chance of at most α, for every α and every number of models.

    Parameters
    ----------
    statistic
        Of the audited model: one number, or one a record, shape (records,).
    null_statistics
        Of models retrained without the records, shape (models,) or (models, records).
    sides
        ``"greater"``: large values speak for what is left of the records. ``"both"``: so do small ones, for an attack
        far below chance is a trace too; twice the smaller of the two one-sided values.
    tolerance
        Statistics this near to each other count as equal, which only makes p-values larger. Retrained models may be
        the same to the byte, and a model equal to them up to rounding must not stand out.

    >>> rank_p_value(3.0, [0.1, 0.4, 0.2])
    0.25
    >>> rank_p_value(np.array([3.0, 0.0]), [[0.1, 0.1], [0.4, 0.0], [0.2, 0.0]], sides="both")
    array([0.5, 1. ])
    """
    _check_sides(sides)
    observed = finite(np.atleast_1d(statistic), "statistic")
    single = np.ndim(statistic) == 0
    null = finite(null_statistics, "null statistics", dimensions=1 if single else 2)
    if not single and null.shape[1] != observed.size:
        raise ValueError(f"there are {observed.size} statistics, and {null.shape[1]} of each retrained model")
    if not 0.0 <= tolerance < np.inf:
        raise ValueError(f"a tolerance is 0 or more, not {tolerance}")
    columns = null.reshape(len(null), -1)
    p = _share(columns >= observed - tolerance)
    if sides == "both":
        p = np.minimum(1.0, 2.0 * np.minimum(p, _share(columns <= observed + tolerance)))
    return float(p[0]) if single else p


def holm(p_values: ArrayLike) -> Floats:
    """Holm's adjusted p-values, in the order given, shape (tests,).

    Flag those at or below α, and the chance to flag any true null hypothesis is at most α, however the tests depend
    on each other.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = finite(p_values, "p-values")
    if p.min() < 0.0 or p.max() > 1.0:
        raise ValueError(f"p-values must be from 0 to 1, got {p.min()} to {p.max()}")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, p[order] * np.arange(p.size, 0, -1)))
    return adjusted


def power(
    alternative_statistics: ArrayLike,
    null_statistics: ArrayLike,
    alpha: float,
    sides: Sides = "greater",
    tolerance: float = 0.0,
) -> Power:
    """The share of models that still know the records which the test would flag at level α.

    Without it 'nothing found' says nothing. The interval is over the alternative models, given the null ones.

    Parameters
    ----------
    alternative_statistics
        Of models that saw the records, shape (alternatives,), made as those of retrained models are.
    null_statistics
        Of models retrained without them, shape (models,).
    sides, tolerance
        Those of the test.

    >>> found = power([5.0, 6.0, 0.0], np.zeros(19), alpha=0.05)
    >>> found.flagged, found.models
    (2, 3)
    """
    _check_level(alpha)
    alternatives = finite(alternative_statistics, "alternative statistics")
    null = finite(null_statistics, "null statistics")
    p = rank_p_value(alternatives, np.tile(null[:, None], alternatives.size), sides, tolerance)
    flagged = int(np.count_nonzero(p <= alpha))
    low, high = interval(flagged, alternatives.size)
    return Power(flagged, alternatives.size, flagged / alternatives.size, low, high)


def shadows_needed(alpha: float, tests: int = 1, sides: Sides = "greater") -> int:
    """The least number of retrained models with which one of so many tests can pass Holm's correction at level α.

    With fewer the smallest possible p-value is above α / tests, and nothing could ever be flagged.

    >>> shadows_needed(0.05), shadows_needed(0.05, tests=3), shadows_needed(0.05, sides="both")
    (19, 59, 39)
    """
    _check_level(alpha)
    if tests < 1:
        raise ValueError(f"there must be a test, not {tests}")
    _check_sides(sides)
    least = 2.0 if sides == "both" else 1.0
    models = max(1, math.ceil(least * tests / alpha) - 2)
    while least / (1 + models) * tests > alpha:  # as `holm` multiplies, rounding included
        models += 1
    return models


def _share(as_extreme: Flags) -> Floats:
    """Of the models, the audited one among them."""
    return np.asarray((1.0 + np.count_nonzero(as_extreme, axis=0)) / (1.0 + len(as_extreme)))


def _check_level(alpha: float) -> None:
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"a level lies between 0 and 1, not at {alpha}")


def _check_sides(sides: str) -> None:
    if sides not in get_args(Sides):
        raise ValueError(f"a test looks at greater statistics or at both sides, not at {sides!r}")
