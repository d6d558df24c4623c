"""How well scores tell members from non-members: ROC curves, what is read off them, and intervals.

A higher score speaks for a member. Equal scores cannot be told apart and enter a curve together.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv
from sklearn.metrics import roc_curve

# Checks of the arrays that attacks take.


Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def finite(values: ArrayLike, name: str, dimensions: int = 1) -> Floats:
    """The values as float64: of that many dimensions, not empty, and none of them NaN or infinite.

    >>> finite([1, 2], "scores")
    array([1., 2.])
    >>> finite([1.0, float("nan")], "scores")
    Traceback (most recent call last):
    ValueError: scores must be finite, got nan at [1]
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != dimensions or not array.size:
        raise ValueError(f"{name} must have {dimensions} dimension(s) and not be empty, got shape {array.shape}")
    usable = np.isfinite(array)
    if not usable.all():
        where = np.argwhere(~usable)[0]
        raise ValueError(f"{name} must be finite, got {array[tuple(where)]} at {where.tolist()}")
    return array


@dataclass(frozen=True, eq=False)
class Roc:
    """One corner for each distinct score, from the highest to the lowest, after (0, 0) at infinity.

    Attributes
    ----------
    fpr, tpr
        Shares of the non-members and of the members that score at the threshold or above.
    thresholds
        Falling from infinity.
    """

    fpr: Floats
    tpr: Floats
    thresholds: Floats


def roc(members: ArrayLike, nonmembers: ArrayLike) -> Roc:
    """The curve of the scores of members, shape (m,), against those of non-members, shape (n,).

    >>> curve = roc([3.0, 2.0], [2.0, 1.0])
    >>> curve.fpr, curve.tpr
    (array([0. , 0. , 0.5, 1. ]), array([0. , 0.5, 1. , 1. ]))
    """
    inside, outside = finite(members, "members"), finite(nonmembers, "nonmembers")
    is_member = np.repeat([1, 0], [inside.size, outside.size])
    return Roc(*roc_curve(is_member, np.concatenate([inside, outside]), drop_intermediate=False))


def auc(curve: Roc) -> float:
    """The area under the curve: how often a member scores above a non-member, ties counting half.

    >>> auc(roc([3.0, 2.0], [2.0, 1.0]))
    0.875
    """
    return float(np.trapezoid(curve.tpr, curve.fpr))


def balanced_accuracy(curve: Roc) -> float:
    """(TPR + 1 − FPR) / 2 at the best threshold. It is chosen on these very scores, so chance lies above ½.

    >>> balanced_accuracy(roc([3.0, 2.0], [2.0, 1.0]))
    0.75
    """
    return float(np.max(curve.tpr + 1.0 - curve.fpr) / 2.0)


def tpr_at(curve: Roc, fpr: float) -> float:
    """The largest TPR at an FPR of at most the one given: an attack that is surely right about a few is a strong one.

    Nothing is interpolated. With fewer than 1 / fpr non-members it is the TPR at no false positive at all.

    >>> tpr_at(roc([3.0, 2.0], [2.0, 1.0]), 0.1)
    0.5
    """
    return float(curve.tpr[np.searchsorted(curve.fpr, fpr, side="right") - 1])


TAIL = 0.025  # beyond each end of an interval


def interval(successes: float, trials: int) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval for a rate: it holds the true one at least so often, also near 0 and 1.

    A mean over several looks at each trial need not be a whole number of successes.

    >>> low, high = interval(0, 60)
    >>> print(low, round(high, 3))
    0.0 0.06
    """
    # What SciPy's `binomtest(...).proportion_ci` finds by bisection, in closed form and without `scipy.stats`.
    low = float(betaincinv(successes, trials - successes + 1, TAIL)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1.0 - TAIL)) if successes < trials else 1.0
    return low, high
