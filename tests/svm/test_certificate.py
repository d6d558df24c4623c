"""Every head is solved, its certificate says so, and the certificate itself can be checked and broken."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.svm.problems import FAMILIES, make, problems

from maxrr.svm import LinearSVM, certify

EPSILON = 2.0**-52


def signs_of_heads(model, y):
    """±1 for every head, from the labels alone."""
    positives = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    return [np.where(y == positive, 1.0, -1.0) for positive in positives]


def all_multipliers(model, n):
    alphas = []
    for rows, multipliers in zip(model.influential_, model.multipliers_, strict=True):
        alpha = np.zeros(n)
        alpha[rows] = multipliers
        alphas.append(alpha)
    return alphas


@settings(max_examples=250)
@given(problems())
@example(make("single_precision", 108222827, n=48, d=1, classes=2, C=70.74577312563336))  # these were once not solved
@example(make("conflicting_duplicates", 1962662231, n=15, d=4, classes=2, C=0.2601433103284711))
@example(make("constant_columns", 2018719848, n=38, d=2, classes=3, C=138.57132196693632))
@example(make("rectified", 1376380926, n=44, d=3, classes=3, C=0.0013923815580296174))
@example(make("scaled_down", 181, n=50, d=1, classes=3, C=100.0))
def test_every_head_is_solved(problem):
    # Warnings are errors here: no family may end in a ConvergenceWarning, not even at the extremes of scale × C.
    model = problem.fit()
    for certificate in model.certificate_:
        assert certificate.relative_gap <= max(1e-10, certificate.rounding_floor)
        assert certificate.solved
        # The documented excuse: only separable data has an objective that is tiny beside C.
        assert certificate.rounding_floor <= 1e-10 or certificate.n_bounded == 0
        # Multipliers and margins agree to rounding. The solver asks for 1e-11; small features leave 1e-8 (see docs).
        assert certificate.kkt_violation <= 1e-8


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_at_both_ends_of_the_penalty(family, C):
    for certificate in make(family, seed=1, n=50, d=4, classes=3, C=C).fit().certificate_:
        assert certificate.solved


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("difference", [EPSILON, 1e-13])
def test_nearly_repeated_samples(difference, C):
    """Duplicates whose features were computed twice differ in their last digits, which must not become conditions."""
    for seed in range(40):
        problem = make("duplicates", seed, n=30, d=2, classes=2, C=C)
        noise = np.random.default_rng(seed).integers(-1, 2, problem.X.shape)
        model = LinearSVM(C).fit(problem.X * (1.0 + difference * noise), problem.y, problem.keys)
        assert all(certificate.solved for certificate in model.certificate_), seed


@settings(max_examples=80)
@given(problems())
def test_certificate_equals_the_textbook_formula(problem):
    """P and D by definition, in extended precision, from weights and multipliers."""
    model = problem.fit()
    X, C = problem.X.astype(np.longdouble), np.longdouble(problem.C)
    certificates = model.certify(problem.X, problem.y)
    heads = zip(
        signs_of_heads(model, problem.y), all_multipliers(model, len(X)), model.coef_, model.intercept_,
        certificates, model.certificate_, model.influential_, strict=True,
    )  # fmt: skip
    for y, alpha, w, b, recomputed, kept, influential in heads:
        margins = y * (X @ w.astype(np.longdouble) + b)
        primal = w @ w / 2 + C * np.sum(np.maximum(0, 1 - margins))
        v = (alpha * y) @ X
        dual = np.sum(alpha) - v @ v / 2
        # A margin is a float64 sum of terms up to `scale`, each loss counts C times, and v sums n terms.
        scale = 1 + abs(b) + np.linalg.norm(w) * np.max(np.linalg.norm(problem.X.astype(float), axis=1))
        rounding = 64 * EPSILON * len(y) * float(C) * scale
        for certificate in (recomputed, kept):
            assert abs(certificate.primal - primal) <= rounding
            assert abs(certificate.dual - dual) <= rounding
            assert abs(certificate.relative_gap - (primal - dual) / primal) <= 2 * rounding / primal
            assert certificate.n_free + certificate.n_bounded == len(influential)
        assert (recomputed.n_free, recomputed.n_bounded) == (kept.n_free, kept.n_bounded)
        # The influential samples are those with margin up to 1: nothing was left out, nothing added.
        tie = 1e-12 * scale
        assert np.all(margins[influential] <= 1 + tie)
        assert np.all(np.delete(margins, influential) > 1)
        assert np.all((alpha >= 0) & (alpha <= problem.C))


@settings(max_examples=60)
@given(problems(), st.floats(1e-4, 1.0), st.integers(0, 2**32 - 1))
def test_a_wrong_weight_shows(problem, size, seed):
    """The gap contains ½|w − v|², so a weight that is off by δ shows as at least that (a little less for rounding)."""
    model = problem.fit()
    w = model.coef_[0]
    if not w.any():
        return
    off = np.zeros(len(w))
    off[np.argmax(np.abs(w))] = size * np.linalg.norm(w)
    y, alpha = signs_of_heads(model, problem.y)[0], all_multipliers(model, len(problem.y))[0]
    honest = model.certificate_[0]
    wrong = certify(problem.X, y, w + off, model.intercept_[0], alpha, problem.C)
    assert wrong.primal * wrong.relative_gap >= 0.4 * off @ off - 2.0 * honest.primal * honest.relative_gap
    assert wrong.primal >= honest.dual


@settings(max_examples=60)
@given(problems(), st.floats(1e-3, 0.5))
def test_a_wrong_multiplier_shows(problem, size):
    """Σ αᵢyᵢ = 0 no longer holds, by size·C, and Σ αᵢ is at most n·C."""
    model = problem.fit()
    y, alpha = signs_of_heads(model, problem.y)[0], all_multipliers(model, len(problem.y))[0]
    row = model.influential_[0][0]
    alpha[row] += size * problem.C if alpha[row] < 0.5 * problem.C else -size * problem.C
    wrong = certify(problem.X, y, model.coef_[0], model.intercept_[0], alpha, problem.C)
    assert wrong.kkt_violation >= 0.9 * size / len(y)
    assert not wrong.decided


def test_wrong_weights_show_without_free_samples():
    """With C = 0.1 both samples are bounded and w = 0.2. A certificate for w = 0.3 must not call that decided."""
    X, y, alpha = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), np.array([0.1, 0.1])
    assert certify(X, y, np.array([0.2]), 0.0, alpha, 0.1).decided
    wrong = certify(X, y, np.array([0.3]), 0.0, alpha, 0.1)
    assert wrong.relative_gap > 0.01
    assert wrong.kkt_violation > 0.01
    assert not wrong.decided


def test_unbalanced_multipliers_are_no_solution_even_where_the_bias_is_zero():
    """Three samples at one place, one against two: the optimum is 2 at b = −1, so at b = 0 a loss of 3 is not it."""
    X, y = np.zeros((3, 1)), np.array([1.0, -1.0, -1.0])
    optimum = certify(X, y, np.zeros(1), -1.0, np.array([1.0, 0.5, 0.5]), 1.0)
    assert optimum.solved
    assert optimum.primal == optimum.dual == 2.0
    wrong = certify(X, y, np.zeros(1), 0.0, np.ones(3), 1.0)
    assert wrong.primal == 3.0
    assert not wrong.solved
    assert not wrong.decided


@settings(max_examples=100)
@given(problems())
def test_decided_heads_are_solved(problem):
    for certificate in problem.fit().certificate_:
        assert certificate.solved or not certificate.decided


# The bias where it is not unique


def test_bias_is_the_admissible_value_nearest_zero():
    """w = 0.2; every b in [−0.8, 0] is optimal. The midpoint would move when the third sample goes; 0 does not."""
    X, y = [[1.0], [-1.0], [-5.0]], [1, -1, -1]
    model = LinearSVM(C=0.1).fit(X, y)
    assert model.coef_.tolist() == [[0.2]]
    assert model.intercept_.tolist() == [0.0]
    without = LinearSVM(C=0.1).fit(X[:2], y[:2])
    assert without.intercept_.tolist() == [0.0]
    assert model.forget([2])[0].solved
    assert model.intercept_.tobytes() == without.intercept_.tobytes()


def test_bias_at_the_end_of_its_interval():
    """As above, shifted: with samples at −5, 1, 2 (−, −, +) the interval is [−1.1 + …] and does not contain zero."""
    X, y = np.array([[7.0], [9.0]]), np.array([-1, 1])
    model = LinearSVM(C=0.1).fit(X, y)  # w = C·(9 − 7) = 0.2; margins ≤ 1: −2.4 ≤ b ≤ −0.8
    assert model.coef_ == pytest.approx(0.2, abs=1e-15)
    assert model.intercept_ == pytest.approx(-0.8, abs=1e-14)


@settings(max_examples=100)
@given(problems())
def test_moving_the_bias_towards_zero_costs(problem):
    """The loss is piecewise linear in b with slopes in C·ℤ: unless b is nearest zero, a step that way is free."""
    model = problem.fit()
    X = problem.X.astype(float)
    for y, w, b in zip(signs_of_heads(model, problem.y), model.coef_, model.intercept_, strict=True):
        loss_at = lambda bias, y=y, w=w: problem.C * np.sum(np.maximum(0.0, 1.0 - y * (X @ w + bias)))  # noqa: E731
        scale = 1.0 + abs(b) + np.max(np.abs(X @ w))
        step = 1e-6 * scale
        if abs(b) > step:
            # Half of C·step: kinks lie within 1e-12·scale of b, and the sum is rounded.
            assert loss_at(b - np.sign(b) * step) - loss_at(b) >= 0.5 * problem.C * step
