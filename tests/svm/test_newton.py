"""Newton's method against its own optimality conditions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from maxrr.svm.search import newton
from tests.cases import examples

seeds = st.integers(0, 2**32 - 1)


def smoothed(seed, n=60, d=4, power=0.0):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], n)
    X = rng.normal(size=(n, d)) + 0.5 * y[:, None]
    C = 10.0**power
    return newton.Smoothed(
        X, y, np.full(n, C), rng.uniform(0.0, C, n), sigma=rng.uniform(0.5, 50.0) * C, pull=rng.normal(size=d), tilt=0.0
    )


@examples(60)
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


@examples(60)
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

    step = newton.line_search(raised, cap, sigma, change, change, slope(0.0), offset=offset, curvature=curvature)
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
