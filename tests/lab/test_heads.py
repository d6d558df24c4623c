"""Heads against scikit-learn's one-vs-one and our own one-vs-rest; masks; and many of them at once."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from sklearn.svm import SVC

from lab import heads as solver
from lab.heads import OneVsOne, OneVsRest, accuracy, pairs, solve_one_vs_one, solve_one_vs_rest
from maxrr import LinearSVM
from maxrr.parallel import Processes, processes
from maxrr.parallel.engine import InProcess
from maxrr.parallel.processes import Parcel
from maxrr.svm import influence, validation
from maxrr.svm.arrays import is_torch

SOLVE = [solve_one_vs_rest, solve_one_vs_one]


def problem(seed, classes=4, count=90, features=5):
    """Overlapping clouds, under labels that do not begin at 0."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, count)
    labels[:classes] = np.arange(classes)
    X = random.normal(size=(count, features)) + 1.5 * random.normal(size=(classes, features))[labels]
    return X, 2 * labels + 3


def in_float32(seed):
    """As extractors give them."""
    X, y = problem(seed)
    return X.astype(np.float32), y


@pytest.mark.parametrize("seed", range(4))
def test_one_vs_one_is_scikit_learns(seed):
    X, y = problem(seed)
    queries, _ = problem(seed + 100)
    theirs = SVC(kernel="linear", decision_function_shape="ovo", tol=1e-9).fit(X, y)
    ours = solve_one_vs_one(X, y, None)
    scores = ours.scores(queries)
    assert ours.classes.tolist() == theirs.classes_.tolist()
    np.testing.assert_allclose(scores, -theirs.decision_function(queries), atol=1e-5)  # theirs speak for the first
    assert np.array_equal(ours.choose(scores), theirs.predict(queries))
    # Who is influential in one and not in the other lies on a margin.
    doubtful = np.flatnonzero(ours.influential != np.isin(np.arange(len(y)), theirs.support_))
    assert (np.abs(np.abs(ours.scores(X[doubtful])) - 1.0).min(axis=1) < 1e-6).all()
    assert len(doubtful) <= 2
    assert 0 < ours.influential.sum() < len(y)


def test_of_equal_votes_the_first_class_wins():
    head = OneVsOne(np.array([2, 5, 9]), np.zeros((3, 1)), np.zeros(3), np.zeros(0, dtype=bool), 0.0)
    assert pairs(range(3)) == [(0, 1), (0, 2), (1, 2)]
    circle = [-1.0, 1.0, -1.0]  # 2 beats 5, 9 beats 2, 5 beats 9
    for_last, for_middle = [0.5, 0.1, 0.1], [0.1, -1.0, -1.0]
    assert head.choose(np.array([circle, for_last, for_middle])).tolist() == [2, 9, 5]


@pytest.mark.parametrize("classes", [2, 4])
def test_one_vs_rest_is_our_svm(classes):
    X, y = problem(7, classes)
    model, head = LinearSVM().fit(X, y), solve_one_vs_rest(X, y, None)
    np.testing.assert_allclose(head.scores(X).squeeze(), model.decision_function(X), rtol=1e-12, atol=1e-12)
    assert np.array_equal(head.choose(head.scores(X)), model.predict(X))
    assert np.array_equal(np.flatnonzero(head.influential), np.sort(model.support_))
    assert accuracy(head, X, y) == model.score(X, y)


@pytest.mark.parametrize("solve", SOLVE)
def test_a_mask_is_a_fit_on_its_records(solve):
    X, y = in_float32(1)
    mask = np.random.default_rng(2).random(len(y)) < 0.6
    mask[y == 3] = False  # a class that is not there
    masked, alone = solve(X, y, mask), solve(X[mask], y[mask], None)
    assert masked.classes.tolist() == alone.classes.tolist() == [5, 7, 9]
    np.testing.assert_allclose(masked.weights, alone.weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(masked.biases, alone.biases, rtol=1e-9, atol=1e-12)
    assert np.array_equal(masked.influential[mask], alone.influential)
    assert not masked.influential[~mask].any()


@pytest.mark.parametrize(
    ("kind", "made"),
    [("one-vs-rest", OneVsRest), ("one-vs-one", OneVsOne)],
)
def test_in_processes_the_heads_are_the_same(kind, made, monkeypatch):
    runs, y = [in_float32(seed)[0] for seed in (1, 2, 3)], in_float32(1)[1]
    some = np.random.default_rng(2).random(len(y)) < 0.6
    masks, said = [None, some, some], []
    here = list(solver.solve(kind, runs, y, masks))
    monkeypatch.setattr(solver, "SMALL", 0)
    monkeypatch.setattr(influence, "staying", lambda module: nullcontext(InProcess()))
    there = list(solver.solve(kind, runs, y, masks, lambda what, done, total, **_: said.append((done, total))))
    assert said[-1] == (3, 3)
    for one, other in zip(here, there, strict=True):
        assert type(one) is type(other) is made
        assert np.array_equal(one.classes, other.classes)
        np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(one.biases, other.biases, rtol=1e-9, atol=1e-12)
        assert np.array_equal(one.influential, other.influential)
    assert not np.array_equal(here[0].influential, here[1].influential)


def test_from_a_device_the_heads_of_pairs_are_the_same(monkeypatch):
    """To the byte, also where a class has one record, and where a mask leaves none of it."""
    runs, y = [problem(seed, count=400)[0] for seed in (1, 2, 3)], problem(1, count=400)[1]
    y[np.flatnonzero(y == 9)[1:]] = 3
    some = np.random.default_rng(2).random(len(y)) < 0.6
    some[y == 9] = False
    masks = [None, None, some]
    here = [solve_one_vs_one(X, y, mask) for X, mask in zip(runs, masks, strict=True)]
    assert [len(one.weights) for one in here] == [6, 6, 3]
    monkeypatch.setattr(solver, "SMALL", 0)
    for module in (influence, validation):
        monkeypatch.setattr(module, "on_accelerator", is_torch)
    there = solver.solve("one-vs-one", [torch.tensor(X) for X in runs], y, masks)
    for one, other in zip(here, there, strict=True):
        assert one.weights.tobytes() == other.weights.tobytes()
        assert one.biases.tobytes() == other.biases.tobytes()
        assert np.array_equal(one.classes, other.classes)
        assert np.array_equal(one.influential, other.influential)


def test_nothing_to_solve():
    assert list(solver.solve("one-vs-rest", [], np.array([0, 1]), [])) == []


@pytest.mark.long
def test_features_are_copied_only_for_heads_that_are_next(monkeypatch):
    """However many there are: a hundred networks' features would fill the memory."""
    X, y = problem(3, 3)
    copied = []
    monkeypatch.setattr(influence, "staying", lambda module: Processes(1)._kept())
    monkeypatch.setattr(processes, "AHEAD", 1)
    parcel_of = Parcel.of
    monkeypatch.setattr(Parcel, "of", lambda array: copied.append(array.shape) or parcel_of(array))
    monkeypatch.setattr(solver, "SMALL", 0)
    heads = solver.solve("one-vs-rest", [X] * 7, y, [None] * 7)
    first = next(heads)
    assert copied.count(X.shape) == 2
    rest = list(heads)
    assert (len(rest), copied.count(X.shape)) == (6, 7)
    assert all(np.array_equal(head.weights, first.weights) for head in rest)
    here = solve_one_vs_rest(X, y, None)
    np.testing.assert_allclose(first.weights, here.weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(first.biases, here.biases, rtol=1e-9, atol=1e-12)
    assert np.array_equal(first.influential, here.influential)
