"""The test that decides: where does the audited model stand among models retrained without the records?

If it is one of them, as far as anybody can tell, every rank of its statistic is equally likely. That holds for any
statistic, whatever its distribution, as long as all models are treated alike: scored by the same rule, each against the
others. Test data is no substitute for retrained models: hard records score oddly in those too.
"""

import math
from typing import Literal, get_args, overload

import numpy as np
from numpy.typing import ArrayLike

from maxrr.audit.checks import Flags, Floats, finite

Sides = Literal["greater", "both"]


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
        The statistic of the audited model: one number, or one per record, shape (records,).
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


def shadows_needed(alpha: float) -> int:
    """The least number of retrained models for which a p-value can be at or below α.

    >>> shadows_needed(0.05)
    19
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"a level lies between 0 and 1, not at {alpha}")
    models = max(1, math.ceil(1.0 / alpha) - 2)
    while 1.0 / (1 + models) > alpha:  # rounding included
        models += 1
    return models


def _share(as_extreme: Flags) -> Floats:
    """The share of all models, the audited one among them, that are as extreme."""
    return np.asarray((1.0 + np.count_nonzero(as_extreme, axis=0)) / (1.0 + len(as_extreme)))


def _check_sides(sides: str) -> None:
    if sides not in get_args(Sides):
        raise ValueError(f"a test looks at greater statistics or at both sides, not at {sides!r}")
