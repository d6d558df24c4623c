"""The canonical weights against plain linear algebra, and Newton's method against its own optimality conditions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from maxrr.svm import canonical, newton

seeds = st.integers(0, 2**32 - 1)


def kkt_solution(X_free, y_free, X_bounded, y_bounded, C):
    """min ½|w|² − C Σ yᵢ(w·xᵢ + b) with w·xᵢ + b = yᵢ, as one dense system; least squares where it is singular."""
    d, k = X_free.shape[1], len(y_free)
    A = np.column_stack([X_free, np.ones(k)])
    H = np.diag(np.append(np.ones(d), 0.0))
    system = np.block([[H, A.T], [A, np.zeros((k, k))]])
    right = np.concatenate([C * (y_bounded @ X_bounded), [C * np.sum(y_bounded)], y_free])
    solution = np.linalg.lstsq(system, right, rcond=1e-13)[0]
    return solution[:d]


@settings(max_examples=200)
@given(seeds, st.integers(2, 8), st.integers(1, 12), st.integers(0, 30), st.floats(-2.0, 2.0), st.booleans())
def test_weights_solve_the_kkt_system(seed, d, k, n_bounded, power, repeat):
    """Free samples are put on the margin of a random head, so that any number of them is consistent."""
    rng = np.random.default_rng(seed)
    C = 10.0**power
    w, b = rng.normal(size=d), rng.normal()
    y = rng.choice([-1.0, 1.0], k)
    X = rng.normal(size=(k, d))
    X += ((y - b - X @ w) / (w @ w))[:, None] * w
    if repeat:
        again = rng.integers(0, k, k)
        X, y = np.concatenate([X, X[again]]), np.concatenate([y, y[again]])
    X_bounded, y_bounded = rng.normal(size=(n_bounded, d)), rng.choice([-1.0, 1.0], n_bounded)
    y_bounded[: n_bounded // 2] *= -1.0
    found = canonical.weights(X, y, X_bounded, y_bounded, C)
    expected_w = kkt_solution(X, y, X_bounded, y_bounded, C)
    condition = np.linalg.cond(X[1:] - X[0]) if len(X) > 1 and not repeat and k <= d else 1.0
    # lstsq works on the KKT matrix, whose condition is that of the rows squared.
    size = 1.0 + np.linalg.norm(expected_w) + C * (1 + n_bounded)
    assert np.max(np.abs(X @ found.w + found.b - y)) <= 1e-12 * size * max(1.0, np.max(np.abs(X))) ** 2 * condition
    assert np.linalg.norm(found.w - expected_w) <= 1e-11 * size * condition**2 * max(1.0, np.max(np.abs(X))) ** 2
    assert np.allclose(found.bounded_sum, y_bounded @ X_bounded, rtol=0, atol=1e-13 * (1 + n_bounded) * 10)


@settings(max_examples=50)
@given(seeds, st.integers(1, 6), st.integers(1, 3000))
def test_without_free_samples(seed, d, n):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)
    found = canonical.weights(np.zeros((0, d)), np.zeros(0), X, y, 0.5)
    exact = 0.5 * (y.astype(np.longdouble) @ X)
    assert found.b == 0.0
    assert np.max(np.abs(found.w - exact)) <= 2.0**-52 * n * np.max(np.abs(X))  # a sum of n terms


@settings(max_examples=50)
@given(seeds, st.integers(1, 6), st.integers(2, 200))
def test_turning_all_signs_turns_the_weights(seed, d, k):
    """Exactly: `insert` relies on it where a head for two classes becomes two heads."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    y = rng.choice([-1.0, 1.0], k)
    X = rng.normal(size=(k, d))
    X += ((y - 0.3 - X @ w) / (w @ w))[:, None] * w
    X_bounded, y_bounded = rng.normal(size=(20, d)), rng.choice([-1.0, 1.0], 20)
    one = canonical.weights(X, y, X_bounded, y_bounded, 0.7)
    other = canonical.weights(X, -y, X_bounded, -y_bounded, 0.7)
    assert np.array_equal(one.w, -other.w)
    assert one.b == -other.b


@settings(max_examples=50)
@given(seeds, st.integers(1, 6), st.integers(1, 40))
def test_layout_and_alignment_do_not_matter(seed, d, k):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(k, d)), rng.choice([-1.0, 1.0], k)
    X_bounded, y_bounded = rng.normal(size=(33, d)), rng.choice([-1.0, 1.0], 33)
    one = canonical.weights(X, y, X_bounded, y_bounded, 1.3)
    shifted = np.empty(k * d + 1)[1:].reshape(k, d)
    shifted[:] = X
    other = canonical.weights(shifted, y.copy(), X_bounded.copy(), y_bounded, 1.3)
    assert one.w.tobytes() == other.w.tobytes()
    assert one.b == other.b


