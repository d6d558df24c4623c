"""Heads whose solution is w = 0: a small class inside a large one. All of the large class lies on the margin."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr import LinearSVM
from maxrr.parallel.engine import InProcess
from maxrr.svm.exact import fallback
from maxrr.svm.exact.multipliers import Search
from maxrr.svm.problem import Penalties, Samples
from maxrr.svm.search.start import start_heads
from maxrr.svm.validation import sizes
from tests.cases import examples
from tests.svm.oracles import with_clarabel, with_piqp

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # on purpose

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
    assert certificate.on_margin == COUNT - SMALL_CLASS
    assert certificate.inside == SMALL_CLASS
    assert certificate.decided
    assert certificate.error <= 1e-30
    assert certificate.primal == pytest.approx(2 * 0.1 * SMALL_CLASS, rel=1e-14)


@pytest.mark.parametrize("count", [1, 30, 500])
def test_forgetting_some_of_the_ties(overlapping, count):
    X, y = overlapping
    gone = np.random.default_rng(count).choice(COUNT, count, replace=False)
    kept = np.setdiff1d(np.arange(COUNT), gone)
    model = LinearSVM(C=0.1).fit(X, y)
    model.forget(gone)
    scratch = LinearSVM(C=0.1).fit(X[kept], y[kept])
    assert model._fitted.solution.work.cold_solves == 0
    assert model.certificate_[0].decided
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
    certificate = model.certificate_[0]
    assert certificate.decided
    assert certificate.primal == pytest.approx(2.0 * C * small_class, rel=1e-10)
    assert np.max(np.abs(model.coef_)) <= 1e-9
    assert model.intercept_ == pytest.approx(-1.0, abs=1e-9)


@pytest.mark.parametrize("oracle", [with_clarabel, with_piqp])
@examples(30)
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


@examples(30)
@given(seed=st.integers(0, 2**32 - 1), small_class=st.integers(1, 12), d=st.integers(1, 6))
def test_ruined_multipliers_are_made_again(seed, small_class, d):
    """A trial that has the right margins and a random α, and is out of rounds: another method starts from scratch.

    The sums that make the weights zero are rounded, so that the exact weights are about as large as that.
    """
    X, y = near_the_edge(seed, 5 * small_class + 10 * d, small_class, d)
    count, rng = len(y), np.random.default_rng(seed)
    samples = Samples(X, *sizes(X), y, np.ones(count, dtype=bool), Penalties(1.0, np.ones(count), np.ones(count)))
    trial = replace(
        start_heads(samples, [1], InProcess())[0],
        w=np.zeros(d), b=-1.0, margins=np.where(y == 1, -1.0, 1.0), alpha=rng.uniform(size=count), spread=0.0,
    )  # fmt: skip
    head = fallback.solve_surely(samples, trial)
    assert head.certificate.decided
    assert np.max(np.abs(head.w)) <= 1e-9
    model = LinearSVM().fit(X, y)
    assert head.w.tobytes() == model.coef_.tobytes()
    assert head.b == model.intercept_[0]


def contradicting(count, width, share, seed=0):
    """Pairs of equal rows, of which this share have opposite labels."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(count // 2, width))
    first = half[:, 0] > 0.0
    return np.tile(half, (2, 1)), np.concatenate([first, first ^ (rng.random(count // 2) < share)]).astype(int)


@pytest.mark.parametrize("request_of", [100, 150, "insert"])
def test_a_working_set_that_was_wrong_about_others_is_not_pivoted_on(request_of, monkeypatch):
    """There were up to a hundred pivots on samples that a look at all would have taken away: ten fits' time."""
    pivots, target = [], Search.target
    X, y = contradicting(3000, 20, 0.9)
    model, rng = LinearSVM().fit(X, y), np.random.default_rng(1000)
    monkeypatch.setattr(Search, "target", lambda search: pivots.append(search) or target(search))
    if request_of == "insert":
        rows = rng.choice(3000, 50)
        X, y = np.concatenate([X, X[rows]]), np.concatenate([y, np.roll(y[rows], 1)])
        model.insert(X[3000:], y[3000:])
    else:
        rows = rng.choice(model.support_, request_of, replace=False)
        X, y = np.delete(X, rows, 0), np.delete(y, rows)
        model.forget(rows)
    assert len(pivots) <= 10
    scratch = LinearSVM().fit(X, y)
    assert model.certificate_[0].decided
    assert model.coef_.tobytes() + model.intercept_.tobytes() == scratch.coef_.tobytes() + scratch.intercept_.tobytes()


def test_a_head_that_had_no_weights_is_not_looked_for_near_them():
    """It was tried near them twice, on some samples and on all, and then begun anew."""
    X, y = contradicting(1000, 20, 1.0)
    model = LinearSVM().fit(X, y)
    assert not model.coef_.any()
    rows = np.random.default_rng(0).choice(1000, 10, replace=False)
    model.forget(rows)
    assert model.coef_.any()
    assert model._fitted.solution.work.passes <= 2
    scratch = LinearSVM().fit(np.delete(X, rows, 0), np.delete(y, rows))
    assert model.coef_.tobytes() + model.intercept_.tobytes() == scratch.coef_.tobytes() + scratch.intercept_.tobytes()


def test_two_of_three_samples_are_one():
    """Their system has no inverse: that is no reason for a fit to end."""
    model = LinearSVM(1e4).fit(np.array([[0.0, 0.0], [-2.92, -1.19], [0.0, 0.0]]), np.array([1, 0, 1]))
    assert model.certificate_[0].decided
    assert model.predict(np.array([[0.0, 0.0], [-2.92, -1.19]])).tolist() == [1, 0]
