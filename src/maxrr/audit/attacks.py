"""The attacks: the paper's threshold, LiRA, RMIA and LiRA on features, and their scores of all models.

A signal is one number per record that tells members from others, from what a model's probabilities say about it.
Signals take probabilities of shape (records, classes), whose rows sum to 1, and the true labels as indices of columns.
Members tend to have a small cross-entropy and a large logit.

The complement 1 − p of a row's largest probability is summed from the other classes: where p rounds to 1 it still
tells records apart. Probabilities and complements below `FLOOR` count as `FLOOR`, so that every signal is finite.

References
----------
N. Carlini et al., "Membership inference attacks from first principles", 2022.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv
from sklearn.metrics import roc_curve

# How well scores tell members from non-members. A higher score speaks for a member; equal ones enter a curve together.


Floats = NDArray[np.float64]


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
    is_member = np.repeat([1, 0], [np.size(members), np.size(nonmembers)])
    return Roc(*roc_curve(is_member, np.concatenate([members, nonmembers]), drop_intermediate=False))


def auc(members: ArrayLike, nonmembers: ArrayLike) -> float:
    """The area under the curve: how often a member scores above a non-member, ties counting half.

    >>> auc([3.0, 2.0], [2.0, 1.0])
    0.875
    """
    ordered = np.sort(nonmembers)
    below, not_above = (np.searchsorted(ordered, members, side) for side in ("left", "right"))
    return float(np.sum(below + not_above) / (2 * np.size(members) * len(ordered)))


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


# Signals of single records.


FLOOR = 1e-45
"""The least probability that counts. Logits stay within ±104, cross-entropies below 104."""


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
    p, y = np.asarray(probabilities, dtype=np.float64), np.asarray(labels)
    rows = np.arange(len(p))
    return np.asarray(_log(p[rows, y]) - _log(_complements(p)[rows, y]))


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


# The paper's attack, `alg:mia`: one threshold on the cross-entropy for all records.
#
# A record with a loss below the threshold is called a member, any other is 'claimed unlearned'. Which records are the
# members to compare with is the caller's choice: the retained ones, or, as the paper's appendix does to improve the
# attack on records outside the core, the retained ones less the core.


@dataclass(frozen=True)
class Threshold:
    """A fitted threshold on the cross-entropy, with the rates that it has on the records it was fitted to.

    >>> attack = Threshold.fit(member_losses=[0.1, 0.2, 0.9], nonmember_losses=[0.3, 0.8, 1.0])
    >>> attack.threshold
    0.3
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
        members, nonmembers = np.asarray(member_losses), np.asarray(nonmember_losses)
        curve = roc(-members, -nonmembers)
        # Losses at or below one observed value are those strictly below the next: `alg:mia` says below.
        candidates = np.append(-curve.thresholds[1:], np.inf)
        right, wrong = np.rint(curve.tpr * members.size), np.rint(curve.fpr * nonmembers.size)
        best = int(np.argmax(right * nonmembers.size - wrong * members.size))
        return cls(float(candidates[best]), float(curve.tpr[best]), float(curve.fpr[best]))


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


def lira(unseen: ArrayLike, seen: ArrayLike) -> Floats:
    """The log-ratio of two Gaussian densities at each model's signals, by all other models: shape of `unseen`.

    Parameters
    ----------
    unseen, seen
        Signals of models that did not see the records and of models that did, shapes (models, records). Both
        Gaussians of a record have one variance, drawn towards that of all records as if by `PRIOR` more models. So the
        score rises with the signal without end, where others fall again for a record that is remembered better than by
        any model that saw it once.

    >>> lira([[0.0], [2.0], [1.0]], [[4.0], [6.0], [5.0]]).round(2).ravel()
    array([-13.65,  -4.05,  -6.  ])
    """
    rows, inside = np.asarray(unseen, dtype=np.float64), np.asarray(seen, dtype=np.float64)
    # A model is taken out of the others by subtraction: exact up to rounding, and as cheap as scoring each by all.
    others, away = len(rows) - 1, rows - rows.mean(axis=0)
    outside = rows.mean(axis=0) - away / others
    scatter = np.maximum(np.sum(away**2, axis=0) - away**2 * len(rows) / others, 0.0)
    scatter = scatter + np.sum((inside - inside.mean(axis=0)) ** 2, axis=0)
    freedom = others + len(inside) - 2
    prior = np.mean(scatter, axis=1, keepdims=True) / freedom
    variance = np.maximum((scatter + PRIOR * prior) / (freedom + PRIOR), VARIANCE_FLOOR)
    middle, apart = (inside.mean(axis=0) + outside) / 2.0, inside.mean(axis=0) - outside
    return np.asarray((rows - middle) * apart / variance)


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
    """Divide probabilities by those to be expected, with a floor under both."""
    return np.asarray(np.maximum(probabilities, FLOOR) / np.maximum(expected, FLOOR))


