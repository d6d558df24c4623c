"""RMIA: has a model gained more confidence in a record than it has in most others, beside reference models?

A record's ratio is the target's probability of the true label over the one to be expected from a model of which it is
not known whether it saw the record. The score of a record x is the share of a population of other records z with
ratio(x) ≥ γ ratio(z). It needs few reference models: two or four do where LiRA wants dozens.

The ratios of the population are sorted once, so n records against m cost O((n + m) log m) time and O(n + m) memory.

References
----------
S. Zarifzadeh, P. Liu, R. Shokri, "Low-cost high-power membership inference attacks", 2024.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxrr.audit.checks import Flags, Floats, finite, flags, same_shape
from maxrr.audit.signals import FLOOR


def rmia(
    target_x: ArrayLike, expected_x: ArrayLike, target_z: ArrayLike, expected_z: ArrayLike, gamma: float = 2.0
) -> Floats:
    """The share of the population that each record beats by γ, shape (records,); higher for members.

    Parameters
    ----------
    target_x, target_z
        The target's probabilities of the true labels, of the records (n,) and of the population (m,), which the
        target has not seen.
    expected_x, expected_z
        The probabilities to be expected: `expected_online` or `expected_offline`; of the population, which no model
        saw, the mean over the reference models.
    gamma
        By how much a record must beat another: 1 or more; 2 suits most models.

    >>> rmia([0.9, 0.5], [0.3, 0.5], [0.5, 0.6, 0.9], [0.5, 0.3, 0.5], gamma=1.0).round(3)
    array([1.   , 0.333])
    """
    if not 0.0 < gamma < np.inf:
        raise ValueError(f"gamma must be positive and finite, not {gamma}")
    records = _ratios(target_x, expected_x, "the records")
    population = np.sort(gamma * _ratios(target_z, expected_z, "the population"))
    return np.asarray(np.searchsorted(population, records, side="right") / population.size)


def expected_online(references: ArrayLike, member: ArrayLike) -> Floats:
    """The mean of two means, over the models that saw a record and over those that did not, shape (records,).

    Parameters
    ----------
    references
        Probabilities of the true labels by the reference models, shape (models, records).
    member
        Booleans like `references`: true where the model saw the record.

    >>> expected_online([[0.9], [0.1], [0.3]], [[True], [False], [False]]).round(2)
    array([0.55])
    """
    p, saw = _checked(references, member)
    seen, unseen = _sums(p, saw)
    return (_mean(seen, saw.sum(axis=0), "saw") + _mean(unseen, (~saw).sum(axis=0), "did not see")) / 2.0


def expected_offline(references: ArrayLike, member: ArrayLike, a: float) -> Floats:
    """½ ((1 + a) p_out + 1 − a) with p_out over the models that did not see a record, shape (records,).

    The other mean is taken to be p_in = a p_out + 1 − a: with a = 1 to see a record changes nothing, with a = 0 it
    makes the model certain. Choose a on reference models, never on the target.

    >>> expected_offline([[0.2], [0.4]], [[False], [False]], a=0.5).round(3)
    array([0.475])
    """
    p, saw = _checked(references, member)
    return _from_outside(_mean(_sums(p, saw)[1], (~saw).sum(axis=0), "did not see"), a)


def rmia_leave_one_out(
    references_x: ArrayLike, member: ArrayLike, references_z: ArrayLike, gamma: float = 2.0, a: float | None = None
) -> Floats:
    """The scores of every reference model by all the others, shape (models, records); exact up to rounding.

    With `a` the others that saw a record are not used (`expected_offline`), without it they are (`expected_online`).
    An unlearned model may be one of the rows, as for `maxrr.audit.lira.lira_leave_one_out`.

    >>> p_x, p_z = [[0.9], [0.5], [0.5]], [[0.5, 0.7], [0.5, 0.7], [0.5, 0.7]]
    >>> rmia_leave_one_out(p_x, [[False]] * 3, p_z, gamma=1.0, a=1.0)
    array([[1.], [0.], [0.]])
    """
    p, saw = _checked(references_x, member)
    population = _probabilities(references_z, "references_z", dimensions=2)
    if len(population) != len(p) or len(p) < 2:
        raise ValueError(
            f"leaving one out needs two models or more, the same for records and population, "
            f"got {len(p)} and {len(population)}"
        )
    seen, unseen = _sums(p, saw)
    n_seen, total = saw.sum(axis=0), population.sum(axis=0)
    scores = np.empty_like(p)
    for model, mine in enumerate(saw):
        outside = _mean(unseen - np.where(mine, 0.0, p[model]), len(p) - n_seen - ~mine, "did not see")
        if a is None:
            inside = _mean(seen - np.where(mine, p[model], 0.0), n_seen - mine, "saw")
            expected = (inside + outside) / 2.0
        else:
            expected = _from_outside(outside, a)
        others = (total - population[model]) / (len(p) - 1)
        scores[model] = rmia(p[model], np.clip(expected, 0.0, 1.0), population[model], np.clip(others, 0.0, 1.0), gamma)
    return scores


def _ratios(target: ArrayLike, expected: ArrayLike, of: str) -> Floats:
    p, mean = _probabilities(target, f"target of {of}"), _probabilities(expected, f"expected of {of}")
    same_shape(p, mean, f"target and expected of {of}")
    return np.asarray(np.maximum(p, FLOOR) / np.maximum(mean, FLOOR))


def _from_outside(outside: Floats, a: float) -> Floats:
    if not 0.0 <= a <= 1.0:
        raise ValueError(f"a must be from 0 to 1, not {a}")
    return np.asarray(((1.0 + a) * outside + (1.0 - a)) / 2.0)


def _sums(p: Floats, saw: Flags) -> tuple[Floats, Floats]:
    return np.asarray(np.sum(p, axis=0, where=saw)), np.asarray(np.sum(p, axis=0, where=~saw))


def _mean(total: Floats, count: NDArray[np.int64], which: str) -> Floats:
    if (count < 1).any():
        raise ValueError(f"too few reference models: there is none that {which} record {int(np.argmin(count))}")
    return np.asarray(total / count)


def _checked(references: ArrayLike, member: ArrayLike) -> tuple[Floats, Flags]:
    p = _probabilities(references, "references", dimensions=2)
    return p, flags(member, "member", p.shape)


def _probabilities(values: ArrayLike, name: str, dimensions: int = 1) -> Floats:
    p = finite(values, name, dimensions)
    if p.min() < 0.0 or p.max() > 1.0:
        raise ValueError(f"{name} must be probabilities, got values from {p.min()} to {p.max()}")
    return p
