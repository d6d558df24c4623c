"""The attacks: signals of single records, the paper's threshold, LiRA, RMIA, and what features give away.

A signal is one number per record that tells members from others, from what a model's probabilities say about it.
Signals take probabilities of shape (records, classes), whose rows sum to 1, and most take the true labels as indices of
columns. Members tend to have a small cross-entropy, entropy and modified entropy, and a large logit.

The complement 1 − p of a row's largest probability is summed from the other classes: where p rounds to 1 it still
tells records apart. Probabilities and complements below `FLOOR` count as `FLOOR`, so that every signal is finite.

References
----------
L. Song, P. Mittal, "Systematic evaluation of privacy risks of machine learning models", 2021.
N. Carlini et al., "Membership inference attacks from first principles", 2022.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, xlogy

from maxrr.audit.roc import Flags, Floats, finite, roc

FLOOR = 1e-45
"""The least probability that counts. Logits stay within ±104, cross-entropies below 104."""

ROUNDING = 1e-5  # how far the rows of probabilities made in float32 may be from summing to 1


def cross_entropy(probabilities: ArrayLike, labels: ArrayLike) -> Floats:
    """−log p_y of each record, shape (records,): the loss that the paper's `alg:mia` compares.

    >>> cross_entropy([[0.5, 0.5], [1.0, 0.0]], [0, 0]).round(3)
    array([0.693, 0.   ])
    """
    # log(1 + e^−logit) = −log p, and keeps its digits where p is nearly 1.
    return np.asarray(np.logaddexp(0.0, -logit(probabilities, labels)))


def logit(probabilities: ArrayLike, labels: ArrayLike) -> Floats:
    """log(p_y / (1 − p_y)) of each record, shape (records,): nearly Gaussian over models, which LiRA needs.

    >>> logit([[0.5, 0.5], [1.0, 0.0], [1e-20, 1.0]], [0, 0, 1]).round(1)
    array([  0. , 103.6,  46.1])
    """
    p, y = _checked(probabilities, labels)
    rows = np.arange(len(p))
    return np.asarray(_log(p[rows, y]) - _log(_complements(p)[rows, y]))


def entropy(probabilities: ArrayLike) -> Floats:
    """−Σ p log p of each record, shape (records,): how undecided the model is, whatever the label.

    >>> entropy([[0.5, 0.5], [1.0, 0.0]]).round(3)
    array([0.693, 0.   ])
    """
    p = _simplex(probabilities)
    return np.asarray(0.0 - np.sum(xlogy(p, p), axis=1))


def modified_entropy(probabilities: ArrayLike, labels: ArrayLike) -> Floats:
    """−(1 − p_y) log p_y − Σ_{k≠y} p_k log(1 − p_k) of each record, shape (records,).

    Entropy calls a confident error as certain as a confident hit; this one is large where the model is surely wrong.

    >>> modified_entropy([[0.9, 0.1], [0.1, 0.9]], [0, 0]).round(3)
    array([0.021, 4.145])
    """
    p, y = _checked(probabilities, labels)
    rows, complements = np.arange(len(p)), _complements(p)
    terms = p * _log(complements)
    terms[rows, y] = complements[rows, y] * _log(p[rows, y])
    return np.asarray(0.0 - terms.sum(axis=1))


def _log(values: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(values, FLOOR)))


def _complements(p: Floats) -> Floats:
    """1 − p without cancellation: only a row's largest probability can be near 1."""
    rows, largest = np.arange(len(p)), p.argmax(axis=1)
    others = p.copy()
    others[rows, largest] = 0.0
    complements = 1.0 - p
    complements[rows, largest] = others.sum(axis=1)
    return complements


def _simplex(probabilities: ArrayLike) -> Floats:
    p = finite(probabilities, "probabilities", dimensions=2)
    wrong = (p < 0.0).any(axis=1) | (np.abs(p.sum(axis=1) - 1.0) > ROUNDING)
    if p.shape[1] < 2 or wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"probabilities of two classes or more must sum to 1 in each row, got {p[row]} in row {row}")
    return p


def _checked(probabilities: ArrayLike, labels: ArrayLike) -> tuple[Floats, NDArray[np.intp]]:
    p, y = _simplex(probabilities), np.asarray(labels)
    if y.shape != p.shape[:1] or y.dtype.kind not in "iu":
        raise ValueError(f"labels must be {len(p)} indices of columns, got {y.dtype} of shape {y.shape}")
    if y.min() < 0 or y.max() >= p.shape[1]:
        raise ValueError(f"labels must be from 0 to {p.shape[1] - 1}, got {y.min()} to {y.max()}")
    return p, y.astype(np.intp)


# The paper's attack, `alg:mia`: one threshold on the cross-entropy for all records.
#
# A record with a loss below the threshold is called a member, any other is 'claimed unlearned'. Which records are the
# members to compare with is the caller's choice: the retained ones, or, as the paper's appendix does to improve the
# attack on records outside the core, the retained ones less the core.


