"""How far unlearned models are from retrained ones: numbers from the margins log p / (1 − p) of many models each.

References
----------
KLoM: K. Georgiev et al., "Attribute-to-delete: machine unlearning via datamodel matching", 2024, in bins as EasyDUB has
them (A. Rinberg et al., 2026).
Per-record U-LiRA: J. Hayes et al., "Inexact unlearning needs more careful evaluations to avoid a false sense of
privacy", 2024. Tug-of-war: K. Zhao et al., "What makes unlearning hard and what to do about it", 2024.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.audit.attacks import Evidence, Signals, Threshold, auc, roc, tpr_at
from maxrr.audit.findings import is_found, rank_of_first, words_for

Floats = NDArray[np.float64]
BINS, EPSILON, LARGEST = 20, 1e-5, 100.0
FEWEST_TO_AUDIT = 19
SWAPS = 199  # so few that a p-value is 0.005 at least: Holm's correction of seven leaves 0.035
SWAPPED = 200  # records that these look at, at most


def klom(unlearned: Floats, retrained: Floats) -> Floats:
    """KL of margins, of unlearned from retrained models, in 20 bins between the smallest and the largest: one number a
    record. Margins are (models, records). As in EasyDUB, the largest margin of all falls out of the last bin: where all
    unlearned models have it, the record counts as 0. Apart from retraining in every model is 10 or so, 11.5 at most.
    """
    both = [np.clip(each, -LARGEST, LARGEST) for each in (unlearned, retrained)]
    low, high = np.minimum(*(each.min(0) for each in both)), np.maximum(*(each.max(0) for each in both))
    high = np.where(low >= high, low + 1.0, high)
    edges = np.linspace(low, high, BINS + 1)
    shares = [binned(each, edges) for each in both]
    p, q = shares[0], np.maximum(shares[1], EPSILON)
    return np.asarray(np.sum(np.where(p > 0.0, p * np.log(np.where(p > 0.0, p, 1.0) / q), 0.0), axis=0))


def binned(margins: Floats, edges: Floats) -> Floats:
    """The share of the models in each bin, record by record: (bins, records)."""
    counts = np.diff(np.stack([(margins < edge).sum(0) for edge in edges]), axis=0)
    return np.asarray(counts / np.maximum(counts.sum(0), 1))


def p_of(mine: Floats, before: Floats, retrained: Floats) -> float:
    """The p-value of a difference in the 95th percentile of KLoM between two kinds of models, by swapping: how often it
    is as large where each model of the one kind changes places with its model of the other by the toss of a coin. Of
    many records some, evenly spaced, are enough: it is the models that vary.
    """
    random, step = np.random.default_rng(0), -(-mine.shape[1] // SWAPPED)
    mine, before, retrained = (each[:, ::step] for each in (mine, before, retrained))

    def difference(swap: NDArray[np.bool_]) -> float:
        pair = np.where(swap[:, None], before, mine), np.where(swap[:, None], mine, before)
        one, other = (np.quantile(klom(each, retrained), 0.95) for each in pair)
        return abs(float(one - other))

    seen = difference(np.zeros(len(mine), dtype=bool))
    as_large = sum(difference(random.random(len(mine)) < 0.5) >= seen for _ in range(SWAPS))
    return (1 + as_large) / (1 + SWAPS)


def u_lira(unlearned: Floats, retrained: Floats) -> dict[str, float]:
    """Tell unlearned models from retrained ones by each record's own two Gaussians, each model scored by the others."""
    ours, theirs = (scored(*pair) for pair in ((unlearned, retrained), (retrained, unlearned)))
    curve = roc(ours.ravel(), -theirs.ravel())
    return {"tpr at 1 % fpr": tpr_at(curve, 0.01), "auc": auc(ours.ravel(), -theirs.ravel())}


