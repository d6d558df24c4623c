"""Agreement with solvers that share no code with ours."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.svm import SVC

from maxrr import LinearSVM
from tests.cases import examples
from tests.svm.oracles import with_clarabel, with_piqp
from tests.svm.problems import UNSCALED, make, problems

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # some of these have no weights

MODERATE = st.sampled_from([1e-3, 0.01, 0.1, 1.0, 10.0])  # interior points lose digits where C is large and data ties


def heads(model, y):
    positives = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    return zip(positives, [np.where(y == p, 1.0, -1.0) for p in positives], model.certificate_, strict=True)


def clear(multipliers, C):
    """Whether some multipliers are between their bounds, and none of these near them: then the bias is unique."""
    share = multipliers[multipliers < C] / C
    return len(share) > 0 and min(np.min(share), 1.0 - np.max(share)) > 1e-6


@pytest.mark.parametrize("oracle", [with_clarabel, with_piqp])
@examples(40)
@given(problem=problems(families=tuple(f for f in UNSCALED if f != "constant_columns"), C=MODERATE, most=40))
def test_the_optimum_is_the_oracles(oracle, problem):
    """The oracle's gap is asked to be 1e-11 of its terms, and the objective is quadratic around the optimum.

    The optimal value is unique, so it is compared on every family: 1e-8 leaves the oracle three digits to lose.
    Weights follow: P(w) ≥ P* + ½|w − w*|², so a value known to δ gives weights to √2δ.
    """
    model = problem.fit()
    X = problem.X.astype(float)
    for (_, y, certificate), ours in zip(heads(model, problem.y), model.coef_, strict=True):
        w, _, value = oracle(X, y, problem.C)
        close = 1e-8 * max(1.0, value)
        assert abs(certificate.primal - value) <= close
        assert np.linalg.norm(w - ours) <= np.sqrt(2.0 * close)


@examples(40)
@given(problems(families=("well_behaved", "tiny_class", "rectified", "wide", "separable"), C=MODERATE, most=50))
def test_decision_values_are_the_oracles(problem):
    """Where samples on the margin fix the bias, scores agree.

    1e-6 is what an interior point with gap 1e-12 leaves (a square root); a wrong support status would show at the size
    of a multiplier.
    """
    model = problem.fit()
    assume(all(clear(multipliers, problem.C) for multipliers in model.multipliers_))
    X = problem.X.astype(float)
    scores = model.decision_function(X).reshape(len(X), -1)
    for column, (_, y, _) in enumerate(heads(model, problem.y)):
        w, b, _ = with_clarabel(X, y, problem.C)
        assert np.max(np.abs(X @ w + b - scores[:, column])) <= 1e-6 * (1.0 + np.max(np.abs(scores)))


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("family", ["well_behaved", "separable", "tiny_class", "constant_columns"])
def test_agrees_with_svc(family, C):
    """libsvm keeps the kernel in single precision: scores Σ αᵢyᵢxᵢ·x are off by a few 2⁻²⁴ Σ αᵢ max|x|²."""
    problem = make(family, 4, n=60, d=3, classes=2, C=C)
    X = problem.X - np.mean(problem.X, axis=0)  # or its single precision drowns in constant columns
    model = LinearSVM(C).fit(X, problem.y)
    svc = SVC(C=C, kernel="linear", tol=1e-9).fit(X, problem.y)
    w, b = svc.coef_[0], svc.intercept_[0]
    y = np.where(problem.y == 1, 1.0, -1.0)
    value = 0.5 * w @ w + C * np.sum(np.maximum(0.0, 1.0 - y * (X @ w + b)))
    certificate = model.certificate_[0]
    off = 4.0 * 2.0**-24 * np.sum(model.multipliers_[0]) * np.max(np.sum(X * X, axis=1)) + 1e-9
    assert certificate.primal <= value * (1.0 + 1e-12)  # nobody is below the optimum
    assert value - certificate.primal <= C * len(y) * off
    if clear(model.multipliers_[0], C):  # else libsvm takes the middle of the admissible biases, we another
        assert np.max(np.abs(svc.decision_function(X) - model.decision_function(X))) <= off
        assert set(svc.support_.tolist()) == set(model.support_.tolist())


def test_support_status_at_moderate_size():
    """Margins of the oracle, 1,000 × 20: whoever is clearly inside or outside for it is so for us."""
    problem = make("rectified", 0, n=1000, d=10, classes=3, C=1.0)
    model = problem.fit()
    for (_, y, _), influential in zip(heads(model, problem.y), model.influential_, strict=True):
        w, b, _ = with_clarabel(problem.X, y, problem.C)
        margins = y * (problem.X @ w + b)
        ours = np.zeros(len(y), dtype=bool)
        ours[influential] = True
        assert np.all(ours[margins < 1.0 - 1e-5])
        assert not np.any(ours[margins > 1.0 + 1e-5])


def test_forgetting_reaches_the_oracles_optimum():
    problem = make("well_behaved", 8, n=300, d=6, classes=3)
    model = problem.fit()
    rows = model.support_[::5]
    model.forget(rows)
    kept = np.setdiff1d(np.arange(len(problem.y)), rows)
    for _, y, certificate in heads(model, problem.y[kept]):
        value = with_clarabel(problem.X[kept], y, problem.C)[2]
        assert abs(certificate.primal - value) <= 1e-9 * value


def test_the_default_penalty_is_one():
    assert LinearSVM().C == SVC().C == 1.0
