"""Long streams of requests to one model: samples leave and arrive for hundreds of steps, and each state is judged.

The data are chosen to hurt whoever keeps bounds on margins instead of margins: margins that move far or lie densely
around 1, samples of very different lengths, features with a large common mean, classes that drift, come and vanish.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr import LinearSVM
from maxrr.svm import ConvergenceError
from tests.svm.referee import Tally

Source = Callable[[np.random.Generator, NDArray[Any], NDArray[Any], int], NDArray[Any]]
LABELS, D = 5, 4


def ordinary(rng, centres, y, step):
    return centres[y] + rng.normal(size=(len(y), D))


def dense_around_one(rng, centres, y, step):
    """Every class around a corner of its own, at distances of 1 to 1e-9: so are its margins around 1."""
    return 2.0 * np.eye(LABELS, D + 1)[y] + 10.0 ** rng.uniform(-9.0, 0.0, (len(y), 1)) * rng.normal(
        size=(len(y), D + 1)
    )


def of_all_lengths(rng, centres, y, step):
    """The classes differ in short columns; what a sample has in the long ones says nothing."""
    X = ordinary(rng, centres, y, step)
    return np.column_stack([X[:, :2], 10.0 ** rng.uniform(-2.0, 4.0, (len(y), 1)) * rng.normal(size=(len(y), 2))])


def stretched(rng, centres, y, step):
    """The same directions at lengths from 0.01 to 1,000: many of them far outside, some far on the wrong side."""
    return ordinary(rng, centres, y, step) * 10.0 ** rng.uniform(-2.0, 3.0, (len(y), 1))


def far_from_zero(rng, centres, y, step):
    """A mean a thousand times as long as the differences: any bound by |x| is a wide one."""
    return 1000.0 + ordinary(rng, centres, y, step)


def drifting(rng, centres, y, step):
    """The centres turn, a right angle within a hundred steps."""
    turn = 0.5 * np.pi * step / 100.0
    X = 2.0 * centres[y] + 0.7 * rng.normal(size=(len(y), D))
    first, second = X[:, 0].copy(), X[:, 1].copy()
    X[:, 0], X[:, 1] = np.cos(turn) * first - np.sin(turn) * second, np.sin(turn) * first + np.cos(turn) * second
    return X


def uneven_columns(rng, centres, y, step):
    """Tiny features and large ones, a constant column, one of zeros, one that repeats another."""
    X = ordinary(rng, centres, y, step)
    ones = np.ones(len(y))
    return np.column_stack([1e-4 * X[:, 0], 1e2 * X[:, 1], X[:, 2], -20.0 * ones, 0.0 * ones, X[:, 2]])


def tied(rng, centres, y, step):
    """Small whole numbers: samples that repeat, contradict, and share a margin."""
    return np.round(ordinary(rng, centres, y, step)[:, :3])


def hardly_separable(rng, centres, y, step):
    """Mostly noise: nearly every sample is influential, inside the margin of some head."""
    return 0.3 * centres[y] + rng.normal(size=(len(y), D))


SOURCES: dict[str, Source] = {
    source.__name__: source
    for source in (
        ordinary, dense_around_one, of_all_lengths, stretched, far_from_zero, drifting, uneven_columns, tied,
        hardly_separable,
    )
}  # fmt: skip


@dataclass
class Stream:
    """A model under requests, and beside it the samples that it should hold."""

    source: str
    seed: int
    C: float = 1.0
    weighted: bool = False
    size: int = 60
    classes: int = 3
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([self.seed, sorted(SOURCES).index(self.source)])
        self.centres = 1.5 * self.rng.normal(size=(LABELS, D))
        self.steps = self.refused = 0
        y = self.rng.permutation(np.arange(self.size) % self.classes)
        self.X = self.made(y)
        self.y, self.weights = y, self.weighing(len(y))
        self.rows = np.arange(len(y))
        self.used = len(y)
        self.gone = self.X[:0], self.y[:0], self.weights[:0]
        self.model = LinearSVM(self.C).fit(self.X, self.y, sample_weight=self.weights)

    # Samples

    def made(self, y: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(SOURCES[self.source](self.rng, self.centres, y, self.steps))

    def weighing(self, count: int) -> NDArray[Any]:
        if not self.weighted:
            return np.ones(count)
        several = self.rng.choice([0.0, 0.5, 1.0, 2.0, 3.0], count, p=[0.05, 0.2, 0.35, 0.2, 0.2])
        return np.where(self.rng.random(count) < 0.5, several, 10.0 ** self.rng.uniform(-2.0, 2.0, count))

    def influential(self) -> NDArray[Any]:
        """Places of the samples that shape some head."""
        return np.flatnonzero(np.isin(self.rows, self.model.support_))

    def labels(self) -> NDArray[Any]:
        return np.unique(self.y[self.weights > 0.0])

    # Requests

    def leave(self, places: NDArray[Any]) -> bool:
        """These samples are forgotten, if two classes stay."""
        return self.change(places, self.X[:0], self.y[:0], self.weights[:0])

    def arrive(self, X: NDArray[Any], y: NDArray[Any], weights: NDArray[Any] | None = None) -> bool:
        weights = self.weighing(len(y)) if weights is None else weights
        return self.change(np.empty(0, np.int64), X, y, weights)

    def change(
        self, leaving: NDArray[Any], X: NDArray[Any], y: NDArray[Any], weights: NDArray[Any]
    ) -> bool:  # fmt: skip
        """Forget, insert, or both in one move, here and in the model; False if nothing came of it.

        That is so where too few classes would be left, and where a head is beyond what float64 can tell apart: the
        model is then as it was, and whoever runs the stream sees to it that this is rare.
        """
        stay = np.delete(np.arange(len(self.y)), leaving)
        weights_after = np.concatenate([self.weights[stay], weights])
        y_after = np.concatenate([self.y[stay], y])
        if len(np.unique(y_after[weights_after > 0.0])) < 2 or not len(leaving) + len(y):
            return False
        try:
            self.request(self.rng.permutation(self.rows[leaving]), X, y, weights)
        except ConvergenceError:
            self.refused += 1
            assert self.model._rows.tolist() == self.rows.tolist()
            return False
        if len(leaving):
            self.gone = self.X[leaving], self.y[leaving], self.weights[leaving]
        self.X, self.y, self.weights = np.concatenate([self.X[stay], X]), y_after, weights_after
        self.rows = np.concatenate([self.rows[stay], self.used + np.arange(len(y))])
        self.used += len(y)
        assert self.model._rows.tolist() == self.rows.tolist()
        assert all(certificate.solved for certificate in self.model.certificate_)
        return True

    def request(self, leaving: NDArray[Any], X: NDArray[Any], y: NDArray[Any], weights: NDArray[Any]) -> None:
        """The same of the model alone."""
        if not len(y):
            self.model.forget(leaving)
        elif not len(leaving):
            self.model.insert(X, y, sample_weight=weights)
        else:
            self.model = self.model._with_more(X, y, instead_of=leaving, sample_weight=weights)
            self.model._erase()

    def some(self, places: NDArray[Any], most: int) -> NDArray[Any]:
        return self.rng.permutation(places)[: self.rng.integers(1, most + 1)]

    def forget_one_influential(self) -> bool:
        return self.leave(self.rng.permutation(self.influential())[:1])

    def forget_some_influential(self) -> bool:
        return self.leave(self.some(self.influential(), 8))

    def forget_one_without_influence(self) -> bool:
        return self.leave(self.rng.permutation(np.setdiff1d(np.arange(len(self.y)), self.influential()))[:1])

    def forget_a_third(self) -> bool:
        return self.leave(self.some(np.arange(len(self.y)), max(1, len(self.y) // 3)))

    def insert_one(self) -> bool:
        y = self.rng.choice(self.labels(), 1)
        return self.arrive(self.made(y), y)

    def insert_many(self) -> bool:
        y = self.rng.choice(self.labels(), self.rng.integers(2, max(3, self.size // 3)))
        return self.arrive(self.made(y), y)

    def insert_near_the_margin(self) -> bool:
        """Beside an influential sample, so close that only exact arithmetic tells them apart."""
        near = self.some(self.influential(), 4)
        return self.arrive(self.X[near] * (1.0 + 10.0 ** self.rng.uniform(-15.0, -1.0, (len(near), 1))), self.y[near])

    def insert_again(self) -> bool:
        near = self.some(self.influential(), 3)
        return self.arrive(self.X[near], self.y[near])

    def insert_a_contradiction(self) -> bool:
        near = self.some(self.influential(), 2)
        return self.arrive(self.X[near], self.rng.choice(self.labels(), len(near)))

    def insert_far_away(self) -> bool:
        """Up to a thousand times as long as others: far on the right side, or far on the wrong one."""
        y = self.rng.choice(self.labels(), self.rng.integers(1, 3))
        return self.arrive(self.made(y) * 10.0 ** self.rng.uniform(1.0, 3.0, (len(y), 1)), y)

    def exchange(self) -> bool:
        y = self.rng.choice(self.labels(), self.rng.integers(1, 5))
        return self.change(self.some(np.arange(len(self.y)), 4), self.made(y), y, self.weighing(len(y)))

    def forget_a_class(self) -> bool:
        return self.leave(np.flatnonzero(self.y == self.rng.choice(self.labels())))

    def keep_two_classes(self) -> bool:
        return self.leave(np.flatnonzero(~np.isin(self.y, self.rng.permutation(self.labels())[:2])))

    def insert_a_class(self) -> bool:
        missing = np.setdiff1d(np.arange(LABELS), self.labels())
        if not len(missing):
            return False
        y = np.full(self.rng.integers(1, 12), self.rng.choice(missing))
        return self.arrive(self.made(y), y)

    def insert_what_left(self) -> bool:
        return self.arrive(*self.gone) if len(self.gone[1]) else False

    def look_ahead(self) -> bool:
        """A model without some samples that nobody takes: this one stays as it is."""
        rows = self.rows[self.some(self.influential(), 3)]
        before = self.model.coef_.tobytes(), self.model.intercept_.tobytes(), self.model.certificate_
        if len(np.unique(self.y[~np.isin(self.rows, rows) & (self.weights > 0.0)])) >= 2:
            self.model._without(rows)
        assert before == (self.model.coef_.tobytes(), self.model.intercept_.tobytes(), self.model.certificate_)
        return True

    def step(self) -> str:
        """One request of any kind; few and small enough that the number of samples stays about what it was."""
        self.steps += 1
        if len(self.y) > 2 * self.size:
            return "forget_a_third" if self.forget_a_third() else "none"
        if len(self.y) < self.size // 2:
            return "insert_many" if self.insert_many() else "none"
        kind = str(self.rng.choice(list(REQUESTS), p=np.array(list(REQUESTS.values())) / sum(REQUESTS.values())))
        return kind if getattr(self, kind)() else "none"

    # Judgement

    def judge(self) -> None:
        """No claim is false, and the model is that of a fit on these samples in another order, to the byte."""
        self.tally.judge(self.model, self.X, self.y, self.C, self.weights)
        order = self.rng.permutation(len(self.y))
        try:
            fresh = LinearSVM(self.C).fit(self.X[order], self.y[order], sample_weight=self.weights[order])
        except ConvergenceError:  # as rare as a refused request: what the model claims was proved above
            self.refused += 1
            return
        assert fresh.classes_.tolist() == self.model.classes_.tolist()
        pairs = zip(self.model.certificate_, fresh.certificate_, strict=True)
        for head, (ours, theirs) in enumerate(pairs):
            if ours.decided and theirs.decided:
                assert self.model.coef_[head].tobytes() == fresh.coef_[head].tobytes(), self
                assert self.model.intercept_[head].tobytes() == fresh.intercept_[head].tobytes(), self
                assert (ours.on_margin, ours.inside) == (theirs.on_margin, theirs.inside)
                influential = np.sort(self.rows[order[fresh.influential_[head]]])
                assert self.model.influential_[head].tolist() == influential.tolist()
            else:
                apart = np.max(np.abs(self.X @ (self.model.coef_[head] - fresh.coef_[head])))
                apart += abs(self.model.intercept_[head] - fresh.intercept_[head])
                assert apart <= ours.error + theirs.error

    def run(self, steps: int, every: int) -> Tally:
        """So many requests, judged after every few of them."""
        for number in range(1, steps + 1):
            self.step()
            if number % every == 0 or number == steps:
                self.judge()
        return self.tally


REQUESTS = {  # how often each is made
    "forget_one_influential": 6, "forget_some_influential": 3, "forget_one_without_influence": 4, "forget_a_third": 1,
    "insert_one": 6, "insert_many": 1, "insert_near_the_margin": 4, "insert_again": 2, "insert_a_contradiction": 2,
    "insert_far_away": 2, "exchange": 4, "forget_a_class": 1, "keep_two_classes": 1, "insert_a_class": 2,
    "insert_what_left": 2, "look_ahead": 1,
}  # fmt: skip
