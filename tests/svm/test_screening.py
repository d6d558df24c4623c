"""What a screen says of margins holds for every change of the weights, and requests that rely on it change no byte."""

import copy
import math
import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr import LinearSVM
from maxrr.svm.exact import deciding
from maxrr.svm.exact.deciding import distances
from maxrr.svm.problem import Screen, size
from tests.cases import examples
from tests.svm.problems import assert_equal, make, problems

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")


def exact_margin(x, w, b, y):
    score = sum((Fraction(one) * Fraction(other) for one, other in zip(x, w, strict=True)), Fraction(b))
    return y * score


@examples(60)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 8]))
def test_bounds_hold_exactly_along_a_walk_of_the_weights(seed, kept):
    """Samples of very different lengths, weights that move by steps of very different sizes."""
    rng = np.random.default_rng(seed)
    n, d = 12, int(rng.integers(1, 5))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-6, 6, size=(n, 1))
    y = rng.choice([-1.0, 1.0], n)
    w, b = rng.normal(size=d) * 10.0 ** rng.uniform(-3, 3), float(rng.normal())
    lengths = np.linalg.norm(X, axis=1)
    screen = Screen.of(distances(lengths, w, b, y * (X @ w + b)), lengths, kept)
    for _ in range(5):
        other = w + rng.normal(size=d) * 10.0 ** rng.uniform(-12, 0) * size(w), b + float(rng.normal()) * 1e-3
        near = screen.places
        fresh = distances(lengths[near], *other, (y * (X @ other[0] + other[1]))[near])
        screen = screen.after(size(other[0] - w), abs(other[1] - b), near, fresh)
        w, b = other
        known = dict(zip(screen.places.tolist(), screen.distance.tolist(), strict=True))
        for row in range(n):
            distance = abs(exact_margin(X[row], w, b, int(y[row])) - 1)
            typical = Fraction(screen.rest) * (Fraction(lengths[row]) + Fraction(screen.typical))
            assert distance >= (Fraction(known[row]) if row in known else typical)


def test_a_request_does_without_a_pass():
    problem = make("well_behaved", 1, n=3000, d=6, classes=3, C=0.1)
    model = problem.fit()
    for row in model.support_[:5]:
        model.forget([row])
        assert model._fitted.solution.work.passes == 0
    assert_equal(model, problem.fit_on(model._rows), problem.X)


@pytest.mark.parametrize("kept", [0, 1, 1000])
@examples(15)
@given(problems(), st.integers(0, 10**6))
def test_requests_end_in_the_same_bytes_however_much_is_kept(kept, problem, seed):
    """With nothing kept every request needs a pass; with a little, the bound for all others decides."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deciding, "KEPT", kept)
        model = problem.fit()
        rng = np.random.default_rng(seed)
        for _ in range(4):
            rows = rng.choice(model._rows, min(2, len(model._rows)), replace=False)
            left = np.setdiff1d(model._rows, rows)
            if len(np.unique(problem.y[left])) < 2:
                break
            model.forget(rows)
        if len(model._rows) < len(problem.y):
            assert_equal(model, problem.fit_on(model._rows), problem.X)


def test_the_bound_for_all_others_wears_out_and_is_renewed():
    """Each request takes from it what the weights moved; when it says nothing any more, a pass makes a new one."""
    problem = make("well_behaved", 2, n=1500, d=5, classes=2, C=1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deciding, "KEPT", 20)
        model = problem.fit()
        passes, rests = [], []
        for _ in range(30):
            model.forget(model.support_[:1])
            passes.append(model._fitted.solution.work.passes)
            rests.append(model._fitted.solution.heads[0].screen.rest)
    assert 0 in passes
    assert max(passes) > 0
    assert any(later < before for before, later in pairwise(rests))
    assert any(later > before for before, later in pairwise(rests))
    assert_equal(model, problem.fit_on(model._rows), problem.X)


def test_inserted_samples_are_watched():
    """One that arrives without influence, near the margin, is known when the margin comes to it."""
    problem = make("well_behaved", 3, n=400, d=3, classes=2, C=1.0)
    order = np.argsort(problem.X[:, 0])
    first, later = np.sort(order[:350]), np.sort(order[350:])
    model = LinearSVM(1.0).fit(problem.X[first], problem.y[first])
    for row in later:
        model.insert(problem.X[row : row + 1], problem.y[row : row + 1])
    model.forget(model.support_[:20])
    kept = np.concatenate([first, later])[model._rows]
    assert_equal(model, problem.fit_on(kept), problem.X)


def test_a_screen_knows_those_that_came_last():
    screen = Screen(np.array([2, 5]), np.array([0.1, 0.2]), 0.3, 1.0)
    found = screen.with_known(np.array([1, 5]), np.array([0.4, 0.5]))
    assert found.places.tolist() == [1, 2, 5]
    assert found.distance.tolist() == [0.4, 0.1, 0.5]
    assert found.without(np.array([2])).places.tolist() == [1, 5]
    assert replace(found, rest=0.0).rest_in_doubt(0.0, 0.0)


def test_nothing_of_the_weights_before_is_in_a_screen():
    """Distances are those at the weights as they are; the two numbers that are carried along have a few bits."""
    problem = make("well_behaved", 4, n=2500, d=6, classes=3, C=0.1)
    model = problem.fit()
    gone = model.support_[:4]
    for row in gone:
        model.forget([row])
        assert model._fitted.solution.work.passes == 0
    X, y = problem.X, problem.y
    for head, label in zip(model._fitted.solution.heads, model.classes_, strict=True):
        screen = head.screen
        assert not np.isin(gone, screen.places).any()
        signs = np.where(y[screen.places] == label, 1.0, -1.0)
        margins = signs * (X[screen.places] @ head.w + head.b)
        lengths = np.linalg.norm(X[screen.places], axis=1)
        assert screen.distance == pytest.approx(distances(lengths, head.w, head.b, margins), abs=1e-13)
        assert math.frexp(screen.typical)[0] == 0.5
        assert (8.0 * math.frexp(screen.rest)[0]).is_integer()


def test_a_pickle_and_a_copy_have_no_screens():
    problem = make("well_behaved", 5, n=300, d=4, classes=3)
    model = problem.fit()
    row = int(model.support_[0])
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert all(head.screen is None for head in other._fitted.solution.heads)
        other.forget([row])
        assert_equal(other, problem.fit_on(other._rows), problem.X)
    assert all(head.screen is not None for head in model._fitted.solution.heads)


def test_a_screen_does_not_grow_with_what_arrives():
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 2
    X = rng.normal(size=(3000, 2)) + 6.0 * y[:, None]
    model = LinearSVM().fit(X[:500], y[:500])
    for first in range(500, 3000, 100):
        model.insert(X[first : first + 100], y[first : first + 100])
    assert len(model._fitted.solution.heads[0].screen.places) <= 2 * deciding.kept(2)
    model.forget(model.support_[:2])
    other = LinearSVM().fit(X[model._rows], y[model._rows])
    assert model.coef_.tobytes() == other.coef_.tobytes()
