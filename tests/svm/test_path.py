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


@examples(25)
@given(st.integers(0, 10**6), st.integers(12, 60), st.integers(1, 8), st.sampled_from([0.01, 1.0, 30.0]))
def test_from_any_multipliers_it_ends_at_the_solution(seed, n, d, C):
    """Up to d + 1 between their bounds, others at one of them wherever their margins are, classes out of balance."""
    y, X = signs_and_features(seed, n, d)
    rng = np.random.default_rng(seed + 1)
    caps = C * rng.uniform(0.5, 2.0, n)
    alpha = np.where(rng.random(n) < 0.3, caps, 0.0)
    between = rng.choice(n, d + 1, replace=False)
    alpha[between] = caps[between] * rng.uniform(0.1, 0.9, d + 1)
    w, b = (alpha * y) @ X, float(rng.normal())
    found = Path(X, y, w, b, alpha, caps, caps, float(alpha @ y)).follow(5000)
    if found is not None:
        assert violation(X, y, found.w, found.b, found.multipliers, caps) < CLOSE * (1.0 + C)


def test_even_from_far_away_it_seldom_gives_up():
    ended = 0
    for seed in range(100):
        y, X = signs_and_features(seed, 50, 5)
        rng = np.random.default_rng(seed)
        alpha = np.where(rng.random(50) < 0.3, 1.0, 0.0)
        alpha[:6] = rng.uniform(0.1, 0.9, 6)
        path = Path(X, y, (alpha * y) @ X, 0.0, alpha, np.ones(50), np.ones(50), float(alpha @ y))
        ended += path.follow(1000) is not None
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
    found = Path(X, y, model.coef_[0], float(model.intercept_[0]), alpha, caps, caps, 0.0).follow(1_000)
    assert found is not None
    assert found.multipliers[7] > 0.0
    assert violation(X, y, found.w, found.b, found.multipliers, caps) < 1e-6


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(12))
def test_samples_leave_and_arrive(seed, C):
    """From the solution for some samples to that for others: bounds fall to zero or rise from it."""
    y, X = signs_and_features(seed, 80, 6)
    before, after = np.ones(80, dtype=bool), np.ones(80, dtype=bool)
    before[70:], after[10:20] = False, False
    model = LinearSVM(C).fit(X[before], y[before])
    alpha = np.zeros(80)
    alpha[np.flatnonzero(before)[model.influential_[0]]] = model.multipliers_[0]
    path = Path(X, y, model.coef_[0], float(model.intercept_[0]), alpha, C * before, C * after, 0.0)
    found = path.follow(1000)
    assert found is not None
    assert not (found.on_margin | found.inside)[~after].any()
    assert violation(X[after], y[after], found.w, found.b, found.multipliers[after], np.full(after.sum(), C)) < 1e-6
    again = LinearSVM(C).fit(X[after], y[after])
    assert np.allclose(found.w, again.coef_[0], atol=1e-8)
    assert np.isclose(found.b, again.intercept_[0], atol=1e-8)


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
    found = Path(X, y, (alpha * y) @ X, 0.0, alpha, caps, caps, float(alpha @ y)).follow(1000)
    if found is not None:
        bad = violation(X, y, found.w, found.b, found.multipliers, caps)
        assert bad < 1e-5 * max(problem.C, 1.0) * size


@examples(15)
@given(st.integers(0, 10**6), st.integers(2, 12))
def test_the_system_stays_that_of_its_samples(seed, d):
    """Samples come and go in any order; what is kept up to date equals what is computed anew."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3 * d, d))
    system = MarginSystem(X, float(d))
    assert system.begin(np.arange(2))
    system.ask(np.where(system.filled, 1.0, 0.0))
    for _ in range(60):
        held = system.places[system.filled].tolist()
        place = int(rng.integers(len(X)))
        if place in held:
            if len(held) > 1:
                system.drop(int(np.flatnonzero(system.places == place)[0]))
        else:
            toward, beyond = system.toward(place)
            if beyond > 1e-3:
                system.take(place, toward, beyond, float(rng.normal()))
        filled = system.filled
        members = X[system.places[filled]]
        inverse = np.linalg.inv(members @ members.T + d)
        expected = np.zeros_like(system.solution)
        expected[:, filled] = system.right[:, filled] @ inverse
        assert np.allclose(system.solution, expected, atol=1e-6 * (1.0 + np.max(np.abs(inverse))))
        signed, shift = system.solve(0.3)
        assert np.isclose(signed.sum(), -0.3, atol=1e-6)
        rise = members @ (signed[filled] @ members) + shift
        assert np.allclose(rise, system.right[0, filled], atol=1e-5)


def test_a_full_system_takes_no_more():
    X = np.random.default_rng(0).normal(size=(10, 3))
    system = MarginSystem(X, 3.0)
    assert system.begin(np.arange(4))
    assert system.toward(5)[1] == 0.0
    assert not system.begin(np.arange(5))
    assert not system.begin(np.empty(0, dtype=np.int64))
    assert not MarginSystem(np.ones((4, 3)), 3.0).begin(np.arange(2))


@examples(25)
@given(st.integers(0, 10**6), st.integers(3, 30), st.sampled_from([0.0, 1e-8, 1e-6, 1e-4]))
def test_what_is_left_of_a_sample_is_not_rounding(seed, d, apart):
    """The mean of others is seen to depend on them, and one a little off by as much as it is."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(d + 1, d))
    X[-1] = X[: d - 1].mean(axis=0)
    away = np.linalg.svd(X[: d - 1])[2][-1]  # a direction across all of them
    X[-1] += apart * away
    system = MarginSystem(X, float(d))
    assert system.begin(np.arange(d - 1))
    toward, beyond = system.toward(d)
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
