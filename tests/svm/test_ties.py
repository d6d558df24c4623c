"""A head whose solution is w = 0: a small class inside a large one. All of the large class lies on the margin."""

import numpy as np
import pytest

from maxrr.svm import LinearSVM

COUNT, SMALL_CLASS = 6600, 600  # more ties than the solver works on at once


@pytest.fixture(scope="module")
def overlapping():
    rng = np.random.default_rng(0)
    return rng.normal(size=(COUNT, 5)), (np.arange(COUNT) < SMALL_CLASS).astype(int)


def test_the_solution_is_zero(overlapping):
    """With w = 0 the loss is least at b = −1, where the large class pays nothing and the small one 2C each."""
    X, y = overlapping
    model = LinearSVM(C=0.1).fit(X, y)
    certificate = model.certificate_[0]
    assert not model.coef_.any()
    assert model.intercept_ == -1.0
    assert certificate.n_free == COUNT - SMALL_CLASS
    assert certificate.n_bounded == SMALL_CLASS
    assert certificate.solved
    assert certificate.primal == pytest.approx(2 * 0.1 * SMALL_CLASS, rel=1e-14)


@pytest.mark.parametrize("count", [1, 30, 500])
def test_forgetting_some_of_the_ties(overlapping, count):
    X, y = overlapping
    gone = np.random.default_rng(count).choice(COUNT, count, replace=False)
    kept = np.setdiff1d(np.arange(COUNT), gone)
    model = LinearSVM(C=0.1).fit(X, y)
    model.forget(gone)
    scratch = LinearSVM(C=0.1).fit(X[kept], y[kept], keys=kept)
    assert model.work_.cold_solves == 0
    assert model.certificate_[0].solved
    assert model.coef_.tobytes() == scratch.coef_.tobytes()
    assert model.intercept_.tobytes() == scratch.intercept_.tobytes()
    np.testing.assert_array_equal(kept[scratch.support_], model.support_)
