"""The test that decides: where does the audited model stand among models retrained without the records?

If it is one of them, as far as anybody can tell, every rank of its statistic is equally likely. That holds for any
statistic, whatever its distribution, as long as all models are treated alike: scored by the same rule, each against the
others. Test data is no substitute for retrained models: hard records score oddly in those too.
"""

import math
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from maxrr.audit.checks import Floats, finite

OTHER = 0.7  # how much it counts to stand out otherwise than by remembering
TOLERANCE = 1e-6  # standard deviations; models equal up to rounding are equal


def oddness(scores: Floats) -> Floats:
    """How far each model is from the others, of scores (models × records): shape (models,).

    The largest of three numbers: how far its mean score is above theirs, how far below, and how far its records are,
    each by itself. A trace in few records, or one up in some and down in others, shows in the last alone. All are in
    standard deviations of the other models, so that they can be compared. Remembering is asked about first: to be
    below, or off in some records, counts `OTHER` as much.

    >>> int(oddness(np.array([[3.0, -3.0], [0.1, 0.2], [-0.1, 0.1], [0.2, 0.0]])).argmax())
    0
    """
    return oddest(*apart(finite(scores, "scores", dimensions=2)))


def oddest(mean: Floats, records: Floats) -> Floats:
    """The number that is ranked, of those that `apart` gives."""
    return np.asarray(np.maximum(mean, OTHER * np.maximum(-mean, records)))


def apart(scores: Floats) -> tuple[Floats, Floats]:
    """By how many standard deviations each model is above the others: in its mean score, and record by record.

    A record counts by how widely it is scattered: LiRA scatters most where models that remember are easiest to tell.
    """
    away, spread = beside_others(scores)
    together, spread_together = beside_others(np.sqrt(np.sum(away**2 / spread, axis=1)))
    mean, spread = beside_others(scores.mean(axis=1))
    return mean / on_its_side(mean, spread), together / spread_together


def on_its_side(away: Floats, spread: Floats) -> Floats:
    """The spread of those others that are on the same side as a model, and one more with the spread of all.

    Losses are bounded on one side alone. Measured by a long tail on the other, nobody would stand out there.
    """
    above = away > 0.0
    same = above[:, None] == above
    np.fill_diagonal(same, False)
    return np.asarray(np.sqrt((same @ away**2 + spread**2) / (1 + same.sum(axis=1))))


def beside_others(values: Floats) -> tuple[Floats, Floats]:
    """Of each model (a row): by how much it is above the mean of the others, and the spread of these."""
    count, near = len(values), rounding(values)
    from_all = values - values.mean(axis=0)
    away = from_all * count / (count - 1)
    scatter = np.sum(from_all**2, axis=0) - from_all * away  # a model's own part taken off
    spread = np.sqrt(np.maximum(scatter, 0.0) / max(count - 2, 1))
    return np.where(np.abs(away) > near, away, 0.0), np.maximum(spread, near)


def rounding(values: Floats) -> float:
    """How near to each other values count as equal: models that are the same differ by rounding."""
    return TOLERANCE * float(np.std(values)) + 1e-9 * (1.0 + float(np.abs(values).max()))


@overload
def rank_p_value(statistic: float, null_statistics: ArrayLike, tolerance: float = ...) -> float: ...
@overload
def rank_p_value(statistic: Floats, null_statistics: ArrayLike, tolerance: float = ...) -> Floats: ...
def rank_p_value(statistic: float | Floats, null_statistics: ArrayLike, tolerance: float = 0.0) -> float | Floats:
    """(1 + number of retrained models with at least this statistic) / (1 + number of retrained models).

    Under the null hypothesis it is at most α with a chance of at most α, for every α and every number of models.

    Parameters
    ----------
    statistic
        The statistic of the audited model: one number, or one per record, shape (records,). Large values speak for what
        is left of the records.
    null_statistics
        Of models retrained without the records, shape (models,) or (models, records).
    tolerance
        Statistics this near to each other count as equal, which only makes p-values larger. Retrained models may be
        the same to the byte, and a model equal to them up to rounding must not stand out.

    >>> rank_p_value(3.0, [0.1, 0.4, 0.2])
    0.25
    >>> rank_p_value(np.array([3.0, 0.0]), [[0.1, 0.1], [0.4, 0.0], [0.2, 0.0]])
    array([0.25, 1.  ])
    """
    observed = finite(np.atleast_1d(statistic), "statistic")
    single = np.ndim(statistic) == 0
    null = finite(null_statistics, "null statistics", dimensions=1 if single else 2)
    if not single and null.shape[1] != observed.size:
        raise ValueError(f"there are {observed.size} statistics, and {null.shape[1]} of each retrained model")
    if not 0.0 <= tolerance < np.inf:
        raise ValueError(f"a tolerance is 0 or more, not {tolerance}")
    as_large = np.count_nonzero(null.reshape(len(null), -1) >= observed - tolerance, axis=0)
    p = (1.0 + as_large) / (1.0 + len(null))
    return float(p[0]) if single else np.asarray(p)


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
