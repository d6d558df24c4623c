"""Solved heads over an extractor's features, by both ways to tell many classes apart with SVMs that know two.

The paper says one-vs-rest. The class that most people take for a linear SVM, scikit-learn's `SVC`, is one-vs-one inside
(its `decision_function_shape="ovr"` only changes the shape of the answer), so the experiments have both.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from maxrr.svm import Certificate, LinearSVM
from maxrr.svm.arrays import Array, to_numpy
from maxrr.unlearning.flat_heads import quietly

Kind = Literal["one-vs-rest", "one-vs-one"]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Head(Protocol):
    """What experiments ask of a head."""

    @property
    def classes(self) -> Ints:
        """Those that it knows, sorted."""

    @property
    def influential(self) -> Bools:
        """Who shapes it, among all training records; never one that it was not fitted to."""

    @property
    def gap(self) -> float:
        """How far its SVMs are from their optimum at most: the worst relative duality gap."""

    def scores(self, features: Array) -> Floats:
        """Decision values, (records × its SVMs)."""

    def chosen(self, scores: Floats) -> Ints:
        """The class of each record."""


def accuracy(head: Head, features: Array, labels: Ints) -> float:
    """The share of records that get their own class."""
    return float(np.mean(head.chosen(head.scores(features)) == labels))


@dataclass(frozen=True, eq=False)
class Linear:
    """Weights and biases of SVMs for two classes each, and who shapes any of them."""

    classes: Ints
    weights: Floats
    biases: Floats
    influential: Bools
    gap: float  # the worst of its SVMs', relative

    def scores(self, features: Array) -> Floats:
        """Decision values in float64."""
        return np.asarray(to_numpy(features).astype(np.float64) @ self.weights.T + self.biases)


class OneVsRest(Linear):
    """An SVM a class against all others; the largest score wins."""

    def chosen(self, scores: Floats) -> Ints:
        if scores.shape[1] == 1:  # two classes share one
            return np.asarray(self.classes[(scores[:, 0] > 0.0).astype(int)])
        return np.asarray(self.classes[scores.argmax(1)])


class OneVsOne(Linear):
    """An SVM a pair of classes, positive for the second; each has a vote, and of equal ones the first class wins."""

    def chosen(self, scores: Floats) -> Ints:
        votes = np.zeros((len(scores), len(self.classes)), dtype=int)
        for column, (one, other) in enumerate(pairs(len(self.classes))):
            votes[:, other] += scores[:, column] > 0.0
            votes[:, one] += scores[:, column] <= 0.0
        return np.asarray(self.classes[votes.argmax(1)])


def pairs(classes: int) -> list[tuple[int, int]]:
    """The columns of one-vs-one scores.

    >>> pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return list(combinations(range(classes), 2))


def solve_one_vs_rest(X: Array, y: Ints, mask: Bools | None, C: float = 1.0) -> OneVsRest:
    """Fitted to the records of the mask; None stands for all."""
    rows = np.arange(len(y)) if mask is None else np.flatnonzero(mask)
    model = fitted(to_numpy(X)[rows], y[rows], C)
    influential = np.isin(np.arange(len(y)), rows[model.support_])
    return OneVsRest(model.classes_, model.coef_, model.intercept_, influential, worst(model.certificate_))


def solve_one_vs_one(X: Array, y: Ints, mask: Bools | None, C: float = 1.0) -> OneVsOne:
    """The same problems as scikit-learn's `SVC(kernel="linear")`, solved to rounding."""
    rows = np.arange(len(y)) if mask is None else np.flatnonzero(mask)
    features, classes = to_numpy(X), np.unique(y[rows])
    members = [rows[y[rows] == code] for code in classes]
    weights, biases, gaps, influential = [], [], [], np.zeros(len(y), dtype=bool)
    for one, other in pairs(len(classes)):
        both = np.sort(np.concatenate([members[one], members[other]]))
        model = fitted(features[both], y[both], C)
        weights.append(model.coef_[0])
        biases.append(model.intercept_[0])
        gaps.append(worst(model.certificate_))
        influential[both[model.support_]] = True
    return OneVsOne(classes, np.stack(weights), np.array(biases), influential, max(gaps))


def fitted(features: Array, labels: Ints, C: float) -> LinearSVM:
    """An SVM. Nobody is warned of one that has no weights: it is what the experiment found, and is counted as such."""
    with quietly():
        return LinearSVM(C=C).fit(features, labels)


def worst(certificates: Iterable[Certificate]) -> float:
    """The worst relative gap of a head's SVMs; a number from one that is not solved would be nobody's."""
    found = list(certificates)
    if not all(certificate.solved for certificate in found):
        raise ValueError("an SVM was not solved to its certificate: please report it, with the command and the seed")
    return max(certificate.relative_gap for certificate in found)
