"""LiRA: is a record's logit more like that of models which saw the record, or of models which did not?

For each record the logits (`maxrr.audit.signals.logit`) of shadow models are summed up by two Gaussians. A score is
for one record and one model, and higher for members.

Shapes: `target` (records,), the logits by the model in question; `shadows` (models, records); `member` booleans like
`shadows`, true where the model saw the record.

To ask whether an unlearned model can be told from models retrained without the records (U-LiRA), let it be one more
row of `shadows` that did not see them, and score every row by `lira_leave_one_out`: under the null hypothesis its
scores and theirs are then made alike, which is what `maxrr.audit.ranks` asks for.

References
----------
N. Carlini et al., "Membership inference attacks from first principles", 2022.
J. Hayes et al., "Inexact unlearning needs more careful evaluations to avoid a false sense of privacy", 2024.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from maxrr.audit.checks import Flags, Floats, finite, flags

Form = Literal["online", "offline"]
Spread = Literal["record", "pooled", "common"]

PRIOR = 8  # models that the mean over records counts for, where each record has a variance of its own

VARIANCE_FLOOR = 1e-12
"""Variances below it count as it. Logits 1e-10 apart then differ by 1e-4 standard deviations: too little to see."""

TOLERANCE = 1e-3
"""Scores of logits 1e-10 apart differ by less, ten times over: for `maxrr.audit.ranks.rank_p_value`."""


def lira_online(target: ArrayLike, shadows: ArrayLike, member: ArrayLike, spread: Spread = "record") -> Floats:
    """The log-ratio of the two densities at the target's logit, shape (records,): above 0 speaks for a member.

    Parameters
    ----------
    target, shadows, member
        As the module says. Every record needs models that saw it and models that did not.
    spread
        ``"record"``: each record has variances of its own, from two models or more on each side; good from about 64
        models. ``"pooled"``: all records share two variances, around means of their own; one model on each side may do.
        ``"common"``: each record has one for both sides, drawn towards that of all where models are few. Its score
        rises with its logit without end, where others fall again for a record that is remembered better than by any
        model that saw it once.

    >>> shadows = [[4.0], [6.0], [0.0], [2.0]]
    >>> lira_online([5.0], shadows, [[True], [True], [False], [False]])
    array([4.])
    """
    logits, rows, saw = _checked(target, shadows, member)
    return _online(logits, _group(rows, saw), _group(rows, ~saw), spread)


def lira_offline(target: ArrayLike, shadows: ArrayLike, member: ArrayLike, spread: Spread = "record") -> Floats:
    """−log of the chance that a model which did not see the record gives it so large a logit, shape (records,).

    Needs no model that saw the record; those in `shadows` that did are not used. Carlini et al. take one less the
    chance, in the same order; the logarithm keeps apart what lies far in the tail.

    >>> shadows = [[-1.0, -1.0], [1.0, 1.0]]
    >>> lira_offline([0.0, 60.0], shadows, [[False, False], [False, False]]).round().tolist()
    [1.0, 905.0]
    """
    logits, rows, saw = _checked(target, shadows, member)
    return _offline(logits, _group(rows, ~saw), spread)


def lira_leave_one_out(
    shadows: ArrayLike, member: ArrayLike, form: Form = "online", spread: Spread = "record"
) -> Floats:
    """The scores of every shadow model by all the others, shape (models, records).

    A model is taken out of its own group by subtraction: exact up to rounding, and as cheap as scoring each by all.

    >>> shadows = [[4.0], [6.0], [5.0], [0.0], [2.0], [1.0]]
    >>> lira_leave_one_out(shadows, [[True]] * 3 + [[False]] * 3).ravel().round(2)
    array([  2.6 ,  10.6 ,   7.65, -10.6 ,  -2.6 ,  -7.65])
    """
    rows = finite(shadows, "shadows", dimensions=2)
    saw = flags(member, "member", rows.shape)
    if form not in ("online", "offline"):
        raise ValueError(f"LiRA is online or offline, not {form!r}")
    seen, unseen = _group(rows, saw), _group(rows, ~saw)
    scores = np.empty_like(rows)
    for model, (logits, mine) in enumerate(zip(rows, saw, strict=True)):  # models are few, and one at a time is small
        others_unseen = unseen.without(logits, ~mine)
        if form == "online":
            scores[model] = _online(logits, seen.without(logits, mine), others_unseen, spread)
        else:
            scores[model] = _offline(logits, others_unseen, spread)
    return scores


@dataclass(frozen=True, eq=False)
class _Group:
    """For each record, the models on one side of it: how many, their mean, their squared deviations from it, summed."""

    count: NDArray[np.int64]
    mean: Floats
    scatter: Floats

    def without(self, logits: Floats, inside: Flags) -> "_Group":
        """The group less one model, for the records where that is inside."""
        count = self.count - inside
        rest = np.maximum(count, 1)
        away = np.where(inside, logits - self.mean, 0.0)
        scatter = np.maximum(self.scatter - away**2 * self.count / rest, 0.0)
        # One that is left has no scatter, whatever rounding says.
        return _Group(count, self.mean - away / rest, np.where(count > 1, scatter, 0.0))

    def variance(self, spread: Spread) -> Floats:
        """Unbiased, of each record by itself or of all together."""
        if spread not in ("record", "pooled", "common"):
            raise ValueError(f"a spread is of each record, pooled or common, not {spread!r}")
        needed = 2 if spread == "record" else 1
        if (self.count < needed).any() or not (self.count > 1).any():
            fewest = int(np.argmin(self.count))
            raise ValueError(
                f"too few shadow models: record {fewest} has {self.count[fewest]} on one side, and spread={spread!r} "
                f"needs {needed} or more for every record and 2 for some; train more of them"
            )
        freedom = self.count - 1
        pooled = np.asarray(np.sum(self.scatter) / np.sum(freedom))
        variance = self.scatter / freedom if spread == "record" else pooled
        return np.maximum(variance, VARIANCE_FLOOR)


def _group(shadows: Floats, inside: Flags) -> _Group:
    count: NDArray[np.int64] = np.asarray(np.sum(inside, axis=0, dtype=np.int64))
    mean = np.sum(shadows, axis=0, where=inside) / np.maximum(count, 1)
    scatter = np.zeros_like(mean)
    for logits, mine in zip(shadows, inside, strict=True):
        scatter += np.where(mine, logits - mean, 0.0) ** 2
    return _Group(count, mean, scatter)


def _online(logits: Floats, seen: _Group, unseen: _Group, spread: Spread) -> Floats:
    # log N(x; mean, variance) = −½ (log 2π + log variance + (x − mean)² / variance); 2π cancels.
    if spread == "common":
        variance = common_variance(seen, unseen)
        return np.asarray((logits - (seen.mean + unseen.mean) / 2.0) * (seen.mean - unseen.mean) / variance)
    inside, outside = seen.variance(spread), unseen.variance(spread)
    log_inside = np.log(inside) + (logits - seen.mean) ** 2 / inside
    log_outside = np.log(outside) + (logits - unseen.mean) ** 2 / outside
    return np.asarray(0.5 * (log_outside - log_inside))


def common_variance(seen: _Group, unseen: _Group) -> Floats:
    """One variance per record for both sides, drawn towards the mean over records as by `PRIOR` more models."""
    for group in (seen, unseen):
        group.variance("pooled")  # complains where there are too few models
    scatter = seen.scatter + unseen.scatter
    freedom = seen.count + unseen.count - 2
    mean = np.sum(scatter) / np.sum(freedom)
    return np.asarray(np.maximum((scatter + PRIOR * mean) / (freedom + PRIOR), VARIANCE_FLOOR))


def _offline(logits: Floats, unseen: _Group, spread: Spread) -> Floats:
    deviations = (logits - unseen.mean) / np.sqrt(unseen.variance(spread))
    return np.asarray(0.0 - log_ndtr(-deviations))


def _checked(target: ArrayLike, shadows: ArrayLike, member: ArrayLike) -> tuple[Floats, Floats, Flags]:
    logits, rows = finite(target, "target"), finite(shadows, "shadows", dimensions=2)
    if logits.size != rows.shape[1]:
        raise ValueError(f"target has {logits.size} records and shadows have {rows.shape[1]}")
    return logits, rows, flags(member, "member", rows.shape)
