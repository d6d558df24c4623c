"""A thousand classes on the CPU: every head is decided, and forgetting after it ends in the bytes of a fit."""

from fractions import Fraction

import numpy as np
import pytest

from maxrr import LinearSVM
from tests.svm.embeddings import assert_same
from tests.svm.referee import false_claims

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # a class in the midst of others


def test_a_thousand_classes():
    rng = np.random.default_rng(0)
    n, d, classes = 5000, 32, 1000
    y = rng.permutation(np.arange(n) % classes)
    X = 2.0 * rng.normal(size=(classes, d))[y] + rng.normal(size=(n, d))
    model = LinearSVM().fit(X, y)
    assert model.coef_.shape == (classes, d)
    assert all(certificate.decided for certificate in model.certificate_)
    gone = np.union1d(model.influential_[7][:3], np.flatnonzero(y == 400))
    model.forget(gone)
    assert model.coef_.shape == (classes - 1, d)
    model.insert(X[gone[:2]], y[gone[:2]])
    known = np.concatenate([np.arange(n), gone[:2]])
    held = rng.permutation(np.setdiff1d(np.arange(n), gone[2:]))
    scratch = LinearSVM().fit(X[held], y[held])
    assert_same(model, known, scratch, held)
    for head in (0, 7, 500, len(model.coef_) - 1):
        wrong = false_claims(
            X[held], np.where(y[held] == scratch.classes_[head], 1.0, -1.0), [Fraction(1)] * len(held),
            scratch.coef_[head], float(scratch.intercept_[head]), scratch.certificate_[head],
            scratch.influential_[head], scratch.multipliers_[head],
        )  # fmt: skip
        assert not list(wrong)