# Newton


def smoothed(seed, n=60, d=4, power=0.0):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], n)
    X = rng.normal(size=(n, d)) + 0.5 * y[:, None]
    C = 10.0**power
    return newton.Smoothed(
        X, y, np.full(n, C), rng.uniform(0.0, C, n), sigma=rng.uniform(0.5, 50.0) * C, pull=rng.normal(size=d), tilt=0.0
    )


@settings(max_examples=60)
@given(seeds, st.floats(-2.0, 2.0))
def test_newton_ends_where_the_gradient_vanishes(seed, power):
    problem = smoothed(seed, power=power)
    point = newton.minimise(problem, np.zeros(4), 0.0, 1.0, 1e-9, np.inf)
    multipliers = np.clip(
        problem.centre + problem.sigma * (1.0 - problem.y * (problem.X @ point.w + point.b)), 0.0, problem.cap
    )
    signed = multipliers * problem.y
    gradient = np.append(point.w - problem.pull - signed @ problem.X, -problem.tilt - np.sum(signed))
    # It stops at 1e-9 of |multipliers|, with margins updated rather than computed: ten times that is room enough.
    assert np.linalg.norm(gradient) <= 1e-8 * (np.linalg.norm(multipliers) + 1.0)
    assert np.allclose(point.multipliers, multipliers, rtol=0, atol=1e-8 * np.max(problem.cap) * (1 + problem.sigma))


@settings(max_examples=60)
@given(seeds)
def test_line_search_finds_the_minimum(seed):
    """Against a bracketing root finder on the slope."""
    rng = np.random.default_rng(seed)
    n = 40
    raised, cap, sigma, change = (
        rng.normal(size=n),
        rng.uniform(0.1, 1.0, n),
        rng.uniform(0.1, 10.0),
        rng.normal(size=n),
    )
    offset, curvature = -rng.uniform(0.0, 5.0), rng.uniform(0.1, 2.0)

    def slope(step):
        return offset + step * curvature - np.clip(raised - step * sigma * change, 0.0, cap) @ change

    step = newton.line_search(raised, cap, sigma, change, slope(0.0), offset=offset, curvature=curvature)
    if slope(0.0) >= 0.0:
        assert step == 0.0
        return
    assert abs(slope(step)) <= newton.LINE_SEARCH_TOLERANCE * -slope(0.0)
    exact = brentq(slope, 0.0, 1e4)
    # The slope grows at least by `curvature` a step, so a slope this small is this near to the root.
    assert abs(step - exact) <= newton.LINE_SEARCH_TOLERANCE * -slope(0.0) / curvature + 1e-9


@pytest.mark.parametrize("C", [0.1, 0.26, 0.3, 1.0 / 3.0])
def test_newton_is_not_held_up_by_rounding_of_the_balance(C):
    """All multipliers at C, as many of either sign: Σ αᵢyᵢ is zero but for rounding, and w must move all the same."""
    X = np.array([1.0, 0.9, 1.1, 1.0, 0.2, 0.3, 0.1])
    X = np.concatenate([X, -X])[:, None]
    y = np.sign(X[:, 0])
    cap = np.full(len(y), C)
    problem = newton.Smoothed(X, y, cap, cap.copy(), 0.1 * C, np.zeros(1), 0.0)
    point = newton.minimise(problem, np.zeros(1), 0.0, 1.0, 1e-3, np.inf)
    assert point.w[0] > 0.0


def test_sums_are_those_of_a_plain_loop_over_the_rows():
    """In the order given, run by run: the bytes of a model rest on it, and BLAS would add in another order."""
    rng = np.random.default_rng(0)
    X, y, origin = rng.normal(size=(3000, 7)), rng.choice([-1.0, 1.0], 3000), rng.normal(size=7)
    total = [0.0] * 7
    for start in range(0, 3000, canonical.ROWS_A_SUM):
        run = [0.0] * 7
        for row in range(start, min(start + canonical.ROWS_A_SUM, 3000)):
            run = [part + (X[row, j] - origin[j]) * y[row] for j, part in enumerate(run)]
        total = [part + more for part, more in zip(total, run, strict=True)]
    assert canonical.signed_sum(X, y, origin)[0].tobytes() == np.array(total).tobytes()