# What an extractor's features give away of records: heads can be fitted again without them, features stay. The margin
# of a record in heads that are fitted with it is larger if the extractor knows it: what an extractor has once learned
# to tell apart, linear heads tell apart more easily.


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


# Scores of all models by all attacks: the audited model in one row with the retrained ones, so that all are alike.


FEATURES = "features"  # the attack on extractors that may have seen the records
ATTACKS = ("threshold", "lira", "rmia", FEATURES)
LARGEST_LOSS = 1e3  # above all losses that there are: a threshold may be infinite, scores may not

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class View:
    """The answers of one model: its probabilities, and margins on its extractor.

    Attributes
    ----------
    forgotten, retained, test
        Probabilities of the forgotten records, of some retained ones and of the test records, a column per class.
    relearned
        The margins of the forgotten records in heads fitted with them, where the extractor may have seen these.
    """

    forgotten: Floats
    retained: Floats
    test: Floats
    relearned: Floats | None = None


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of the records that the models were asked about."""

    forgotten: Ints
    retained: Ints
    test: Ints


@dataclass(frozen=True, eq=False)
class Signals:
    """The numbers that attacks look at, from the answers of one model."""

    losses: Floats  # of the forgotten records
    retained_losses: Floats
    test_losses: Floats
    relearned: Floats | None = None

    @classmethod
    def of(cls, view: View, labels: Labels) -> "Signals":
        """Compute the signals of a model's answers."""
        return cls(
            cross_entropy(view.forgotten, labels.forgotten), cross_entropy(view.retained, labels.retained),
            cross_entropy(view.test, labels.test), view.relearned,
        )  # fmt: skip

    @property
    def beyond_threshold(self) -> Floats:
        """How far each forgotten record is on the member's side of the paper's threshold."""
        threshold = Threshold.fit(self.retained_losses, self.test_losses).threshold
        return np.asarray(min(threshold, LARGEST_LOSS) - self.losses)

    @property
    def above_test(self) -> Floats:
        """How much surer the model is of the forgotten records than of test records.

        Some models are surer of everything than others, which says nothing about these records.
        """
        return np.asarray(np.mean(self.test_losses) - self.losses)


class Evidence:
    """The signals of models that saw the records, and of models retrained without them.

    Parameters
    ----------
    remembering, retrained
        The signals of these models.
    """

    def __init__(self, remembering: Sequence[Signals], retrained: Sequence[Signals]) -> None:
        self.remembering = remembering
        self.retrained = retrained

    def scores(self, attack: str, target: Signals, without: int | None = None) -> Floats:
        """Score a model in question and the retrained ones.

        Parameters
        ----------
        attack
            One of `ATTACKS`.
        target
            The model in question.
        without
            Which of the remembering models stands on the same extractor: it is left out.

        Returns
        -------
        (1 + retrained models, records)
            Larger for members; the model in question first.
        """
        rows = [target, *self.retrained]
        seen = [model for number, model in enumerate(self.remembering) if number != without]
        if attack == "threshold":
            return np.stack([model.beyond_threshold for model in rows])
        if attack == "rmia":
            sides = [np.stack([model.losses for model in side]) for side in (rows, seen)]
            populations = [np.stack([model.test_losses for model in side]) for side in (rows, seen)]
            return rmia(*(np.exp(-losses) for losses in (*sides, *populations)))
        signals = [[model.relearned if attack == FEATURES else model.above_test for model in side]
                   for side in (rows, seen)]  # fmt: skip
        return lira(*map(np.array, signals))


def values_to_rank(attack: str, scores: Floats) -> Floats:
    """Return the scores to rank; for the paper's attack its verdicts, 1 for a member."""
    return np.asarray(scores > 0.0, dtype=np.float64) if attack == "threshold" else scores
