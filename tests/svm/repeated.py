"""Weighted samples at the size of embeddings, against repeated ones and an interior point."""

import numpy as np

from maxrr import LinearSVM
from tests.svm.embeddings import embeddings
from tests.svm.oracles import with_clarabel


def check_repeated(n: int, d: int, classes: int, C: float, seed: int) -> None:
    """A sample of weight k is k equal samples: when fitted, when forgotten, when inserted."""
    X, y = embeddings(n, d, classes, seed=seed)
    times = np.random.default_rng(seed).integers(1, 5, n)
    later = np.arange(n - n // 20, n)
    begun = np.arange(later[0])
    copies = np.repeat(begun, times[begun])
    weighted = LinearSVM(C).fit(X[begun], y[begun], sample_weight=times[begun])
    repeated = LinearSVM(C).fit(X[copies], y[copies])
    assert_same(weighted, repeated)
    gone = weighted.support_[:: max(1, len(weighted.support_) // 8)]
    weighted.forget(gone)
    repeated.forget(np.flatnonzero(np.isin(copies, gone)))
    assert_same(weighted, repeated)
    again = np.repeat(later, times[later])
    weighted.insert(X[later], y[later], sample_weight=times[later])
    repeated.insert(X[again], y[again])
    assert_same(weighted, repeated)


def assert_same(weighted: LinearSVM, repeated: LinearSVM) -> None:
    """The same optimum: to 1e-10 in any case, and to the byte where it is decided, as here it must be."""
    assert np.max(np.abs(weighted.coef_ - repeated.coef_)) <= 1e-10 * np.max(np.abs(repeated.coef_))
    assert np.max(np.abs(weighted.intercept_ - repeated.intercept_)) <= 1e-10 * (
        1 + np.max(np.abs(repeated.intercept_))
    )
    for ours, theirs in zip(weighted.certificate_, repeated.certificate_, strict=True):
        assert abs(ours.primal - theirs.primal) <= 1e-10 * theirs.primal
        assert ours.decided
        assert theirs.decided
    assert weighted.coef_.tobytes() == repeated.coef_.tobytes()
    assert weighted.intercept_.tobytes() == repeated.intercept_.tobytes()


def check_interior_point(n: int, d: int, C: float, seed: int) -> None:
    """Weights of 0.01 to 100, after samples have left and come. Clarabel is asked for a gap of 1e-12 of the value.

    1e-8 of it leaves an interior point four digits to lose; weights follow by convexity.
    """
    X, y = embeddings(n, d, 3, seed=seed)
    weights = 10.0 ** np.random.default_rng(seed).uniform(-2.0, 2.0, n)
    some = np.arange(n) < 0.9 * n
    model = LinearSVM(C).fit(X[some], y[some], sample_weight=weights[some])
    gone = model.support_[::10]
    model.forget(gone)
    model.insert(X[~some], y[~some], sample_weight=weights[~some])
    held = np.delete(np.arange(n), gone)
    for head, label in enumerate(model.classes_):
        w, _, value = with_clarabel(
            X[held].astype(np.float64), np.where(y[held] == label, 1.0, -1.0), C * weights[held]
        )
        assert abs(model.certificate_[head].primal - value) <= 1e-8 * value
        assert np.linalg.norm(model.coef_[head] - w) <= np.sqrt(2e-8 * value)
