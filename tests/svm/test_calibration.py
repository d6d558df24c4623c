"""Platt scaling against closed forms and independent optimisers, and the promises made about bytes and extremes."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeClassifier

from maxrr.svm.calibration import PlattScaling, fit_platt


def targets(positive):
    """Platt's smoothed targets, as printed in his paper."""
    n_positive, n_negative = positive.sum(), (~positive).sum()
    return np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))


def logits(scaling, scores):
    """The log-odds of each head, by the formula in the documentation."""
    return -(scaling.a * (np.asarray(scores, dtype=float).reshape(len(scores), -1) - scaling.centre) + scaling.b)


def random_head(seed, n=40, effect=1.0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    y[:2] = False, True
    return rng.normal(size=n) + effect * y, y


@st.composite
def heads(draw):
    """Scores of one head with both labels present: smooth, tied, separable, spread over 40 orders, with an outlier."""
    n = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = rng.random(n) < draw(st.sampled_from([0.03, 0.5]))
    y[:2] = False, True
    scores = rng.normal(size=n) + draw(st.sampled_from([-2.0, 0.0, 1.0, 100.0])) * y
    match draw(st.sampled_from(["smooth", "tied", "separable", "orders", "outlier", "near -1"])):
        case "tied":
            scores = np.round(scores)
        case "separable":
            scores = np.where(y, 1.0, -1.0) * np.abs(scores)
        case "orders":
            scores = np.sign(scores) * 10.0 ** rng.uniform(-20, 20, size=n)
        case "outlier":
            scores[rng.integers(n)] *= 10.0 ** rng.uniform(0, 15)
        case "near -1":
            scores = -1.0 + 1e-12 * scores
    return scores * 2.0 ** draw(st.sampled_from([-600, 0, 20, 600])), y


@st.composite
def problems(draw):
    """Scores of shape (n, K), labels and classes for K = 2 (one column) up to 12."""
    n_classes = draw(st.integers(2, 12))
    n = draw(st.integers(n_classes, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    scores = rng.normal(size=(n, 1 if n_classes == 2 else n_classes)) * 10.0 ** draw(st.sampled_from([-12, 0, 1, 6]))
    if draw(st.booleans()):
        scores = np.round(scores)  # ties, and -0.0 beside 0.0
    return scores, y, np.arange(n_classes)


# Closed forms and oracles


@given(
    labels=st.lists(st.booleans(), min_size=3, max_size=60).filter(lambda labels: any(labels) and not all(labels)),
    cut=st.integers(1, 59),
    low=st.sampled_from([-1.0, -1e-9, -1e6, -1e200, 0.0]),
    gap=st.sampled_from([1.0, 1e-6, 1e6, 1e150]),
)
def test_two_distinct_scores_get_their_mean_targets(labels, cut, low, gap):
    """Two parameters fit two values exactly. Covers separable heads and heads with one positive at any magnitude."""
    y = np.array(labels)
    first = np.arange(len(y)) < 1 + cut % (len(y) - 1)
    scores = np.where(first, low, low + gap)
    if low + gap == low:
        first[:] = True  # the gap vanished in rounding: one value, which takes the mean target of all
    wanted = np.where(first, targets(y)[first].mean(), targets(y)[~first].mean() if not first.all() else 0.0)
    fitted = fit_platt(scores, y, [False, True]).probabilities(scores)
    np.testing.assert_allclose(fitted, np.column_stack([1 - wanted, wanted]), rtol=1e-13)


@pytest.mark.parametrize("value", [0.0, -1.0, 1e6, -1e300, 1e-300])
def test_constant_scores_give_the_mean_target(value):
    y = np.arange(20) < 3
    scaling = fit_platt(np.full(20, value), y, [False, True])
    assert scaling.a[0] == 0.0
    np.testing.assert_allclose(scaling.probabilities([value])[0, 1], targets(y).mean(), rtol=1e-14)
    np.testing.assert_array_equal(scaling.probabilities([1e300]), scaling.probabilities([value]))


@pytest.mark.parametrize("effect", [-1.0, 0.0, 1.0, 3.0, 30.0])
def test_equals_the_optimum_found_by_scipy(effect):
    """The oracle stops at gradient 1e-10, where the error in log-odds is about 1e-10 over the curvature (> 1e-2)."""
    scores, y = random_head(seed=1, effect=effect)
    t = targets(y)

    def negative_log_likelihood(ab):
        u = ab[0] * scores + ab[1]
        p, curvature = expit(-u), expit(u) * expit(-u)
        design = np.column_stack([scores, np.ones_like(scores)])
        value = -np.sum(t * log_expit(-u) + (1 - t) * log_expit(u))
        return value, design.T @ (t - p), design.T @ (curvature[:, None] * design)

    oracle = minimize(
        lambda ab: negative_log_likelihood(ab)[0],
        x0=np.zeros(2),
        jac=lambda ab: negative_log_likelihood(ab)[1],
        hess=lambda ab: negative_log_likelihood(ab)[2],
        method="trust-exact",
        options={"gtol": 1e-10},
    )
    scaling = fit_platt(scores, y, [False, True])
    np.testing.assert_allclose([scaling.a[0], (scaling.b - scaling.a * scaling.centre)[0]], oracle.x, rtol=0, atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_agrees_with_scikit_learn_end_to_end(n_classes):
    """Same sigmoids, normalisation and columns. Its L-BFGS stops at gradient 1e-6, hence the wide tolerance."""
    X, y = load_iris(return_X_y=True)
    X, y = X[y >= 3 - n_classes], y[y >= 3 - n_classes]
    classifier = RidgeClassifier().fit(X, y)
    theirs = CalibratedClassifierCV(FrozenEstimator(classifier), method="sigmoid").fit(X, y).predict_proba(X)
    scores = classifier.decision_function(X)
    np.testing.assert_allclose(fit_platt(scores, y, classifier.classes_).probabilities(scores), theirs, atol=1e-4)


@given(heads())
@example((np.append(np.linspace(-1.0, 1.0, 50), 100.0), np.arange(51) == 50)).via("full Newton steps diverge here")
def test_stationary_at_every_scale(head):
    """The square of Newton's decrement is twice what the log-likelihood could still gain.

    Rounding leaves a few 1e-16 a sample; the worst decrement over 6,000 heads of these kinds, up to 3,000 samples and
    evaluated in extended precision, was 1e-14.
    """
    scores, y = head
    scaling = fit_platt(scores, y, [False, True])
    z = logits(scaling, scores)[:, 0]
    residual = np.where(y, 1 / (y.sum() + 2) - expit(-z), expit(z) - 1 / ((~y).sum() + 2))
    curvature = expit(z) * expit(-z)
    x = (scores - scaling.centre) / max(np.max(np.abs(scores - scaling.centre)), 1e-300)  # all zero if constant
    weight = math.fsum(curvature)
    x -= math.fsum(curvature * x) / weight
    spread = math.fsum(curvature * x**2)
    assert abs(math.fsum(residual)) <= 1e-12 * math.sqrt(weight)
    assert abs(math.fsum(residual * x)) <= 1e-12 * math.sqrt(spread)


# Bytes


@given(problems(), st.randoms(use_true_random=False))
def test_order_of_samples_never_shows_in_the_bytes(problem, random):
    scores, y, classes = problem
    order = random.sample(range(len(y)), len(y))
    one = fit_platt(scores, y, classes)
    other = fit_platt(np.asfortranarray(scores[order]), y[order], classes)
    for name in ("a", "b", "centre"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    # A row's probabilities are its own: neither its neighbours nor the memory layout matter.
    together = one.probabilities(scores)
    assert one.probabilities(np.asfortranarray(scores[order])).tobytes() == together[order].tobytes()
    assert one.probabilities(scores[-1:]).tobytes() == together[-1:].tobytes()


def test_signed_zeros_are_one_score():
    y = [0, 1, 0, 1, 1]
    one = fit_platt([-0.0, 0.0, -0.0, 0.0, 1.0], y, [0, 1])
    other = fit_platt([0.0, 0.0, -0.0, -0.0, 1.0], y, [0, 1])
    assert (one.b.tobytes(), one.centre.tobytes()) == (other.b.tobytes(), other.centre.tobytes())


@given(st.integers(0, 2**32 - 1), st.integers(-200, 200), st.integers(-1000, 1000))
def test_scaling_by_powers_of_two_and_shifting_are_followed_exactly(seed, exponent, shift):
    scores, y = random_head(seed)
    scores = np.round(8 * scores)  # integers: shifting them does not round
    plain = fit_platt(scores, y, [False, True])
    moved = fit_platt((scores + shift) * 2.0**exponent, y, [False, True])
    assert moved.a * 2.0**exponent == plain.a
    assert moved.b == plain.b


# The simplex


@given(
    problems(), st.lists(st.sampled_from([0.0, 1.0, -30.0, 800.0, 1e6, -1e6, 1e300, -1e300]), min_size=12, max_size=12)
)
def test_rows_lie_on_the_simplex_for_any_scores(problem, extremes):
    scores, y, classes = problem
    scaling = fit_platt(scores, y, classes)
    rows = np.vstack([scores, extremes[: scores.shape[1]], *(np.full_like(scores[:1], value) for value in extremes)])
    probabilities = scaling.probabilities(rows)
    assert probabilities.shape == (len(rows), len(classes))
    assert np.all((probabilities >= 0.0) & (probabilities <= 1.0))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-15 * len(classes))


@given(problems())
def test_probabilities_are_the_normalised_sigmoids(problem):
    scores, y, classes = problem
    scaling = fit_platt(scores, y, classes)
    sigmoids = expit(logits(scaling, scores))
    wanted = np.hstack([1 - sigmoids, sigmoids]) if len(classes) == 2 else sigmoids / sigmoids.sum(1, keepdims=True)
    # exp magnifies the rounding of a log-odds by its size.
    np.testing.assert_allclose(scaling.probabilities(scores), wanted, rtol=1e-12, atol=1e-15)


def test_a_row_whose_sigmoids_all_underflow_keeps_their_ratios():
    scaling = PlattScaling(a=np.full(3, -1.0), b=np.zeros(3), centre=np.zeros(3))
    row = np.array([-1e6, -1e6 + math.log(2), -1e6 + math.log(5)])
    np.testing.assert_allclose(scaling.probabilities([row])[0], [1 / 8, 2 / 8, 5 / 8], rtol=1e-9)
    overflowing = PlattScaling(a=np.full(3, -1e12), b=np.zeros(3), centre=np.zeros(3))
    np.testing.assert_allclose(overflowing.probabilities(np.full((1, 3), -1e300)), np.full((1, 3), 1 / 3), rtol=1e-15)


@given(problems())
def test_probability_grows_with_the_score_exactly_where_the_slope_says_so(problem):
    scores, y, classes = problem
    scaling = fit_platt(scores, y, classes)
    for head in range(scores.shape[1]):
        raised = np.repeat(scores[:1], 50, axis=0)
        raised[:, head] += np.linspace(0.0, 10.0, 50) * np.ptp(scores)
        column = scaling.probabilities(raised)[:, -1 if len(classes) == 2 else head]
        falls = np.diff(column) * np.sign(-scaling.a[head])
        assert np.all(falls >= -4e-16)  # the rounding of the normaliser


def test_scores_that_rank_well_get_confident_and_others_do_not():
    well, badly = (fit_platt(*random_head(0, n=400, effect=effect), [False, True]) for effect in (3.0, -3.0))
    assert well.a[0] < 0.0 < badly.a[0]
    assert well.probabilities([3.0])[0, 1] > 0.8 > 0.2 > badly.probabilities([3.0])[0, 1]


@given(problems(), st.randoms(use_true_random=False))
def test_columns_follow_the_order_of_the_classes(problem, random):
    scores, y, classes = problem
    order = random.sample(range(len(classes)), len(classes))
    plain = fit_platt(scores, y, classes).probabilities(scores)
    # With two classes the only column speaks for the second.
    swapped = -scores if order == [1, 0] else scores
    moved_scores = swapped if len(classes) == 2 else scores[:, order]
    moved = fit_platt(moved_scores, y, classes[order]).probabilities(moved_scores)
    np.testing.assert_allclose(moved, plain[:, order], rtol=1e-9, atol=1e-12)


def test_labels_may_be_strings_and_scores_single_precision():
    scores, y = random_head(5)
    scores = scores.astype(np.float32)
    named = fit_platt(scores, np.where(y, "yes", "no"), ["no", "yes"])
    plain = fit_platt(scores.astype(float)[:, None], y, [False, True])
    assert (named.a.tobytes(), named.b.tobytes(), named.a.dtype) == (plain.a.tobytes(), plain.b.tobytes(), np.float64)


# Refusals

SCORES = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("scores", "y", "classes", "message"),
    [
        (np.where(SCORES == 7.0, np.nan, SCORES), [0, 1, 2, 0], [0, 1, 2], "nan in row 2"),
        (np.where(SCORES == 7.0, np.inf, SCORES), [0, 1, 2, 0], [0, 1, 2], "inf in row 2"),
        (SCORES * 1e300, [0, 1, 2, 0], [0, 1, 2], "at most 1e"),
        (SCORES[:, :2], [0, 1, 2, 0], [0, 1, 2], r"shape \(n, 3\), got \(4, 2\)"),
        (SCORES[:, 0], [0, 1, 2, 0], [0, 1, 2], r"shape \(n, 3\), got \(4,\)"),
        (SCORES[:, :2], [0, 1, 1, 0], [0, 1], r"shape \(n, 1\), got \(4, 2\)"),
        (SCORES, [0, 1, 2], [0, 1, 2], "each of the 4 rows"),
        (SCORES, [[0], [1], [2], [0]], [0, 1, 2], "each of the 4 rows"),
        (SCORES, [0, 1, 2, 7], [0, 1, 2], r"y\[3\] = 7 is not one of the classes \[0, 1, 2\]"),
        (SCORES, ["a", "b", "c", "a"], [0, 1, 2], r"y\[0\] = 'a' is not one of the classes"),
        (SCORES, np.array(["a", "b", "c", "z"], dtype=object), ["a", "b", "c"], r"y\[3\] = 'z' is not one"),
        (SCORES, [0, 1, 1, 0], [0, 1, 2], "no sample of class 2"),
        (SCORES[:0], [], [0, 1, 2], "no sample of class 0"),
        (SCORES[:, :1], [0, 0, 0, 0], [0], "at least two distinct labels"),
        (SCORES, [0, 1, 1, 0], [0, 1, 1], "at least two distinct labels"),
    ],
)
def test_bad_input_is_refused_by_name(scores, y, classes, message):
    with pytest.raises(ValueError, match=message):
        fit_platt(scores, y, classes)


def test_probabilities_refuses_what_fit_refuses():
    scaling = fit_platt(SCORES, [0, 1, 2, 0], [0, 1, 2])
    with pytest.raises(ValueError, match=r"\(n, 3\), got"):
        scaling.probabilities([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="row 0"):
        scaling.probabilities([[1.0, 2.0, np.nan]])
    assert scaling.probabilities(SCORES[:0]).shape == (0, 3)
