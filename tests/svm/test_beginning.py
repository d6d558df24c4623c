"""A fit may begin anywhere: where it ends is the same. And where heads for other features begin."""

import itertools

import numpy as np
import pytest

from maxrr.svm import LinearSVM, heads
from maxrr.svm.search import start
from tests.cases import thinned
from tests.svm.problems import make

FAMILY = "well_behaved"


def assert_same(one, other):
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.intercept_.tobytes() == other.intercept_.tobytes()
    assert all(head.decided for head in other.certificate_)


SCALES = [0.0, 1e-300, 1.0, 1e6, 1e250, 1e307]
SHAPES = [(40, 3, 2), (300, 8, 4), (5_000, 6, 3), (700, 300, 3)]


@pytest.mark.parametrize(("shape", "scale"), thinned(5, itertools.product(SHAPES, SCALES)))
def test_it_ends_in_the_same_bytes_from_anywhere(shape, scale):
    n, d, classes = shape
    rng = np.random.default_rng(n + d)
    y = np.arange(n) % classes
    X = rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(classes, d))[y]
    usual = LinearSVM().fit(X, y)
    count = len(usual.coef_)
    other = LinearSVM().fit(
        X, y, coef_init=scale * rng.normal(size=(count, d)), intercept_init=scale * rng.normal(size=count)
    )
    assert_same(usual, other)
    assert_same(usual, LinearSVM().fit(X, y, coef_init=usual.coef_, intercept_init=usual.intercept_))


def test_a_start_that_leads_nowhere_is_left_for_the_usual_one(monkeypatch):
    problem = make(FAMILY, 0, 60, 4)
    usual = LinearSVM().fit(problem.X, problem.y)
    real, begun = heads.refine, []

    def fail_at_first(samples, trials, engine):
        begun.append({trial.width for trial in trials})
        found = real(samples, trials, engine)
        return found if len(begun) > 1 else [None for _ in found]

    monkeypatch.setattr(heads, "refine", fail_at_first)
    other = LinearSVM().fit(problem.X, problem.y, coef_init=usual.coef_ + 1.0, intercept_init=usual.intercept_)
    assert_same(usual, other)
    assert len(begun) == 2
    assert begun[0] == {start.NEARBY} != begun[1]


def test_two_samples_from_the_end_of_the_numbers():
    X, y = [[51.0, 11.0, 2.0, -23.0], [39.0, -40.0, 58.0, 13.0]], [1, 0]
    assert_same(LinearSVM().fit(X, y), LinearSVM().fit(X, y, coef_init=[[1e307] * 4], intercept_init=[1e307]))


WRONG = {
    "complex": ({"coef_init": np.zeros((3, 4)) + 1j, "intercept_init": np.zeros(3)}, "real numbers"),
    "other heads": ({"coef_init": np.zeros((2, 4)), "intercept_init": np.zeros(2)}, "3 × 4 numbers"),
    "other features": ({"coef_init": np.zeros((3, 5)), "intercept_init": np.zeros(3)}, "3 × 4 numbers"),
    "no bias": ({"coef_init": np.zeros((3, 4))}, "given together"),
    "no weights": ({"intercept_init": np.zeros(3)}, "given together"),
    "not finite": ({"coef_init": np.full((3, 4), np.nan), "intercept_init": np.zeros(3)}, "finite"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_start_is_refused(case):
    given, words = WRONG[case]
    problem = make(FAMILY, 0, 60, 4)
    with pytest.raises(ValueError, match=words):
        LinearSVM().fit(problem.X, problem.y, **given)


def test_scores_are_carried_over_to_features_that_say_the_same():
    rng = np.random.default_rng(0)
    before = rng.normal(size=(500, 9))
    after = before.copy()
    after[:, 3:6] = before[:, 3:6] @ rng.normal(size=(3, 3)) + 5.0
    w, b = rng.normal(size=(4, 9)), rng.normal(size=4)
    found, bias = start.carried_over(w, b, before, after, np.arange(3, 6))
    assert np.allclose(after @ found.T + bias, before @ w.T + b, atol=1e-3)
    assert np.array_equal(found[:, [0, 1, 2, 6, 7, 8]], w[:, [0, 1, 2, 6, 7, 8]])


def test_features_that_say_nothing_carry_nothing():
    before = np.random.default_rng(0).normal(size=(50, 3))
    after = before.copy()
    after[:, 1] = 0.0
    found, bias = start.carried_over(np.ones((2, 3)), np.zeros(2), before, after, np.array([1]))
    assert found[:, 1].tolist() == [0.0, 0.0]
    assert np.allclose(bias, before[:, 1].mean())


@pytest.mark.parametrize("n", [8_000, 50_000, 200_000])
@pytest.mark.parametrize("classes", [3, 4, 10, 25])
def test_a_part_has_samples_of_all_classes_where_these_take_turns(n, classes):
    """A twentieth more or less than a class's share is far more than what spreading the places leaves."""
    codes = np.arange(n) % classes
    y = np.where(codes == 0, 1.0, -1.0)
    chosen, weight = start.thin(np.arange(n), y, start.ENOUGH)
    assert len(np.unique(chosen)) == len(chosen)
    assert np.allclose(np.bincount(codes[chosen], weight), n / classes, rtol=0.05)
