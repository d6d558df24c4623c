"""The heads over an extractor's features, by both schemes to tell many classes apart with SVMs for two.

The paper says one-vs-rest. The class that most people take for a linear SVM, scikit-learn's `SVC`, is one-vs-one inside
(its `decision_function_shape="ovr"` only changes the shape of the answer), so the studies have both.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxrr import LinearSVM
from maxrr.parallel.ray_cluster import EngineLike
from maxrr.progress import Progress
from maxrr.svm import Certificate, FlatHeadWarning, influential_in
from maxrr.svm.arrays import Array, to_numpy

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Scheme = Literal["one-vs-rest", "one-vs-one"]
"""How SVMs for two classes tell many apart: one for each class, or for each pair of classes."""
Class = TypeVar("Class")

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
        wide = np.hstack([-scores, scores]) if len(self.classes) == 2 else scores
        return np.asarray(self.classes[wide.argmax(axis=1)])


class OneVsOne(Linear):
    """One head per pair of classes, positive for the second; each has a vote, and the first class wins a tie."""

    def choose(self, scores: Floats) -> Ints:
        votes = np.zeros((len(self.classes), len(scores)), dtype=np.int64)
        for (one, other), score in zip(pairs(range(len(self.classes))), scores.T, strict=True):
            second = score > 0.0
            votes[other] += second
            votes[one] += ~second
        return np.asarray(self.classes[votes.argmax(axis=0)])


def pairs(classes: Iterable[Class]) -> list[tuple[Class, Class]]:
    """The classes of every head, in the order of the heads. A head is positive for the second of its two.

    >>> pairs("abc")
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    return list(combinations(classes, 2))


def solve_one_vs_rest(X: Array, y: Ints, mask: Bools | None, C: float = 1.0) -> OneVsRest:
    """Fitted to the records of the mask; None stands for all."""
    model, chosen = fit_svm(X, y, np.ones(len(y), dtype=bool) if mask is None else mask, C)
    influential = np.isin(np.arange(len(y)), chosen[model.support_])
    return OneVsRest(model.classes_, model.coef_, model.intercept_, influential, worst_gap(model.certificate_))


def solve_one_vs_one(X: Array, y: Ints, mask: Bools | None, C: float = 1.0) -> OneVsOne:
    """The same problems as scikit-learn's `SVC(kernel="linear")`, solved to rounding."""
    classes = np.unique(y if mask is None else y[mask])
    found = [fit_svm(X, y, members, C) for members in members_of_pairs(y, mask, classes)]
    influential = np.zeros(len(y), dtype=bool)
    for model, chosen in found:
        influential[chosen[model.support_]] = True
    return OneVsOne(
        classes,
        np.concatenate([model.coef_ for model, _ in found]),
        np.concatenate([model.intercept_ for model, _ in found]),
        influential,
        worst_gap(certificate for model, _ in found for certificate in model.certificate_),
    )


def members_of_pairs(y: Ints, mask: Bools | None, classes: Ints) -> Iterator[Bools]:
    """Which records of the mask are of either class, for each pair."""
    for pair in pairs(classes):
        members = np.isin(y, pair)
        yield members if mask is None else members & mask


def fit_svm(X: Array, y: Ints, members: Bools, C: float) -> tuple[LinearSVM, Ints]:
    """An SVM on some of the records, and which these are.

    There is no warning that a head has no weights: that is what the study found, and counted as such.
    """
    chosen = np.flatnonzero(members)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlatHeadWarning)
        return LinearSVM(C).fit(X if members.all() else to_numpy(X)[chosen], y[chosen]), chosen


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
    if scheme == "one-vs-one":
        yield from solve_pairs(runs, y, masks, progress, C, engine)
        return
    solved = influential_in(runs, y, C=C, masks=masks, progress=progress, engine=engine)
    for mask, found in zip(masks, solved, strict=True):
        classes, gap = np.unique(y if mask is None else y[mask]), worst_gap(found.certificates)
        yield OneVsRest(classes, found.weights, found.biases, found.mask, gap)


def solve_pairs(
    runs: Sequence[Array],
    y: Ints,
    masks: Sequence[Bools | None],
    progress: Progress | None,
    C: float,
    engine: EngineLike,
) -> Iterator[OneVsOne]:
    """As `solve`, for pairs: all pairs of neighbours with the same mask at once."""
    solved = influential_in(runs, y, C=C, masks=masks, pairs=True, engine=engine)
    for done, mask in enumerate(masks, 1):
        classes = np.unique(y if mask is None else y[mask])
        found = list(islice(solved, len(pairs(classes))))
        if progress is not None:
            progress("heads of pairs", done, len(runs))
        gap = worst_gap(certificate for one in found for certificate in one.certificates)
        weights, biases = (np.concatenate([getattr(one, name) for one in found]) for name in ("weights", "biases"))
        yield OneVsOne(classes, weights, biases, np.any([one.mask for one in found], axis=0), gap)