@dataclass(frozen=True)
class Threshold:
    """A fitted threshold on the cross-entropy, with the rates that it has on the records it was fitted to.

    >>> attack = Threshold.fit(member_losses=[0.1, 0.2, 0.9], nonmember_losses=[0.3, 0.8, 1.0])
    >>> attack.threshold, attack.claims_member([0.25, 0.3])
    (0.3, array([ True, False]))
    """

    threshold: float
    tpr: float
    fpr: float

    @classmethod
    def fit(cls, member_losses: ArrayLike, nonmember_losses: ArrayLike) -> "Threshold":
        """The threshold with the largest TPR − FPR, of all observed losses and infinity.

        Of several that are equally good it takes the lowest, which has the smallest FPR: where the losses tell
        nothing, none of the compared records is called a member. Counts are compared, not rounded rates.
        """
        members, nonmembers = finite(member_losses, "member losses"), finite(nonmember_losses, "nonmember losses")
        curve = roc(-members, -nonmembers)
        # Losses at or below one observed value are those strictly below the next: `alg:mia` says below.
        candidates = np.append(-curve.thresholds[1:], np.inf)
        right, wrong = np.rint(curve.tpr * members.size), np.rint(curve.fpr * nonmembers.size)
        best = int(np.argmax(right * nonmembers.size - wrong * members.size))
        return cls(float(candidates[best]), float(curve.tpr[best]), float(curve.fpr[best]))

    def claims_member(self, losses: ArrayLike) -> Flags:
        """Which of the losses, shape (records,), lie strictly below the threshold; the others are claimed unlearned."""
        return np.asarray(finite(losses, "losses") < self.threshold)


# LiRA: is what a model says of a record more like what models say that saw it, or models that did not?
#
# To ask whether an unlearned model can be told from models retrained without the records (U-LiRA), let it be one more
# of these. Every one is scored by all the others, so that under the null hypothesis its scores and theirs are made
# alike, which is what `maxrr.audit.findings` asks for. A score is for one record and one model, and higher for members.
#
# References
# ----------
# N. Carlini et al., "Membership inference attacks from first principles", 2022.
# J. Hayes et al., "Inexact unlearning needs more careful evaluations to avoid a false sense of privacy", 2024.


PRIOR = 8  # models that the mean over records counts for, where each record has a variance of its own

VARIANCE_FLOOR = 1e-12
"""Variances below it count as it. Signals 1e-10 apart then differ by 1e-4 standard deviations: too little to see."""


def lira_online(unseen: ArrayLike, seen: ArrayLike) -> Floats:
    """The log-ratio of two Gaussian densities at each model's signals, by all other models: shape of `unseen`.

    Parameters
    ----------
    unseen, seen
        Signals of models that did not see the records and of models that did, shapes (models, records). Both
        Gaussians of a record have one variance, drawn towards that of all records as if by `PRIOR` more models. So the
        score rises with the signal without end, where others fall again for a record that is remembered better than by
        any model that saw it once.

    >>> lira_online([[0.0], [2.0], [1.0]], [[4.0], [6.0], [5.0]]).round(2).ravel()
    array([-13.65,  -4.05,  -6.  ])
    """
    rows, others, outside, scatter = left_out(unseen)
    inside = models(seen, "models that saw the records", 2)
    scatter = scatter + np.sum((inside - inside.mean(axis=0)) ** 2, axis=0)
    freedom = others + len(inside) - 2
    prior = np.mean(scatter, axis=1, keepdims=True) / freedom
    variance = np.maximum((scatter + PRIOR * prior) / (freedom + PRIOR), VARIANCE_FLOOR)
    middle, apart = (inside.mean(axis=0) + outside) / 2.0, inside.mean(axis=0) - outside
    return np.asarray((rows - middle) * apart / variance)


def lira_offline(unseen: ArrayLike) -> Floats:
    """−log of the chance that another model which did not see the record has so large a signal: shape of `unseen`.

    Needs no model that saw the records. All records share one variance. Carlini et al. take one less the chance, in the
    same order; the logarithm keeps apart what lies far in the tail.

    >>> lira_offline([[0.0], [1.0], [60.0]]).round().ravel().tolist()
    [0.0, 0.0, 3546.0]
    """
    rows, others, outside, scatter = left_out(unseen)
    variance = np.maximum(np.mean(scatter, axis=1, keepdims=True) / (others - 1), VARIANCE_FLOOR)
    return np.asarray(0.0 - log_ndtr((outside - rows) / np.sqrt(variance)))


def left_out(unseen: ArrayLike) -> tuple[Floats, int, Floats, Floats]:
    """The signals; of each model how many others there are, their means, and their squared deviations, summed.

    A model is taken out by subtraction: exact up to rounding, and as cheap as scoring each by all.
    """
    rows = models(unseen, "models that did not see the records", 3)
    others, away = len(rows) - 1, rows - rows.mean(axis=0)
    scatter = np.sum(away**2, axis=0) - away**2 * len(rows) / others
    return rows, others, rows.mean(axis=0) - away / others, np.maximum(scatter, 0.0)


