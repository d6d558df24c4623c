"""Newton's steps in float32 against those in float64."""

import numpy as np
import pytest

from maxrr.svm.search import newton
from maxrr.svm.search.newton import Light

SPREAD = np.logspace(0, 4, newton.WIDE)


def problem(seed=0, n=900, d=newton.WIDE, sizes=1.0, offset=0.0, sigma=0.5, weighted=False):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], n)
    X = sizes * (rng.normal(size=(n, d)) + 0.2 * y[:, None]) / np.sqrt(d) + offset
    share = rng.uniform(0.5, 2.0, n) if weighted else None
    cap = np.ones(n) if share is None else share
    return newton.Smoothed(X, y, cap, 0.5 * cap, sigma, rng.normal(size=d), 0.0, share, Light.of(X))


def gradient(problem, point):
    """As the module's docstring defines it, in float64."""
    shortfall = 1.0 - problem.y * (problem.X @ point.w + point.b)
    signed = problem.y * np.clip(problem.centre + problem.sigma * problem.steepened(shortfall), 0.0, problem.cap)
    return np.append(point.w - problem.pull - signed @ problem.X, -problem.tilt - np.sum(signed)), signed


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_direction_leaves_little_of_the_gradient(seed, weighted):
    """Against the whole Hessian of (w, b), at a point that is not the solution."""
    smooth = problem(seed, weighted=weighted)
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(len(smooth.y), 500, replace=False))
    gradient_w, gradient_b = rng.normal(size=smooth.X.shape[1]), float(rng.normal())
    assert smooth.light is not None
    found = smooth.light.direction(chosen, smooth.sigma, smooth.share, gradient_w, gradient_b)
    assert found is not None
    rows = np.column_stack([smooth.X[chosen], np.ones(len(chosen))])
    steepness = smooth.sigma * (np.ones(len(chosen)) if smooth.share is None else smooth.share[chosen])
    hessian = (rows.T * steepness) @ rows + np.diag(np.append(np.ones(len(gradient_w)), 0.0))
    left = hessian @ np.append(*found) + np.append(gradient_w, gradient_b)
    # What conjugate gradients leave is LEFT of the gradient without b; b itself is solved for, to float32's rounding.
    mean = steepness @ rows[:, :-1] / np.sum(steepness)
    assert np.linalg.norm(left[:-1] - left[-1] * mean) <= 1.01 * newton.LEFT * np.linalg.norm(
        gradient_w - gradient_b * mean
    )
    assert abs(left[-1]) <= 1e-4 * (1.0 + np.sum(steepness))


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-9])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_is_as_small_as_asked_for(tolerance, weighted):
    """Also where float32 cannot tell: then the last steps are in float64."""
    smooth = problem(weighted=weighted)
    point = newton.minimise(smooth, np.zeros(newton.WIDE), 0.0, 1.0, tolerance, np.inf)
    left, signed = gradient(smooth, point)
    assert np.linalg.norm(left) <= 2.0 * tolerance * np.linalg.norm(signed)


@pytest.mark.parametrize(
    "case", [{"offset": 1e5}, {"sizes": 1e60}, {"sizes": 1e-60}, {"sigma": 1e6}, {"sizes": SPREAD}]
)
def test_numbers_that_float32_does_not_hold_are_left_to_float64(case):
    smooth = problem(**case)
    length = float(np.mean(np.linalg.norm(smooth.X, axis=1)))
    both = [
        newton.minimise(each, np.zeros(newton.WIDE), 0.0, length, 1e-3, np.inf)
        for each in (smooth, newton.Smoothed(**{**vars(smooth), "light": None}))
    ]
    lefts = [
        np.hypot(np.linalg.norm(left[:-1]) / length, left[-1]) for left, _ in (gradient(smooth, at) for at in both)
    ]
    allowed = 2e-3 * np.linalg.norm(both[1].multipliers)
    assert lefts[0] <= max(allowed, 2.0 * lefts[1])


def test_directions_of_very_different_sizes_take_too_many_products():
    smooth = problem(sizes=SPREAD, sigma=10.0)
    assert smooth.light is not None
    assert smooth.light.direction(np.arange(900), 10.0, None, np.ones(newton.WIDE), 0.0) is None


def test_only_wide_rows_are_copied():
    assert Light.of(np.zeros((3, newton.WIDE - 1))) is None
    narrow = np.zeros((3, newton.WIDE), dtype=np.float32)
    found = Light.of(narrow)
    assert found is not None
    assert found.X is narrow