def scored(mine: Floats, others: Floats) -> Floats:
    """The log-ratio of each model's own kind, without that model, over the other kind."""
    count = len(mine)
    rest = (mine.sum(0) - mine) / (count - 1)
    scatter = np.maximum(((mine - mine.mean(0)) ** 2).sum(0) - (mine - mine.mean(0)) ** 2 * count / (count - 1), 0.0)
    spread = scatter / max(count - 2, 1)
    return np.asarray(density(mine, rest, spread) - density(mine, others.mean(0), others.var(0, ddof=1)))


def density(values: Floats, middle: Floats, variance: Floats) -> Floats:
    """The logarithm of a Gaussian's, but for a constant."""
    wide = np.maximum(variance, 1e-6)
    return np.asarray(-0.5 * ((values - middle) ** 2 / wide + np.log(wide)))


@dataclass(frozen=True, eq=False)
class Answers:
    """What models say: margins and whether they are right, (models, records), of the forgotten records, of some
    retained ones and of the test records; and margins of the forgotten in heads relearned on their features.
    """

    margins: dict[str, Floats]
    right: dict[str, NDArray[np.bool_]]
    relearned: Floats

    def accuracy(self, side: str) -> Floats:
        """The accuracy of each model."""
        return np.asarray(self.right[side].mean(1))


SIDES = ("forgotten", "retained", "test")


def tug_of_war(mine: Answers, theirs: Answers) -> Floats:
    """1 where all three accuracies are those of the retrained models, pair by pair."""
    away = [np.abs(mine.accuracy(side) - theirs.accuracy(side)) for side in SIDES]
    return np.asarray(np.prod([1.0 - each for each in away], axis=0))


def claimed(mine: Answers) -> Floats:
    """The simple attack that papers print: the share of forgotten records with a loss above a threshold that tells
    retained from test records best.
    """
    losses = {side: np.logaddexp(0.0, -margins) for side, margins in mine.margins.items()}
    found = [
        np.mean(forgotten >= Threshold.fit(retained, test).threshold)
        for forgotten, retained, test in zip(*(losses[side] for side in SIDES), strict=True)
    ]
    return np.asarray(found)


def audited(mine: Answers, retrained: Answers, remembering: Answers) -> dict[str, int]:
    """How many of the models get which finding by our audit; none with fewer retrained models than can show anything.

    What `audit_predictions` says of each, given these margins; how much it can find is computed once for all.
    """
    without, kept = signals(retrained), signals(remembering)
    if len(without) < FEWEST_TO_AUDIT:
        return {}
    evidence = Evidence(kept, without)
    power = np.mean([is_found(evidence.scores("lira", model, number)) for number, model in enumerate(kept)])
    ranks = [rank_of_first(evidence.scores("lira", model)) for model in signals(mine)]
    words = [words_for(rank, len(without), float(power)) for rank in ranks]
    return {word: words.count(word) for word in sorted(set(words))}


def signals(answers: Answers) -> list[Signals]:
    """What the audit looks at, of each model."""
    losses = [np.logaddexp(0.0, -np.clip(answers.margins[side], -LARGEST, LARGEST)) for side in ("forgotten", "test")]
    return [Signals(forgotten, test, test) for forgotten, test in zip(*losses, strict=True)]


def compare(mine: Answers, retrained: Answers, remembering: Answers) -> dict[str, Any]:
    """All measures of unlearned models beside retrained ones; values of single models where there are any."""
    divergences = {side: klom(mine.margins[side], retrained.margins[side]) for side in SIDES}
    return {
        "models": len(mine.margins["test"]),
        "accuracy": {side: mine.accuracy(side).tolist() for side in SIDES},
        "klom": {side: {"95th": float(np.quantile(each, 0.95)), "mean": float(each.mean())}
                 for side, each in divergences.items()},
        "p": p_of(*(each.margins["forgotten"] for each in (mine, remembering, retrained))),
        "u-lira": u_lira(mine.margins["forgotten"], retrained.margins["forgotten"]),
        "features": u_lira(mine.relearned, retrained.relearned),
        "tug of war": tug_of_war(mine, retrained).tolist(),
        "claimed unlearned": claimed(mine).tolist(),
        "audit": audited(mine, retrained, remembering),
    }  # fmt: skip