def models(signals: ArrayLike, which: str, fewest: int) -> Floats:
    """Signals of so many models or more."""
    rows = finite(signals, "signals", dimensions=2)
    if len(rows) < fewest:
        raise ValueError(f"LiRA takes {fewest} {which} or more, not {len(rows)}: train more of them")
    return rows


# RMIA: has a model gained more confidence in a record than it has in most others, beside reference models?
#
# A record's ratio is the model's probability of the true label over the one to be expected from a model of which it is
# not known whether it saw the record. The score of a record x is the share of a population of other records z with
# ratio(x) ≥ γ ratio(z).
#
# References
# ----------
# S. Zarifzadeh, P. Liu, R. Shokri, "Low-cost high-power membership inference attacks", 2024.


GAMMA = 2.0  # by how much a record must beat another


def rmia(unseen: Floats, seen: Floats, population_unseen: Floats, population_seen: Floats) -> Floats:
    """Scores of every model that did not see the records, by all other models: shape of `unseen`.

    Parameters
    ----------
    unseen, seen
        Probabilities of the true labels by models that did not see the records, and by models that did, shapes
        (models, records).
    population_unseen, population_seen
        The same of a population that none of them saw.

    >>> rmia(*map(np.array, ([[0.9], [0.1], [0.1]], [[0.9]], [[0.5, 0.7]] * 3, [[0.5, 0.7]]))).tolist()
    [[0.0], [0.0], [0.0]]
    """
    others = (np.sum(unseen, axis=0) - unseen) / (len(unseen) - 1)
    expected = (others + seen.mean(axis=0)) / 2.0
    of_all = np.sum(population_unseen, axis=0) + np.sum(population_seen, axis=0)
    usual = (of_all - population_unseen) / (len(population_unseen) + len(population_seen) - 1)
    ratios, among = above(unseen, expected), np.sort(GAMMA * above(population_unseen, usual), axis=1)
    found = [np.searchsorted(of_model, mine, side="right") for of_model, mine in zip(among, ratios, strict=True)]
    return np.asarray(np.stack(found) / among.shape[1])


def above(probabilities: Floats, expected: Floats) -> Floats:
    """Ratios of what is to what was to be expected; 0 of 0 is as expected."""
    return np.asarray(np.maximum(probabilities, FLOOR) / np.maximum(expected, FLOOR))


# What an extractor's features give away of records. Heads can be fitted again without them, features stay.
#
# Two numbers for each record, larger if the extractor knows it. *Relearned*: the margin of the record in heads that are
# fitted with it: what an extractor has once learned to tell apart, linear heads tell apart more easily. *Membership*: a
# linear probe learns to tell core records, which the extractor saw, from test records, which it did not; then it is
# asked about the record.


Labelled = tuple[Floats, NDArray[np.int64]]  # features (records × features), and labels
RIDGE = 1e-3  # of the mean variance


def margins(scores: Floats, labels: NDArray[np.int64], classes: NDArray[np.int64]) -> Floats:
    """By how much the score of a record's class is above the best of the others, shape (records,).

    >>> margins(np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 3.0]]), np.array([0, 1]), np.arange(3))
    array([ 0.5, -2. ])
    """
    wide = scores.reshape(len(scores), -1)
    if wide.shape[1] == 1:  # two classes have one head
        wide = np.hstack([-wide, wide])
    rows, columns = np.arange(len(labels)), np.searchsorted(classes, labels)
    others = wide.copy()
    others[rows, columns] = -np.inf
    return np.asarray(wide[rows, columns] - others.max(axis=1))


def membership(members: Labelled, others: Labelled, asked: Labelled) -> Floats:
    """What a linear probe says that learned to tell members from others, within each class; shape (records,)."""
    X = np.vstack([members[0], others[0]])
    labels = np.concatenate([members[1], others[1]])
    side = np.repeat([1.0, -1.0], [len(members[1]), len(others[1])])
    classes = np.unique(labels)
    means = np.stack([X[labels == label].mean(axis=0) for label in classes])
    X = X - means[np.searchsorted(classes, labels)]
    side = side - side.mean()
    scatter = X.T @ X
    ridge = RIDGE * np.trace(scatter) / len(scatter) + np.finfo(float).tiny
    weights = np.linalg.solve(scatter + ridge * np.eye(len(scatter)), X.T @ side)
    nearest = np.minimum(np.searchsorted(classes, asked[1]), len(classes) - 1)
    known = classes[nearest] == asked[1]  # a class without members has no mean of its own
    centre = np.where(known[:, None], means[nearest], means.mean(axis=0))
    return np.asarray((asked[0] - centre) @ weights)
