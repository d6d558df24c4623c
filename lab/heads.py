"""The heads over an extractor's features, by both schemes to tell many classes apart with SVMs for two.

The paper says one-vs-rest. The class that most people take for a linear SVM, scikit-learn's `SVC`, is one-vs-one inside
(its `decision_function_shape="ovr"` only changes the shape of the answer), so the studies have both.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maxrr.parallel import EngineLike
from maxrr.progress import Progress
from maxrr.svm import Certificate, LinearSVM, influential_in
from maxrr.svm.arrays import Array, to_numpy
from maxrr.svm.schemes import Scheme, choose
from maxrr.unlearning.flat_heads import quietly

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SMALL = 2**18  # numbers in a run's features: up to here heads are solved before a process would have started


class Heads(Protocol):
    """What studies ask of the heads over one extractor."""

    @property
    def classes(self) -> Ints:
        """Those that the heads know, sorted."""

    @property
    def influential(self) -> Bools:
        """Which training records shape the heads; never one that they were not fitted to."""

    @property
    def gap(self) -> float:
        """How far the heads are from their optimum at most: the worst relative duality gap."""

    def scores(self, features: Array) -> Floats:
        """Decision values, (records × heads)."""

    def choose(self, scores: Floats) -> Ints:
        """The class of each record."""


def accuracy(heads: Heads, features: Array, labels: Ints) -> float:
    """The share of records that get their own class."""
    return float(np.mean(heads.choose(heads.scores(features)) == labels))


@dataclass(frozen=True, eq=False)
class Linear:
    """Weights and biases of all heads, and which records shape any of them."""

    classes: Ints
    weights: Floats
    biases: Floats
    influential: Bools
    gap: float  # the worst of all heads, relative

    def scores(self, features: Array) -> Floats:
        """Decision values in float64."""
        return np.asarray(to_numpy(features).astype(np.float64) @ self.weights.T + self.biases)


class OneVsRest(Linear):
    """One head per class, against all others; the largest score wins."""

    def choose(self, scores: Floats) -> Ints:
        return np.asarray(self.classes[choose("one-vs-rest", scores, len(self.classes))])


class OneVsOne(Linear):
    """One head per pair of classes, positive for the second; each has a vote, and the first class wins a tie."""

    def choose(self, scores: Floats) -> Ints:
        return np.asarray(self.classes[choose("one-vs-one", scores, len(self.classes))])


def solve_one_vs_rest(X: Array, y: Ints, mask: Bools | None, C: float = 1.0) -> OneVsRest:
    """Fitted to the records of the mask; None stands for all."""
    return OneVsRest(*fit_svm("one-vs-rest", X, y, mask, C))


def solve_one_vs_one(X: Array, y: Ints, mask: Bools | None, C: float = 1.0) -> OneVsOne:
    """The same problems as scikit-learn's `SVC(kernel="linear")`, solved to rounding."""
    return OneVsOne(*fit_svm("one-vs-one", X, y, mask, C))


def fit_svm(
    scheme: Scheme, X: Array, y: Ints, mask: Bools | None, C: float
) -> tuple[Ints, Floats, Floats, Bools, float]:  # fmt: skip
    """What `Linear` holds. No warning that a head has no weights: that is what the study found, and counted as such."""
    rows = np.arange(len(y)) if mask is None else np.flatnonzero(mask)
    with quietly():
        model = LinearSVM(C, scheme=scheme).fit(to_numpy(X)[rows], y[rows])
    influential = np.isin(np.arange(len(y)), rows[model.support_])
    return model.classes_, model.coef_, model.intercept_, influential, worst_gap(model.certificate_)


def worst_gap(certificates: Iterable[Certificate]) -> float:
    """The worst relative gap of these heads. One that is not solved is an error: its numbers would mean nothing."""
    found = list(certificates)
    if not all(certificate.solved for certificate in found):
        raise ValueError("an SVM was not solved to its certificate: please report it, with the command and the seed")
    return max(certificate.relative_gap for certificate in found)


# Many at once

SOLVE: dict[Scheme, Callable[[Array, Ints, Bools | None, float], Heads]] = {
    "one-vs-rest": solve_one_vs_rest,
    "one-vs-one": solve_one_vs_one,
}

MADE: dict[Scheme, type[OneVsRest] | type[OneVsOne]] = {"one-vs-rest": OneVsRest, "one-vs-one": OneVsOne}


def solve(
    scheme: Scheme, runs: Sequence[Array], y: Ints, masks: Sequence[Bools | None], progress: Progress | None = None,
    C: float = 1.0, engine: EngineLike = None,
) -> Iterator[Heads]:  # fmt: skip
    """The heads on each of these features, fitted to the records of the mask beside it; None stands for all.

    Neighbours with the same mask, the same array, are solved together where they can be. Small ones are solved here,
    others where the engine says, or else in processes of this machine.
    """
    if not runs or np.prod(runs[0].shape) <= SMALL:
        yield from (SOLVE[scheme](X, y, mask, C) for X, mask in zip(runs, masks, strict=True))
        return
    solved = influential_in(runs, y, C=C, scheme=scheme, masks=masks, progress=progress, engine=engine)
    for mask, found in zip(masks, solved, strict=True):
        classes, gap = np.unique(y if mask is None else y[mask]), worst_gap(found.certificates)
        yield MADE[scheme](classes, found.weights, found.biases, found.mask, gap)
