"""Paths between problems: where they end every optimality condition holds. And what they keep up to date."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr import LinearSVM
from maxrr.svm.search import newton
from maxrr.svm.search.path import MarginSystem, Path
from tests.cases import examples
from tests.svm.problems import make

CLOSE = 1e-7


def violation(X, y, w, b, alpha, caps):
    """By how much the optimality conditions of a head fail: balance, weights, bounds, and a margin per multiplier."""
    margins = y * (X @ w + b)
    below, above = margins < 1.0 - CLOSE, margins > 1.0 + CLOSE
    return max(
        abs(float(alpha @ y)),
        float(np.max(np.abs(w - (alpha * y) @ X))),
        float(np.max(np.maximum(-alpha, alpha - caps))),
        float(np.max(np.where(below, caps - alpha, 0.0))),
        float(np.max(np.where(above, alpha, 0.0))),
    )


def signs_and_features(seed, n, d):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return y, rng.normal(size=(n, d)) + 0.5 * y[:, None]


def follow(X, y, w, b, alpha, caps, most=1000):
    """A path on these samples alone, on which those with multipliers between their bounds begin on the margin."""
    between = (alpha > 0.0) & (alpha < caps)
    return Path(X, y, w, b, between, caps, np.zeros(X.shape[1]), 0.0).follow(most)


@examples(25)
@given(st.integers(0, 10**6), st.integers(12, 60), st.integers(1, 8), st.sampled_from([0.01, 1.0, 30.0]))
def test_from_any_samples_on_the_margin_it_ends_at_the_solution(seed, n, d, C):
    """Up to d + 1 of them, wherever their margins are."""
    y, X = signs_and_features(seed, n, d)
    rng = np.random.default_rng(seed + 1)
    caps = C * rng.uniform(0.5, 2.0, n)
    alpha = np.where(rng.random(n) < 0.3, caps, 0.0)
    between = rng.choice(n, d + 1, replace=False)
    alpha[between] = caps[between] * rng.uniform(0.1, 0.9, d + 1)
    found = follow(X, y, (alpha * y) @ X, float(rng.normal()), alpha, caps, 5000)
    if found is not None:
        assert violation(X, y, found.w, found.b, found.multipliers, caps) < CLOSE * (1.0 + C)


def test_even_from_far_away_it_seldom_gives_up():
    ended = 0
    for seed in range(100):
        y, X = signs_and_features(seed, 50, 5)
        rng = np.random.default_rng(seed)
        alpha = np.where(rng.random(50) < 0.3, 1.0, 0.0)
        alpha[:6] = rng.uniform(0.1, 0.9, 6)
        ended += follow(X, y, (alpha * y) @ X, 0.0, alpha, np.ones(50)) is not None
    assert ended >= 80


@pytest.mark.parametrize("seed", range(8))
def test_a_sample_far_out_of_place_comes_to_the_margin_among_many(seed):
    """It does not take part in the solution that the path begins with, though it is far inside the margin."""
    y, X = signs_and_features(seed, 2_000, 4)
    rest = np.arange(2_000) != 7
    model = LinearSVM().fit(X[rest], y[rest])
    X[7] = -2.0 * y[7] * model.coef_[0] / np.linalg.norm(model.coef_[0]) ** 2
    alpha = np.zeros(2_000)
    alpha[np.flatnonzero(rest)[model.influential_[0]]] = model.multipliers_[0]
    caps = np.ones(2_000)
    found = follow(X, y, model.coef_[0], float(model.intercept_[0]), alpha, caps)
    assert found is not None
    assert found.multipliers[7] > 0.0
    assert violation(X, y, found.w, found.b, found.multipliers, caps) < 1e-6


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(12))
def test_samples_leave_and_arrive(seed, C):
    """From the solution for some samples to that for others."""
    y, X = signs_and_features(seed, 80, 6)
    before, after = np.ones(80, dtype=bool), np.ones(80, dtype=bool)
    before[70:], after[10:20] = False, False
    model = LinearSVM(C).fit(X[before], y[before])
    alpha, caps = np.zeros(80), np.full(after.sum(), C)
    alpha[np.flatnonzero(before)[model.influential_[0]]] = model.multipliers_[0]
    found = follow(X[after], y[after], model.coef_[0], float(model.intercept_[0]), alpha[after], caps)
    assert found is not None
    assert violation(X[after], y[after], found.w, found.b, found.multipliers, caps) < 1e-6
    again = LinearSVM(C).fit(X[after], y[after])
    assert np.allclose(found.w, again.coef_[0], atol=1e-8)
    assert np.isclose(found.b, again.intercept_[0], atol=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_samples_that_are_not_given_pull_at_the_weights(seed):
    """Those far from the margin enter by the sums of their multipliers."""
    y, X = signs_and_features(seed, 200, 5)
    model = LinearSVM().fit(X, y)
    w, b = model.coef_[0], float(model.intercept_[0])
    margins, alpha = y * (X @ w + b), np.zeros(200)
    alpha[model.influential_[0]] = model.multipliers_[0]
    near = np.abs(margins - 1.0) < 0.5
    between, caps, signed = (alpha > 1e-9) & (alpha < 1.0 - 1e-9), np.ones(near.sum()), (alpha * y)[~near]
    path = Path(
        X[near], y[near], w + 1e-3, b, between[near], caps, signed @ X[~near], float(signed.sum())
    )  # fmt: skip
    found = path.follow(1000)
    assert found is not None
    assert np.allclose(found.w, w, atol=1e-8)
    assert np.allclose(found.multipliers, alpha[near], atol=1e-8)


def test_one_sample_on_the_margin_leaves_b_alone_to_change():
    """Its multiplier cannot make up for the classes: b moves to where another sample is on the margin."""
    X, y = np.array([[1.0], [1.2], [-3.0], [-3.5], [0.8]]), np.array([1.0, 1.0, -1.0, -1.0, 1.0])
    w = np.array([0.5])
    found = Path(X, y, w, 0.5, np.arange(5) == 0, np.full(5, 0.01), np.zeros(1), 0.0).follow(100)
    assert found is not None
    assert violation(X, y, found.w, found.b, found.multipliers, np.full(5, 0.01)) < CLOSE


@examples(25)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["duplicates", "integers", "constant_columns", "grid", "conflicting_duplicates"]),
)
def test_ties_are_solved_or_left_to_others(seed, family):
    """Samples that depend on each other: it may give up, but what it calls a solution is one."""
    problem = make(family, seed, n=30, d=3, classes=2)
    X, y = problem.X.astype(np.float64), np.where(problem.y == problem.y[0], 1.0, -1.0)
    rng, size = np.random.default_rng(seed), 1.0 + float(np.max(np.sum(problem.X**2, axis=1)))
    alpha = np.where(rng.random(len(y)) < 0.5, problem.C, 0.0)
    alpha[:2] = 0.5 * problem.C
    caps = np.full(len(y), problem.C)
    found = follow(X, y, (alpha * y) @ X, 0.0, alpha, caps)
    if found is not None:
        bad = violation(X, y, found.w, found.b, found.multipliers, caps)
        assert bad < 1e-5 * max(problem.C, 1.0) * size


@examples(15)
@given(st.integers(0, 10**6), st.integers(2, 12), st.sampled_from([0, 256]))
def test_the_system_stays_that_of_its_samples(seed, d, small):
    """Samples come and go in any order, and updates wait or not; the inverse that is kept solves the system."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3 * d, d))
    system = MarginSystem(X, small)
    assert system.begin(np.arange(2))
    for _ in range(120):
        held = system.places[system.filled].tolist()
        place = int(rng.integers(len(X)))
        if place in held:
            if len(held) > 1:
                slot = int(np.flatnonzero(system.places == place)[0])
                system.drop(slot, system.column(slot))
        else:
            toward, beyond, _ = system.toward(place)
            if beyond > 1e-3:
                system.take(place, toward, beyond)
        filled, scores = system.filled, np.zeros(d + 1)
        scores[filled] = rng.normal(size=len(filled))
        found = system.solve(scores, 0.3)
        members, size = X[system.places[filled]], 1.0 + np.max(np.abs(system.diagonal))
        assert np.isclose(found[:-1].sum(), 0.3, atol=1e-9 * size)
        assert np.allclose(members @ (found[:-1][filled] @ members) + found[-1], scores[filled], atol=1e-8 * size)


