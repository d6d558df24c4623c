"""Classification problems that are easy to get wrong, as Hypothesis strategies.

Every problem is made from a seed by NumPy, so a failing one is named by a handful of small numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from maxrr import LinearSVM

Family = Callable[[np.random.Generator, int, int, int], tuple[NDArray, NDArray]]


@dataclass(frozen=True)
class Problem:
    """Samples with labels, the penalty, and where they come from."""

    family: str
    seed: int
    size: tuple[int, int, int]  # n, d, classes as asked for; a family may have made others of them
    C: float
    X: NDArray
    y: NDArray

    def _repr_pretty_(self, printer, cycle) -> None:  # what Hypothesis prints
        n, d, classes = self.size
        printer.text(f"make({self.family!r}, {self.seed}, n={n}, d={d}, classes={classes}, C={self.C!r})")

    def fit(self) -> LinearSVM:
        return LinearSVM(self.C).fit(self.X, self.y)

    def fit_on(self, rows) -> LinearSVM:
        """From scratch on some rows."""
        return LinearSVM(self.C).fit(self.X[rows], self.y[rows])


def labels(rng: np.random.Generator, n: int, classes: int) -> NDArray[np.int64]:
    """Every class at least twice."""
    y = np.concatenate([np.arange(2 * classes) % classes, rng.integers(0, classes, max(0, n - 2 * classes))])
    return rng.permutation(y)


def well_behaved(rng, n, d, classes):
    y = labels(rng, n, classes)
    return rng.normal(size=(len(y), d)) + rng.normal(size=(classes, d))[y], y


def separable(rng, n, d, classes):
    """Each class in a ball of its own on a sphere: every head separates exactly once there are enough dimensions."""
    d = max(d, classes)
    y = labels(rng, n, classes)
    return 0.3 * rng.uniform(-1.0, 1.0, (len(y), d)) / np.sqrt(d) + 3.0 * np.eye(classes, d)[y], y


def duplicates(rng, n, d, classes):
    """Each sample about three times, always with the same label."""
    X, y = well_behaved(rng, max(2 * classes, n // 3), d, classes)
    again = rng.integers(0, len(y), n)
    return np.concatenate([X, X[again]]), np.concatenate([y, y[again]])


def conflicting_duplicates(rng, n, d, classes):
    """Samples repeated with other labels."""
    X, y = well_behaved(rng, max(2 * classes, n // 2), d, classes)
    again = rng.integers(0, len(y), n // 2)
    return np.concatenate([X, X[again]]), np.concatenate([y, (y[again] + 1) % classes])


def nothing_but_conflict(rng, n, d, classes):
    """Every sample once with each label: no head can do better than w = 0."""
    X = rng.normal(size=(max(2, n // classes), d))
    return np.repeat(X, classes, axis=0), np.tile(np.arange(classes), len(X))


def constant_columns(rng, n, d, classes):
    """A column of zeros, one of ones, one of a large constant, one that repeats another."""
    X, y = well_behaved(rng, n, d, classes)
    ones = np.ones((len(y), 1))
    return np.concatenate([X, 0.0 * ones, ones, -1000.0 * ones, X[:, :1]], axis=1), y


def wide(rng, n, d, classes):
    """Fewer samples than features."""
    y = labels(rng, min(n, 15), classes)
    return rng.normal(size=(len(y), len(y) + 3 * d)), y


def tiny_class(rng, n, d, classes):
    """The last class has 2 samples."""
    y = np.concatenate([labels(rng, max(n, 3 * classes), classes - 1) if classes > 2 else np.zeros(n, int)])
    y = np.concatenate([y, [classes - 1, classes - 1]])
    return rng.normal(size=(len(y), d)) + rng.normal(size=(classes, d))[y], y


def grid(rng, n, d, classes):
    """Small integers, with classes cut along a plane and a little noise: ties, duplicates, conflicts."""
    y = labels(rng, n, classes)
    X = rng.integers(-2, 3, (len(y), min(d, 3))) + rng.integers(-1, 2, (classes, min(d, 3)))[y]
    return X.astype(float), y


def integers(rng, n, d, classes):
    X, y = grid(rng, n, d, classes)
    return X.astype(rng.choice([np.int8, np.int32, np.int64])), y


def single_precision(rng, n, d, classes):
    X, y = well_behaved(rng, n, d, classes)
    return X.astype(np.float32), y


def scaled_down(rng, n, d, classes):
    X, y = well_behaved(rng, n, d, classes)
    return 1e-6 * X, y


def scaled_up(rng, n, d, classes):
    X, y = well_behaved(rng, n, d, classes)
    return 1e6 * X, y


def rectified(rng, n, d, classes):
    """Half of all features exactly zero, as after a ReLU."""
    X, y = well_behaved(rng, n, 2 * d, classes)
    return np.maximum(X @ rng.normal(size=(2 * d, 2 * d)), 0.0), y


FAMILIES: dict[str, Family] = {
    family.__name__: family
    for family in (
        well_behaved, separable, duplicates, conflicting_duplicates, nothing_but_conflict, constant_columns, wide,
        tiny_class, grid, integers, single_precision, rectified, scaled_down, scaled_up,
    )
}  # fmt: skip
UNSCALED = tuple(name for name in FAMILIES if not name.startswith("scaled"))


def make(family: str, seed: int, n: int = 40, d: int = 3, classes: int = 3, C: float = 1.0) -> Problem:
    """One problem, its samples in no particular order."""
    rng = np.random.default_rng(seed)
    X, y = FAMILIES[family](rng, n, d, classes)
    order = rng.permutation(len(y))
    return Problem(family, seed, (n, d, classes), C, X[order], y[order])


penalties = st.one_of(
    st.sampled_from([1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3]), st.floats(-3.0, 3.0).map(lambda power: 10.0**power)
)


@st.composite
def problems(
    draw, families: tuple[str, ...] = tuple(FAMILIES), C: st.SearchStrategy[float] = penalties, most: int = 60
):
    """Any problem of these families."""
    return make(
        draw(st.sampled_from(families)),
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(8, most)),
        draw(st.integers(1, 6)),
        draw(st.integers(2, 4)),
        draw(C),
    )


def decided(*models: LinearSVM) -> bool:
    """Whether every head of every model claims its bytes."""
    return all(certificate.decided for model in models for certificate in model.certificate_)


def assert_equal(one: LinearSVM, other: LinearSVM, X: NDArray) -> None:
    """The same bytes where both claim them, and the same decision values on X always.

    1e-10 is relative to 1 + the largest score: scores of a head are sums of terms that large, each rounded to 1e-16.
    """
    assert np.array_equal(one.classes_, other.classes_)
    if decided(one, other):
        assert one.coef_.tobytes() == other.coef_.tobytes()
        assert one.intercept_.tobytes() == other.intercept_.tobytes()
    ours, theirs = one.decision_function(X), other.decision_function(X)
    assert np.max(np.abs(ours - theirs)) <= 1e-10 * (1.0 + np.max(np.abs(theirs)))


def snapshot(model: LinearSVM) -> tuple:
    """Everything about a model that a failed operation must not change."""
    return (
        model.coef_.tobytes(), model.intercept_.tobytes(), model.classes_.tolist(), model.certificate_,
        model.support_.tobytes(), tuple(part.tobytes() for part in model.multipliers_), model.n_features_in_,
    )  # fmt: skip
