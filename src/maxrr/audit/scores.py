"""Scores of all models by all attacks: the audited model in one row with the retrained ones, so that all are alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxrr.audit.attacks import (
    Threshold,
    cross_entropy,
    entropy,
    lira_offline,
    lira_online,
    logit,
    modified_entropy,
    rmia,
)
from maxrr.audit.roc import Floats
from maxrr.audit.shadows import View

STRONG = ("lira", "rmia")
ON_FEATURES = ("features", "probe")  # of extractors that may have seen the records
ATTACKS = ("threshold", *STRONG, *ON_FEATURES, "lira-logit", "lira-offline", "loss", "entropy", "modified-entropy")
LARGEST_LOSS = 1e3  # above all losses that there are: a threshold may be infinite, scores may not

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of the records that the models were asked about."""

    forgotten: Ints
    retained: Ints
    test: Ints


@dataclass(frozen=True, eq=False)
class Signals:
    """What attacks look at, of one model: all they need of its probabilities."""

    logits: Floats  # of the forgotten records
    level: float  # the mean logit of test records
    losses: Floats
    retained_losses: Floats
    test_losses: Floats
    entropies: Floats
    modified_entropies: Floats
    relearned: Floats | None = None
    probe: Floats | None = None

    @classmethod
    def of(cls, view: View, labels: Labels) -> "Signals":
        return cls(
            logit(view.forgotten, labels.forgotten), float(np.mean(logit(view.test, labels.test))),
            cross_entropy(view.forgotten, labels.forgotten),
            cross_entropy(view.retained, labels.retained), cross_entropy(view.test, labels.test),
            entropy(view.forgotten), modified_entropy(view.forgotten, labels.forgotten),
            view.relearned, view.probe,
        )  # fmt: skip

    @property
    def beyond_threshold(self) -> Floats:
        """By how much the paper's attack calls each forgotten record a member: above 0 it does."""
        threshold = Threshold.fit(self.retained_losses, self.test_losses).threshold
        return np.asarray(min(threshold, LARGEST_LOSS) - self.losses)


def of_features(values: Floats | None) -> Floats:
    if values is None:
        raise ValueError("no extractor saw the records: their features have nothing to give away")
    return values


# What LiRA looks at. Some models are surer of everything than others, which says nothing about these records: so what
# it says of them is taken less what it says of test records, on features, too.
SIGNALS: dict[str, Callable[[Signals], Floats]] = {
    "lira": lambda model: np.asarray(np.mean(model.test_losses) - model.losses),
    "lira-logit": lambda model: np.asarray(model.logits - model.level),
    "lira-offline": lambda model: np.asarray(model.logits - model.level),
    "features": lambda model: of_features(model.relearned),
}
BY_OTHERS = ("rmia", *SIGNALS)
ALONE: dict[str, Callable[[Signals], Floats]] = {
    "threshold": lambda model: model.beyond_threshold,
    "probe": lambda model: of_features(model.probe),
    "loss": lambda model: -model.losses,
    "entropy": lambda model: -model.entropies,
    "modified-entropy": lambda model: -model.modified_entropies,
}


class Evidence:
    """What models say that remember the records, and models retrained without them.

    Every attack gives scores (models × forgotten records), higher for members: of one model in question, in row 0, and
    of the retrained ones, each scored by all the others.
    """

    def __init__(self, remembering: Sequence[Signals], retrained: Sequence[Signals]) -> None:
        self.remembering = remembering
        self.retrained = retrained

    def scores(self, attack: str, target: Signals, without: int | None = None) -> Floats:
        """Scores of a model in question and of the retrained ones.

        `without` is the number of a remembering model to leave out, when that model, or another one on the same
        extractor, is itself the model in question.
        """
        rows = [target, *self.retrained]
        if attack in BY_OTHERS:
            seen = [model for number, model in enumerate(self.remembering) if number != without]
            return self.beside_others(attack, rows, seen)
        return np.stack([ALONE[attack](model) for model in rows])

    def beside_others(self, attack: str, rows: Sequence[Signals], seen: Sequence[Signals]) -> Floats:
        """Scores of models that did not see the records, by all others."""
        if attack == "rmia":
            sides = [np.stack([model.losses for model in side]) for side in (rows, seen)]
            populations = [np.stack([model.test_losses for model in side]) for side in (rows, seen)]
            return rmia(*(np.exp(-losses) for losses in (*sides, *populations)))
        unseen = np.stack([SIGNALS[attack](model) for model in rows])
        if attack == "lira-offline":
            return lira_offline(unseen)
        return lira_online(unseen, np.stack([SIGNALS[attack](model) for model in seen]))

    def counted(self, attack: str, scores: Floats) -> Floats:
        """What is ranked of scores: of the paper's attack its verdicts, 1 for a member."""
        return np.asarray(scores > 0.0, dtype=np.float64) if attack == "threshold" else scores
