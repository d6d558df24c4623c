"""scikit-learn's conventions, bad input, interruption: the estimator is always in one state that makes sense."""

import itertools
import warnings

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxrr import LinearSVM
from maxrr.svm.exact import deciding
from maxrr.svm.problem import Samples
from maxrr.svm.search.path import Path
from tests.cases import thinned
from tests.svm.problems import assert_equal, make, snapshot


@pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # features there are random
@parametrize_with_checks([LinearSVM()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture
def problem():
    return make("well_behaved", 0, n=60, d=3, classes=3)


X, Y = np.array([[1.0, 0.0], [-1.0, 0.5], [2.0, 1.0], [-2.0, 0.0]]), np.array([0, 1, 0, 1])

BAD_FITS = {
    "NaN": (np.where(X == 2.0, np.nan, X), Y, "NaN"),
    "infinity": (np.where(X == 2.0, np.inf, X), Y, "infinity"),
    "NaN in a tensor": (torch.tensor(np.where(X == 2.0, np.nan, X)), Y, "NaN"),
    "one class": (X, np.zeros(4), "class"),
    "no samples": (X[:0], Y[:0], "0 sample"),
    "no features": (X[:, :0], Y, "0 feature"),
    "empty tensor": (torch.zeros((0, 2)), Y[:0], "samples"),
    "X of one dimension": (X[:, 0], Y, "2D array"),
    "X of three dimensions": (X[:, :, None], Y, "dim"),
    "tensor of one dimension": (torch.tensor(X[:, 0]), Y, "shape"),
    "too few labels": (X, Y[:3], "labels"),
    "labels of two dimensions": (X, np.stack([Y, Y], axis=1), "1d"),
    "no labels": (X, None, "y"),
    "NaN labels": (X, np.array([0.0, 1.0, np.nan, 1.0]), "NaN"),
    "continuous labels": (X, np.array([0.1, 1.2, 0.3, 1.4]), "continuous"),
    "sparse": (sparse.csr_matrix(X), Y, "sparse"),
    "sparse tensor": (torch.tensor(X).to_sparse(), Y, "sparse"),
    "complex": (X + 1j, Y, "omplex"),
    "complex tensor": (torch.tensor(X + 1j), Y, "omplex"),
    "words": (np.array([["a", "b"]] * 4), Y, "convert|numeric"),
    "too long": (1e101 * X, Y, "scale the features"),
    "too long a tensor": (torch.tensor(1e101 * X), Y, "scale the features"),
}


@pytest.mark.parametrize("case", BAD_FITS)
def test_bad_fit(case, problem):
    features, labels, message = BAD_FITS[case]
    with pytest.raises(ValueError, match=message):
        LinearSVM().fit(features, labels)
    model = problem.fit()
    before = snapshot(model)
    with pytest.raises(ValueError, match=message):
        model.fit(features, labels)
    assert snapshot(model) == before
    assert np.array_equal(model.predict(problem.X), problem.fit().predict(problem.X))


@pytest.mark.parametrize("C", [0.0, -1.0, np.nan, np.inf, "1", None, [1.0]])
def test_bad_penalty(C, problem):
    model = problem.fit()
    before = snapshot(model)
    model.set_params(C=C)
    with pytest.raises(ValueError, match="C must be"):
        model.fit(problem.X, problem.y)
    assert snapshot(model) == before
    model.forget(model.support_[:1])  # goes on with the C it was fitted with
    twin = problem.fit()
    twin.forget(twin.support_[:1])
    assert snapshot(model) == snapshot(twin)


BAD_ROWS = {
    "negative": ([-1], "unknown"),
    "too large": ([0, 10_000], "unknown"),
    "twice": ([3, 3], "repeat"),
    "forgotten": ([5], "already forgotten"),
    "one of them forgotten": ([1, 5], "already forgotten"),
    "fractional": ([1.5], "integers, and not such as 1.5"),
    "floats": (np.array([1.0, 2.0]), "integers, and not such as 1.0"),
    "a mask": (np.ones(66, dtype=bool), r"pass np\.flatnonzero\(mask\)"),
    "words": (["a"], "integers, and not such as 'a'"),
    "nothing": ([], "row numbers"),
    "None": (None, "row numbers"),
    "two dimensions": ([[1], [2]], "row numbers"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_forget(case, problem):
    model = problem.fit()
    model.forget([5])
    before = snapshot(model)
    rows, message = BAD_ROWS[case]
    with pytest.raises(ValueError, match=message):
        model.forget(rows)
    assert snapshot(model) == before


def test_a_mask_erases_nothing(problem):
    """Its zeros and ones would be the first two rows."""
    model = problem.fit()
    before = model._features_of(model._rows).tobytes()
    with pytest.raises(ValueError, match="flatnonzero"):
        model._erase(problem.y == 5)
    assert model._features_of(model._rows).tobytes() == before


def test_leaving_one_class_is_refused(problem):
    model = problem.fit()
    model.forget(np.flatnonzero(problem.y == 0))
    before = snapshot(model)
    for rows in (np.flatnonzero(problem.y == 1), np.flatnonzero(problem.y != 0)):
        with pytest.raises(ValueError, match="two classes"):
            model.forget(rows)
        assert snapshot(model) == before
    model.forget(np.flatnonzero(problem.y == 1)[:-1])


BAD_INSERTS = {
    "NaN": ([[np.nan, 0.0, 0.0]], [0], "NaN"),
    "wrong width": ([[1.0, 0.0]], [0], "features"),
    "wrong width of a tensor": (torch.ones((1, 2)), [0], "features"),
    "empty": (np.zeros((0, 3)), [], "0 sample"),
    "too few labels": (np.zeros((2, 3)), [0], "labels"),
    "labels of another kind": (np.ones((2, 3)), ["a", "b"], "label|class"),
    "booleans among numbers": (np.ones((2, 3)), [True, False], "of the kind of 0, not of True"),
    "too long": (np.full((1, 3), 1e101), [0], "scale the features"),
    "sparse": (sparse.csr_matrix(np.ones((1, 3))), [0], "sparse"),
}


@pytest.mark.parametrize("case", BAD_INSERTS)
def test_bad_insert(case, problem):
    model = problem.fit()
    before = snapshot(model)
    features, labels, message = BAD_INSERTS[case]
    with pytest.raises(ValueError, match=message):
        model.insert(features, labels)
    assert snapshot(model) == before
    model.forget([0])
    assert_equal(model, problem.fit_on(np.arange(1, len(problem.y))), problem.X)


def test_before_fit():
    for call in (
        lambda m: m.predict(X), lambda m: m.decision_function(X), lambda m: m.forget([0]), lambda m: m.insert(X, Y),
        lambda m: m._with_more(X, Y), lambda m: m.coef_, lambda m: m.certificate_,
    ):  # fmt: skip
        with pytest.raises(NotFittedError):
            call(LinearSVM())


def test_labels_of_any_kind(problem):
    names = np.array(["cat", "dog", "emu"])[problem.y]
    model = LinearSVM().fit(problem.X, names)
    assert model.classes_.tolist() == ["cat", "dog", "emu"]
    assert model.coef_.tobytes() == problem.fit().coef_.tobytes()
    assert set(model.predict(problem.X)) <= {"cat", "dog", "emu"}
    model.forget(np.flatnonzero(names == "dog"))
    assert model.classes_.tolist() == ["cat", "emu"]
    model.insert(problem.X[names == "dog"], np.repeat("giraffe", sum(names == "dog")))
    assert model.classes_.tolist() == ["cat", "emu", "giraffe"]


def test_numbers_do_not_become_booleans(problem):
    """The classes of a model keep their type: with an integer among them, True would be published as 1."""
    model = LinearSVM().fit(problem.X, problem.y == 1)
    with pytest.raises(ValueError, match="kind of False"):
        model.insert(problem.X[:1], [1])
    model.insert(problem.X[:1], [True])
    assert model.classes_.dtype == bool


def test_no_samples_have_no_scores(problem):
    model = problem.fit()
    for nothing in ([], np.empty((0, 3)), torch.empty((0, 3))):
        for ask in (model.decision_function, model.predict):
            with pytest.raises(ValueError, match="0 samples"):
                ask(nothing)
    assert model._scores_of([]).shape == (0, 3)
    assert (model._scores_of([4, 7]) == model.decision_function(problem.X[[4, 7]])).all()
    assert LinearSVM().fit(X, Y)._scores_of(np.empty(0, dtype=int)).shape == (0,)


def test_a_clone_knows_nothing(problem):
    model = problem.fit()
    with pytest.raises(NotFittedError):
        clone(model).forget([0])


# Interruption


def interrupt(monkeypatch, owner, name, at):
    """Raise KeyboardInterrupt at a certain call of a function, and count the calls."""
    original, calls = getattr(owner, name), []

    def wrapped(*args, **kwargs):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, wrapped)
    return calls


PLACES = [(Path, "follow"), (deciding, "decide"), (Samples, "scores")]


@pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # of a fit that is not interrupted
@pytest.mark.parametrize(
    ("verb", "place", "at"), thinned(2, itertools.product(["fit", "forget", "insert"], PLACES, [1, 2, 3]))
)
def test_interruption_leaves_the_previous_state(verb, place, at, problem, monkeypatch):
    old = np.arange(50)
    model = problem.fit_on(old)
    before = snapshot(model)
    rows = model.support_[:6]
    with monkeypatch.context() as patch:
        calls = interrupt(patch, *place, at)
        try:
            if verb == "fit":
                model.fit(problem.X[:40, :2], problem.y[:40])
            elif verb == "forget":
                model.forget(rows)
            else:
                model.insert(problem.X[50:], problem.y[50:])
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
    assert interrupted == (len(calls) >= at)
    assert interrupted or at > 1
    if not interrupted:
        return
    assert snapshot(model) == before
    assert_equal(model, problem.fit_on(old), problem.X)
    model.forget(rows)
    assert_equal(model, problem.fit_on(np.setdiff1d(old, rows)), problem.X)
    model.insert(problem.X[50:], problem.y[50:])
    assert_equal(model, problem.fit_on(np.setdiff1d(np.arange(len(problem.y)), rows)), problem.X)


@pytest.mark.parametrize("verb", ["forget", "insert"])
def test_interrupted_erasure_is_made_up_for(verb, problem, monkeypatch):
    """The samples are out of the model at once; what is left of them goes with the next change."""
    model = problem.fit()
    rows = model.support_[:3]
    with monkeypatch.context() as patch:
        interrupt(patch, LinearSVM, "_erase", 1)
        with pytest.raises(KeyboardInterrupt):
            model.forget(rows)
    kept = np.setdiff1d(np.arange(len(problem.y)), rows)
    assert_equal(model, problem.fit_on(kept), problem.X)
    with pytest.raises(ValueError, match="already forgotten"):
        model.forget(rows)
    if verb == "forget":
        model.forget(kept[:1])
        expected = problem.fit_on(kept[1:])
    else:
        model.insert(problem.X[rows], problem.y[rows])
        expected = problem.fit()
    assert_equal(model, expected, problem.X)
    assert not np.any(np.asarray(model._fitted.solution.samples.X)[rows])


def test_classes_are_named_plainly():
    """They were np.str_('a')."""
    X = np.arange(6.0).reshape(3, 2)
    model = LinearSVM().fit(X, ["a", "b", "b"])
    for act in (
        lambda: LinearSVM().fit(X, ["a"] * 3),
        lambda: model.forget([1, 2]),
        lambda: model.insert(X, [1, 2, 3]),
    ):
        with pytest.raises(ValueError, match="'a'") as caught:
            act()
        assert "np." not in str(caught.value)


@pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")
def test_few_samples_of_many_classes_may_arrive():
    """Without being taken for a regression's targets."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 40
    X = rng.normal(size=(40, 5))[y] + 0.1 * rng.normal(size=(200, 5))
    model = LinearSVM(100.0).fit(X[:160], y[:160])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The number of unique classes")
        model.insert(X[160:], y[160:])
    assert len(model._rows) == 200
