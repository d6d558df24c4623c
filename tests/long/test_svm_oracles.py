"""The head at the size of the paper's features, 5,000 × 84, against an interior-point solver."""

import numpy as np
import pytest

from maxrr import LinearSVM
from tests.svm.oracles import with_clarabel


def lenet_like(seed, n=5000, d=84, classes=10):
    """ReLU of random projections of class means plus noise: sparse, non-negative, correlated."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    inputs = rng.normal(size=(n, 30)) + 1.2 * rng.normal(size=(classes, 30))[y]
    return np.maximum(inputs @ rng.normal(size=(30, d)) / np.sqrt(30.0), 0.0), y


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_against_an_interior_point_solver(C):
    """Clarabel's gap is asked to be 1e-12 of the value; scores then agree to its square root."""
    X, y = lenet_like(0)
    model = LinearSVM(C).fit(X, y)
    scores = model.decision_function(X)
    for head in (0, 7):
        signs = np.where(y == head, 1.0, -1.0)
        w, b, value = with_clarabel(X, signs, C)
        certificate = model.certificate_[head]
        assert certificate.relative_gap <= 1e-10
        assert abs(certificate.primal - value) <= 1e-9 * value
        theirs = X @ w + b
        assert np.max(np.abs(theirs - scores[:, head])) <= 1e-6 * (1.0 + np.max(np.abs(scores)))
        # Nobody's support status differs, apart from margins too close to 1 for Clarabel to tell.
        margins = signs * theirs
        influential = np.zeros(len(y), dtype=bool)
        influential[model.influential_[head]] = True
        clear = np.abs(margins - 1.0) > 1e-5
        assert np.array_equal(influential[clear], margins[clear] < 1.0)
    gone = model.support_[:: max(1, len(model.support_) // 30)]
    model.forget(gone)
    kept = np.setdiff1d(np.arange(len(y)), gone)
    value = with_clarabel(X[kept], np.where(y[kept] == 0, 1.0, -1.0), C)[2]
    assert abs(model.certificate_[0].primal - value) <= 1e-9 * value
    scratch = LinearSVM(C).fit(X[kept], y[kept])
    assert all(certificate.decided for certificate in model.certificate_)
    assert model.coef_.tobytes() == scratch.coef_.tobytes()
    assert model.intercept_.tobytes() == scratch.intercept_.tobytes()
