"""What models are asked, and what they say: a network by its softmax, an extractor by exact heads on its features.

A model's features are computed where the study is; all else about it in a process of this machine, while the next model
is embedded.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from lab.compare.measures import SIDES, Answers
from lab.compare.pieces import Arrays
from lab.compare.study import Study
from maxrr import LinearSVM
from maxrr.audit.attacks import logit, margins
from maxrr.data import Dataset
from maxrr.nets import embed, split
from maxrr.parallel.engine import InProcess
from maxrr.parallel.processes import staying
from maxrr.svm import ConvergenceError, fit_platt
from maxrr.unlearning.blueprint import quietly

ALONE, HEADS = "alone", "below exact heads"
USES = (ALONE, HEADS)
UNITS = (1.0, 32.0, 1_024.0)  # of features; C follows, so that it is the same problem
FEW = 3_000  # records, on which heads are solved before a process would have started
LARGEST = 1e4  # of weights: a model that has larger ones diverged
RELEARNED = 5_000  # retained records on which heads are relearned, to attack features

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Result = TypeVar("Result")


def finite(network: nn.Module) -> bool:
    """Whether all weights are still numbers of use: a technique may diverge on one model of many."""
    return all(bool((value.abs() < LARGEST).all()) for value in network.parameters())


class Questions:
    """The records that models are asked about, and how: for one forget set and one use."""

    def __init__(self, study: Study, use: str, gone: NDArray[Any], test: Dataset) -> None:
        self.use, self.device, self.training, self.test = use, study.device, study.training, test
        forgotten = self.training.rows(np.sort(gone))
        rest = np.setdiff1d(np.arange(len(self.training)), forgotten)
        drawn = rest[study.rng(5).permutation(len(rest))]
        retained, others = np.sort(drawn[: study.plan.sample]), np.sort(drawn[:RELEARNED])
        labels = {"training": self.training.labels, "test": test.labels}
        self.sheet = Sheet(labels, study.classes, forgotten, retained, rest, np.concatenate([others, forgotten]))

    def answers(self, networks: Iterable[nn.Module]) -> Answers:
        """What these models say."""
        asked = list(networks)
        seen = map(self.seen_by, filter(finite, asked))
        said = iter(side_by_side(answer, seen, len(self.training), self.sheet))
        found = [next(said) if finite(network) else self.sheet.nothing() for network in asked]
        return Answers(
            {side: np.stack([rounded(each[side]) for each in found]) for side in SIDES},
            {side: np.stack([each[f"{side} right"] for each in found]) for side in SIDES},
            np.stack([rounded(each["relearned"]) for each in found]),
        )

    def seen_by(self, network: nn.Module) -> tuple[NDArray[Any], ...]:
        """Features of the training and of the test records; of a network alone its last layer, too."""
        extractor, last = split(network)
        features = [embed(extractor, side, device=self.device) for side in (self.training, self.test)]
        layer = [last.weight, last.bias] if self.use == ALONE else []
        return (*features, *(value.detach().numpy().astype(float) for value in layer))


def rounded(margins: Floats) -> Floats:
    """To float32, as answers are kept: whoever was kept differs from others by no rounding."""
    return margins.astype(np.float32).astype(float)


@dataclass(frozen=True, eq=False)
class Sheet:
    """What is asked about each model.

    Attributes
    ----------
    labels
        Of the training and of the test records.
    classes
        How many there are.
    forgotten, retained, rest
        Rows of the training records: to be forgotten, asked about among those that stay, and all of these.
    relearned
        Those on which heads are relearned to attack features: some that stay, and the forgotten ones.
    """

    labels: dict[str, Ints]
    classes: int
    forgotten: Ints
    retained: Ints
    rest: Ints
    relearned: Ints

    def sides(self, training: NDArray[Any], test: NDArray[Any]) -> list[NDArray[Any]]:
        """Features or labels of the records asked about, in the order of `SIDES`."""
        return [training[self.forgotten], training[self.retained], test]

    def nothing(self) -> Arrays:
        """What a diverged model says: every class is as likely as the others, and nothing is right."""
        found: Arrays = {"relearned": np.zeros(len(self.forgotten))}
        for name, labels in zip(SIDES, self.sides(**self.labels), strict=True):
            found[name] = np.full(len(labels), -np.log(self.classes - 1))
            found[f"{name} right"] = np.zeros(len(labels), dtype=bool)
        return found


def answer(seen: Sequence[NDArray[Any]], sheet: Sheet) -> Arrays:
    """What a model says, of which these are the features, and the last layer if it has one."""
    training, test, *layer = seen
    labels, found = sheet.labels["training"], sheet.nothing()
    relearned = heads_on(training[sheet.relearned], labels[sheet.relearned])
    if relearned is not None:
        scores = relearned.scores(training[sheet.forgotten])
        found["relearned"] = margins(scores, labels[sheet.forgotten], relearned.classes)
    say = by_softmax(*layer) if layer else by_heads(training[sheet.rest], labels[sheet.rest], sheet.classes)
    if say is not None:
        for name, features, true in zip(SIDES, sheet.sides(training, test), sheet.sides(**sheet.labels), strict=True):
            found[name], found[f"{name} right"] = say(features, true)
    return found


Say = Callable[[NDArray[Any], Ints], tuple[Floats, NDArray[np.bool_]]]
"""From features and true labels, the margins log p / (1 − p), and whether the true class is the most probable."""


def by_softmax(weights: Floats, biases: Floats) -> Say:
    """What a network's last layer says."""

    def say(features: NDArray[Any], labels: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        scores = features.astype(float) @ weights.T + biases
        rows = np.arange(len(labels))
        true, others = scores[rows, labels], scores.copy()
        others[rows, labels] = -np.inf
        return true - np.logaddexp.reduce(others, 1), scores.argmax(1) == labels

    return say


def by_heads(features: NDArray[Any], labels: Ints, classes: int) -> Say | None:
    """What exact heads and sigmoids say that are fitted on these records; None if none can be."""
    heads = heads_on(features, labels)
    if heads is None:
        return None
    scaling = fit_platt(heads.scores(features), labels, heads.classes)

    def say(features: NDArray[Any], labels: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        p = np.zeros((len(labels), classes))
        p[:, heads.classes] = scaling.probabilities(heads.scores(features))
        return logit(p, labels), p.argmax(1) == labels

    return say


@dataclass(frozen=True, eq=False)
class Heads:
    """Exact heads, one for each of these classes."""

    classes: Ints
    weights: Floats
    biases: Floats

    def scores(self, features: NDArray[Any]) -> Floats:
        """Of each head, (records × heads)."""
        return np.asarray(features.astype(float) @ self.weights.T + self.biases)


def heads_on(features: NDArray[Any], labels: Ints) -> Heads | None:
    """Exact heads on features. Where a technique leaves too little of these to solve them, the same in other units;
    None where nothing helps.
    """
    for units in UNITS:
        with quietly(), suppress(ConvergenceError):
            heads = LinearSVM(C=units**-2.0).fit(features * np.float32(units), labels)
            return Heads(heads.classes_, heads.coef_ * units, heads.intercept_)
    return None


def side_by_side(work: Callable[..., Result], models: Iterable[Any], records: int, *more: Any) -> list[Result]:
    """Do the same with what is seen of each model: in processes, where that takes longer than to start them."""
    with nullcontext(InProcess()) if records < FEW else staying(__name__) as engine:
        return list(engine.map(work, models, *more))
