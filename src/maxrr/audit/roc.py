"""How well scores tell members from non-members: ROC curves, what is read off them, and intervals.

A higher score speaks for a member. Equal scores cannot be told apart and enter a curve together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from maxrr.audit.checks import Floats, finite, same_shape


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
    # scikit-learn's `roc_curve` gives the same bytes, but would sort the scores of every draw of a bootstrap again, in
    # ten times the time of counting how many stand at each step.
    thresholds, member_steps, nonmember_steps = _steps(members, nonmembers)
    return _curve(thresholds, np.bincount(member_steps), np.bincount(nonmember_steps))


def roc_by_class(
    members: ArrayLike, member_labels: ArrayLike, nonmembers: ArrayLike, nonmember_labels: ArrayLike
) -> dict[Any, Roc]:
    """A curve for each class, by its label: an average over classes can hide one that leaks.

    >>> curves = roc_by_class([3.0, 1.0], ["a", "b"], [2.0, 2.0], ["a", "b"])
    >>> {name: auc(curve) for name, curve in curves.items()}
    {'a': 1.0, 'b': 0.0}
    """
    inside, outside = finite(members, "members"), finite(nonmembers, "nonmembers")
    inside_labels, outside_labels = np.asarray(member_labels), np.asarray(nonmember_labels)
    same_shape(inside, inside_labels, "members and their labels")
    same_shape(outside, outside_labels, "nonmembers and their labels")
    alone = np.setxor1d(inside_labels, outside_labels).tolist()
    if alone:
        raise ValueError(f"classes {alone} have members or non-members only: a curve needs both")
    return {
        label: roc(inside[inside_labels == label], outside[outside_labels == label])
        for label in np.unique(inside_labels).tolist()
    }


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
    if not 0.0 <= fpr <= 1.0:
        raise ValueError(f"a false-positive rate is from 0 to 1, not {fpr}")
    return float(curve.tpr[np.searchsorted(curve.fpr, fpr, side="right") - 1])


def interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval for a rate: it holds the true one at least this often, also near 0 and 1.

    >>> low, high = interval(0, 60)
    >>> print(low, round(high, 3))
    0.0 0.06
    """
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"successes must be from 0 to a positive number of trials, got {successes} of {trials}")
    tail = _tail(confidence)
    # What SciPy's `binomtest(...).proportion_ci` finds by bisection, in closed form and without `scipy.stats`.
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1.0 - tail)) if successes < trials else 1.0
    return low, high


def bootstrap_interval(
    statistic: Callable[[Roc], float],
    members: ArrayLike,
    nonmembers: ArrayLike,
    seed: int,
    times: int = 1000,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """The percentile interval of what is read off a curve, with members and non-members drawn again, each apart.

    It speaks of other records, not of other models. Where few records decide, as for a TPR near 0, it is too narrow;
    `interval` is not.

    Parameters
    ----------
    statistic
        `auc`, `balanced_accuracy`, ``lambda curve: tpr_at(curve, 0.01)``.
    members, nonmembers
        Scores, shapes (m,) and (n,).

    >>> bootstrap_interval(auc, [3.0, 2.0, 2.5], [0.0, 1.0], seed=0, times=20)
    (1.0, 1.0)
    """
    if times < 1:
        raise ValueError(f"a bootstrap draws at least once, not {times} times")
    tail = _tail(confidence)
    thresholds, *sides = _steps(members, nonmembers)
    random = np.random.default_rng(seed)
    values = []
    for _ in range(times):
        # The scores are sorted once; a draw only changes how many records stand at each.
        drawn = [steps[random.integers(steps.size, size=steps.size)] for steps in sides]
        values.append(
            statistic(_curve(thresholds, *(np.bincount(steps, minlength=thresholds.size) for steps in drawn)))
        )
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)


def _steps(members: ArrayLike, nonmembers: ArrayLike) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp]]:
    """The distinct scores, falling, and which of them each member and each non-member has."""
    inside, outside = finite(members, "members"), finite(nonmembers, "nonmembers")
    rising, places = np.unique(np.concatenate([inside, outside]), return_inverse=True)
    steps = rising.size - 1 - places
    return rising[::-1], steps[: inside.size], steps[inside.size :]


def _curve(thresholds: Floats, members: NDArray[np.intp], nonmembers: NDArray[np.intp]) -> Roc:
    """The curve of so many members and non-members at each threshold; counts of the last ones may be left out if 0."""

    def rates(counts: NDArray[np.intp]) -> Floats:
        padded = np.zeros(thresholds.size + 1)
        padded[1 : counts.size + 1] = counts
        return np.asarray(np.cumsum(padded) / np.sum(counts))

    return Roc(rates(nonmembers), rates(members), np.concatenate([[np.inf], thresholds]))


def _tail(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"a confidence lies between 0 and 1, not at {confidence}")
    return (1.0 - confidence) / 2.0
