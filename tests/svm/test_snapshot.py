"""A model taken apart into arrays and put together again goes on as the original does, to the byte."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from maxrr import LinearSVM
from maxrr.svm.snapshot import restored, taken
from tests.cases import examples
from tests.svm.problems import assert_equal, decided, make, problems, snapshot

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # some of these have no weights


def again(model, X, y):
    """The model from its snapshot and the samples of all rows; what dead rows hold must not matter."""
    alive = np.isin(np.arange(len(y)), model._rows)
    features, labels = X.astype(np.float64), y.copy()
    features[~alive] = np.nan
    labels[~alive] = np.sort(labels)[-1]
    weights = np.full(len(y), np.nan)
    weights[model._rows] = model._fitted.solution.samples.penalties.weights[model._rows]
    return restored(
        model.C, features, labels, alive, taken(model), sample_weight=weights, class_weight=model.class_weight
    )


def chosen(data, rows, most=6):
    return data.draw(st.lists(st.sampled_from(list(rows)), min_size=1, max_size=most, unique=True))


def bytes_of(model):
    """Weights alone: margins are computed again, by other sums."""
    return model.coef_.tobytes(), model.intercept_.tobytes(), model.classes_.tolist()


@examples(60)
@given(problems(), st.data())
def test_there_and_back(problem, data):
    model = problem.fit()
    if data.draw(st.booleans()):
        rows = chosen(data, range(len(problem.y)))
        assume(len(np.unique(np.delete(problem.y, rows))) >= 2)
        model.forget(rows)
    back = again(model, problem.X, problem.y)
    assert snapshot(back) == snapshot(model)
    assert back._rows.tolist() == model._rows.tolist()
    assert back._features_of(back._rows).tobytes() == model._features_of(model._rows).tobytes()
    assert back.predict(problem.X).tolist() == model.predict(problem.X).tolist()
    assert back.certificate_ == model.certificate_


@examples(60)
@given(problems(), st.data())
def test_both_go_on_alike(problem, data):
    """Forget, come back, forget, insert what is forgotten: as if the model had never been away."""
    n = len(problem.y)
    model = problem.fit()
    first = chosen(data, range(n))
    assume(len(np.unique(np.delete(problem.y, first))) >= 2)
    model.forget(first)
    back = again(model, problem.X, problem.y)
    second = chosen(data, model._rows)
    left = np.setdiff1d(model._rows, second)
    assume(len(np.unique(problem.y[left])) >= 2)
    for each in (model, back):
        each.forget(second)
    assert_equal(back, model, problem.X)
    assert_equal(back, problem.fit_on(left), problem.X)
    for each in (model, back):
        each.insert(problem.X[first], problem.y[first])
    assert_equal(back, model, problem.X)
    assert_equal(back, problem.fit_on(np.setdiff1d(np.arange(n), second)), problem.X)
    assert back._rows.tolist() == model._rows.tolist() == [*left, *range(n, n + len(first))]
    if decided(model, back):
        assert back.support_.tolist() == model.support_.tolist()


@pytest.mark.parametrize("times", [1, 5])
def test_as_often_as_one_likes(times):
    """Each request on a model that was put away after the one before."""
    problem = make("well_behaved", 2, n=80, d=4, classes=3)
    model = problem.fit()
    at_once = problem.fit()
    gone = model.support_[: 2 * times]
    at_once.forget(gone)
    for part in np.split(gone, times):
        model = again(model, problem.X, problem.y)
        model.forget(part)
    assert decided(model)
    assert bytes_of(model) == bytes_of(at_once)
    assert model.certificate_[0].solved


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_class_that_was_forgotten(gone):
    """It has no number in the restored model, and can come back."""
    problem = make("well_behaved", 4, n=60, d=3, classes=3)
    rows = np.flatnonzero(problem.y == gone)
    model = problem.fit()
    model.forget(rows)
    back = again(model, problem.X, problem.y)
    assert snapshot(back) == snapshot(model)
    back.insert(problem.X[rows], problem.y[rows])
    assert bytes_of(back) == bytes_of(problem.fit())


@pytest.mark.parametrize("classes", [2, 3])
def test_names_of_classes(classes):
    problem = make("well_behaved", 6, n=40, d=3, classes=classes)
    y = np.array(["cat", "dog", "eel"])[problem.y]
    model = LinearSVM().fit(problem.X, y)
    model.forget(model.support_[:2])
    back = again(model, problem.X, y)
    assert snapshot(back) == snapshot(model)
    row = model.support_[:1]
    for each in (model, back):
        each.forget(row)
    assert bytes_of(back) == bytes_of(model)
    assert [label for label, _ in taken(back)] == model.classes_.tolist()[-len(back.coef_) :]


def test_certificates_and_labels_are_plain_numbers():
    """As a file in JSON needs them, and as it gives them back."""
    for label, head in taken(make("well_behaved", 0).fit()):
        facts = json.loads(json.dumps({"label": label, **asdict(head.certificate)}))
        assert type(head.certificate)(**{name: facts[name] for name in asdict(head.certificate)}) == head.certificate
        assert facts["label"] == label


def test_neither_model_shares_memory_with_the_other():
    problem = make("well_behaved", 0)
    model = problem.fit()
    alive = np.ones(len(problem.y), dtype=bool)
    features, labels = problem.X.copy(), problem.y.copy()
    back = restored(1.0, features, labels, alive, taken(model))
    back.forget(back.support_[:3])
    assert features.tobytes() == problem.X.tobytes()
    assert labels.tobytes() == problem.y.tobytes()
    assert alive.all()
    assert snapshot(model) == snapshot(problem.fit())


@pytest.mark.parametrize("wrong", ["fewer", "other order", "another class"])
def test_heads_of_other_classes_are_refused(wrong):
    problem = make("well_behaved", 0, classes=3)
    heads = taken(problem.fit())
    changed = {
        "fewer": heads[:2],
        "other order": heads[::-1],
        "another class": [*heads[:2], (7, heads[2][1])],
    }[wrong]
    with pytest.raises(ValueError, match="not those"):
        restored(1.0, problem.X, problem.y, np.ones(len(problem.y), dtype=bool), changed)
