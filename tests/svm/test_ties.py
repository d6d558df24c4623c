"""Heads whose solution is w = 0: a small class inside a large one. All of the large class lies on the margin."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.svm.oracles import with_clarabel, with_piqp

from maxrr.svm import LinearSVM, cold, refine
from maxrr.svm.balance import balance
from maxrr.svm.problem import Samples

COUNT, SMALL_CLASS = 6600, 600  # more ties than the solver works on at once


@pytest.fixture(scope="module")
def overlapping():
    rng = np.random.default_rng(0)
    return rng.normal(size=(COUNT, 5)), (np.arange(COUNT) < SMALL_CLASS).astype(int)


def test_the_solution_is_zero(overlapping):
    """With w = 0 the loss is least at b = −1, where the large class pays nothing and the small one 2C each."""
    X, y = overlapping
    model = LinearSVM(C=0.1).fit(X, y)
    certificate = model.certificate_[0]
    assert not model.coef_.any()
    assert model.intercept_ == -1.0
    assert certificate.n_free == COUNT - SMALL_CLASS
    assert certificate.n_bounded == SMALL_CLASS
    assert certificate.solved
    assert certificate.primal == pytest.approx(2 * 0.1 * SMALL_CLASS, rel=1e-14)


@pytest.mark.parametrize("count", [1, 30, 500])
def test_forgetting_some_of_the_ties(overlapping, count):
    X, y = overlapping
    gone = np.random.default_rng(count).choice(COUNT, count, replace=False)
    kept = np.setdiff1d(np.arange(COUNT), gone)
    model = LinearSVM(C=0.1).fit(X, y)
    model.forget(gone)
    scratch = LinearSVM(C=0.1).fit(X[kept], y[kept], keys=kept)
    assert model.work_.cold_solves == 0
    assert model.certificate_[0].solved
    assert model.coef_.tobytes() == scratch.coef_.tobytes()
    assert model.intercept_.tobytes() == scratch.intercept_.tobytes()
    np.testing.assert_array_equal(kept[scratch.support_], model.support_)


def near_the_edge(seed, large_class, small_class, d):
    """The sum of the small class is that of `share` times samples at one end of the large class, with Σ share as many.

    So w = 0 and b = −1 are optimal: C·share are multipliers that prove it, and there are not many others.
    """
    rng = np.random.default_rng(seed)
    large = np.maximum(rng.normal(size=(large_class, d)), 0.0)
    end = np.argsort(large @ rng.normal(size=d))[-2 * small_class :]
    share = rng.uniform(size=small_class)
    small = large[rng.choice(large_class, small_class, replace=False)]
    small += (np.concatenate([share, 1.0 - share]) @ large[end] - small.sum(axis=0)) / small_class
    return np.concatenate([small, large]), (np.arange(small_class + large_class) < small_class).astype(int)


@pytest.mark.parametrize(
    ("seed", "large_class", "small_class", "d", "C"),
    [(101, 4200, 150, 5, 0.1), (107, 4500, 300, 3, 1.0), (643, 4500, 300, 3, 1.0), (50, 4500, 300, 3, 1.0)],
)
def test_thousands_of_ties_that_hardly_balance(seed, large_class, small_class, d, C):
    """These ended with the right weights and useless multipliers, the first with a gap of two thirds."""
    X, y = near_the_edge(seed, large_class, small_class, d)
    model = LinearSVM(C).fit(X, y)
    certificate = model.certify(X, y)[0]
    assert certificate.solved
    assert certificate.primal == pytest.approx(2.0 * C * small_class, rel=1e-10)
    assert np.max(np.abs(model.coef_)) <= 1e-9
    assert model.intercept_ == pytest.approx(-1.0, abs=1e-9)


@pytest.mark.parametrize("oracle", [with_clarabel, with_piqp])
@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    small_class=st.integers(1, 12),
    d=st.integers(1, 6),
    C=st.sampled_from([0.01, 0.1, 1.0, 10.0]),
)
def test_the_oracles_find_nothing_better_than_zero(oracle, seed, small_class, d, C):
    """P(w) ≥ P* + ½|w − w*|², and 1e-8 leaves the oracle three digits to lose, as in `test_oracles`."""
    X, y = near_the_edge(seed, 5 * small_class + 10 * d, small_class, d)
    model = LinearSVM(C).fit(X, y)
    w, _, value = oracle(X, np.where(y == 1, 1.0, -1.0), C)
    close = 1e-8 * max(1.0, value)
    assert model.certificate_[0].solved
    assert model.certificate_[0].primal == pytest.approx(2.0 * C * small_class, rel=1e-10)
    assert abs(value - model.certificate_[0].primal) <= close
    assert np.linalg.norm(w - model.coef_[0]) <= np.sqrt(2.0 * close)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), small_class=st.integers(1, 12), d=st.integers(1, 6))
def test_ruined_multipliers_are_made_again(seed, small_class, d):
    """A trial that has the right margins and a random α, and is out of rounds."""
    X, y = near_the_edge(seed, 5 * small_class + 10 * d, small_class, d)
    count, rng = len(y), np.random.default_rng(seed)
    samples = Samples(X, np.linalg.norm(X, axis=1), y, np.arange(count), np.ones(count, dtype=bool))
    trial = replace(
        cold.start(samples, 1.0, [1])[0],
        w=np.zeros(d), b=-1.0, margins=np.where(y == 1, -1.0, 1.0), alpha=rng.uniform(size=count), spread=0.0,
    )  # fmt: skip
    assert not refine.as_it_stands(samples, 1.0, trial).certificate.solved
    head = refine.last_resort(samples, 1.0, trial)
    assert head.certificate.solved
    assert head.certificate.decided
    assert not head.w.any()


# Multipliers for given sums


@settings(max_examples=200)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 200),
    d=st.integers(1, 10),
    C=st.floats(-3.0, 3.0).map(lambda power: 10.0**power),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    shape=st.sampled_from([1, 8]),
    grid=st.booleans(),
)
def test_multipliers_have_the_sums_asked_for(seed, count, d, C, scale, shape, grid):
    """Sums of multipliers that exist, spread evenly or most of them near zero. 1e-11 is what `decided` asks for."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, d))
    X = scale * (np.round(X) if grid else X)
    y = np.where(rng.uniform(size=count) < 0.5, 1.0, -1.0)
    known = C * rng.uniform(size=count) ** shape
    alpha = balance(X, y, C, (known * y) @ X, float(np.sum(known * y)))
    assert np.all((alpha >= 0.0) & (alpha <= C))
    terms = np.sum(known)
    assert abs(np.sum((alpha - known) * y)) <= 1e-11 * terms
    assert np.linalg.norm(((alpha - known) * y) @ X) <= 1e-11 * terms * np.max(np.linalg.norm(X, axis=1))


def test_sums_that_no_multipliers_have():
    """Three samples with x ≤ 2 and a mean of 3 asked for: in bounds all the same, and visibly wrong."""
    X, y = np.array([[0.0], [1.0], [2.0]]), np.ones(3)
    alpha = balance(X, y, 1.0, np.array([3.0]), 1.0)
    assert np.all((alpha >= 0.0) & (alpha <= 1.0))
    assert abs(alpha @ X[:, 0] - 3.0) + abs(np.sum(alpha) - 1.0) > 0.5