def test_a_full_system_takes_no_more():
    X = np.random.default_rng(0).normal(size=(10, 3))
    system = MarginSystem(X)
    assert system.begin(np.arange(4))
    assert system.full
    assert not system.begin(np.arange(5))
    assert not system.begin(np.empty(0, dtype=np.int64))
    assert not MarginSystem(np.ones((4, 3))).begin(np.arange(2))


@examples(25)
@given(st.integers(0, 10**6), st.integers(3, 30), st.sampled_from([0.0, 1e-8, 1e-6, 1e-4]))
def test_what_is_left_of_a_sample_is_not_rounding(seed, d, apart):
    """The mean of others is seen to depend on them, and one a little off by as much as it is."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(d + 1, d))
    X[-1] = X[: d - 1].mean(axis=0)
    away = np.linalg.svd(X[: d - 1])[2][-1]  # a direction across all of them
    X[-1] += apart * away
    system = MarginSystem(X)
    assert system.begin(np.arange(d - 1))
    toward, beyond, _ = system.toward(d)
    assert np.allclose(toward[: d - 1], 1.0 / (d - 1), atol=1e-4)
    assert np.isclose(beyond, apart**2, rtol=1e-3, atol=0.0)


def test_few_samples_are_forgotten_and_inserted_without_newton(monkeypatch):
    """Where a path leads to the solution nothing starts anew, and the bytes are those of a fit."""
    rng = np.random.default_rng(3)
    y = rng.integers(4, size=1500)
    X = 0.7 * rng.normal(size=(4, 40))[y] + rng.normal(size=(1500, 40))
    model = LinearSVM().fit(X[:1480], y[:1480])
    gone = model.support_[[3, 50, 90]]
    kept = np.setdiff1d(np.arange(1480), gone)
    expected = LinearSVM().fit(
        X[np.concatenate([kept, np.arange(1480, 1500)])], y[np.concatenate([kept, np.arange(1480, 1500)])]
    )
    with monkeypatch.context() as patch:
        patch.setattr(newton, "minimise", None)
        for row in gone:
            model.forget([row])
        model.insert(X[1480:], y[1480:])
    assert model.coef_.tobytes() == expected.coef_.tobytes()
    assert model.intercept_.tobytes() == expected.intercept_.tobytes()


@pytest.mark.parametrize("digits", [7.0, 7.5, 8.0, 8.5, 12.0])
@pytest.mark.parametrize("seed", range(20))
def test_samples_that_hardly_differ_make_a_system_or_none(seed, digits):
    """What rounding leaves of their difference is no reason to fail."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.integers(-1, 2, size=(2, 3)).astype(float), 2, axis=0)
    X += 10.0**-digits * rng.integers(-1, 2, size=X.shape)
    system = MarginSystem(X)
    if system.begin(np.arange(4)):
        assert np.isfinite(system.older).all()
