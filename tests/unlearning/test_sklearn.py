"""As an estimator among scikit-learn's, on arrays."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from maxrr.core import FullCore, HashCore
from maxrr.errors import DataError
from maxrr.nets import MLP
from maxrr.unlearning import MaxRR
from tests.cases import some
from tests.unlearning.problems import fresh, table, table_model


def arrays(classes=10):
    X, y = load_digits(n_class=classes, return_X_y=True)
    return X[:240] / 16.0, y[:240]


def estimator(classes=10, core=None, **settings):
    network = MLP(64, classes, hidden=(24,))
    chosen = {"epochs": 6, "batch_size": 16, "lr": 1e-2, "device": "cpu", **settings}
    return MaxRR(network, core or HashCore(0.7, key="k"), **chosen)


def test_cross_validation():
    X, y = arrays()
    assert cross_val_score(estimator(), X, y, cv=3).min() > 0.7
    assert cross_val_score(estimator(), X, y, cv=2, scoring="neg_log_loss").min() > -1.5


def test_in_a_pipeline():
    X, y = arrays()
    pipeline = make_pipeline(StandardScaler(), estimator()).fit(X, y)
    assert pipeline.score(X, y) > 0.9
    assert pipeline.predict_proba(X).shape == (240, 10)
    pipeline[-1].unlearn([0, 5], core_policy="keep-extractor")
    assert pipeline.score(X, y) > 0.9
    assert cross_val_score(make_pipeline(StandardScaler(), estimator()), X, y, cv=2).min() > 0.7


def test_parameters_and_clones():
    model = estimator(C=2.0, seed=3)
    names = {"network", "core", "C", "seed", "epochs", "batch_size", "lr", "device", "threads", "train", "class_weight",
             "engine", "start", "verbose"}  # fmt: skip
    assert set(model.get_params(deep=False)) == names
    X, y = arrays()
    copied = clone(model.fit(X, y))
    with pytest.raises(NotFittedError):
        copied.predict(X)
    assert copied.fit(X, y).model_hash_ == model.model_hash_
    model.unlearn([0], core_policy="keep-extractor")
    clone(model).fit(X, y)  # knows of nothing forgotten
    with pytest.raises(ValueError, match="1 of the"):
        model.fit(X, y)


def test_unfitted_models_say_so():
    for act in ("predict", "predict_proba", "decision_function", "unlearn", "plan"):
        with pytest.raises(NotFittedError):
            getattr(estimator(), act)(np.zeros((1, 64)))


def test_words_as_labels_and_ids_are_row_numbers():
    X, y = arrays()
    words = np.array([f"digit {label}" for label in y])
    model, numbers = estimator().fit(X, words), estimator().fit(X, y)
    assert model.classes_.tolist() == sorted(set(words))
    assert model.score(X, words) == numbers.score(X, y) > 0.9
    assert np.array_equal(model.predict(X), np.array([f"digit {label}" for label in numbers.predict(X)]))
    assert model.heads_.coef_.tobytes() == numbers.heads_.coef_.tobytes()
    assert model.model_hash_ != numbers.model_hash_  # the names are part of the model
    assert model.unlearn([0, 239], core_policy="keep-extractor").records_after == 238
    model.replace(3, X[4], "digit 4", core_policy="keep-extractor")
    with pytest.raises(ValueError, match="id 240"):
        model.unlearn([240], core_policy="keep-extractor")


@pytest.mark.parametrize("labels", some(2, [[-1, 1], [False, True], ["no", "yes"], [0, 1]]))
def test_two_classes(labels):
    X, y = arrays(2)
    names = np.array(labels)[y]
    model = estimator(2, FullCore()).fit(X, names)
    assert model.decision_function(X).shape == (240,)
    assert model.predict_proba(X).shape == (240, 2)
    assert model.score(X, names) == 1.0
    assert np.array_equal(model.classes_, np.sort(labels))
    receipt = model.unlearn([0, 1, 2], core_policy="retrain")
    kept = np.arange(240) >= 3
    never = estimator(2, FullCore()).fit(X[kept], names[kept], ids=np.flatnonzero(kept))
    assert receipt.model_after == model._fitted.model_commitment
    assert model.model_hash_ == never.model_hash_
    assert len(receipt.heads) == 1


@pytest.mark.parametrize("classes", [2, 3])
def test_of_a_dataset_class_names_are_predicted(classes):
    data = table(classes=classes)
    names = np.array(data.class_names)
    on_dataset = fresh(HashCore(0.5, key="house", by="record"), data).fit(data)
    on_numbers = clone(on_dataset).fit(data.inputs, data.labels + 7, ids=data.ids)
    found = on_dataset.predict(data)
    assert on_dataset.classes_.tolist() == names.tolist()
    assert on_numbers.classes_.tolist() == list(range(7, 7 + classes))
    assert np.array_equal(found, on_dataset.predict(data.inputs))
    assert np.array_equal(found, names[on_numbers.predict(data.inputs) - 7])
    assert np.array_equal(on_numbers.predict(data), on_numbers.predict(data.inputs))
    assert on_dataset.score(data) == np.mean(found == names[data.labels])


@pytest.mark.parametrize(
    "wrong", [lambda y: None, lambda y: y[:, None], lambda y: y[:1]], ids=["none", "column", "one"]
)
def test_arrays_are_scored_with_one_label_per_record(wrong):
    data = table()
    model = table_model()
    with pytest.raises(ValueError, match="label per record"):
        model.score(data.inputs, wrong(data.labels))
    for labels in (data.labels, data.labels.astype(str)):  # places in the names are no classes
        with pytest.raises(DataError, match="'kind 0', 'kind 1'"):
            model.score(data.inputs, labels)


@pytest.mark.parametrize("kind", [str, object], ids=["strings", "objects"])
def test_arrays_are_scored_by_names_where_fit_was_given_a_dataset(kind):
    data, model = table(), table_model()
    names = np.array(data.class_names)[data.labels].astype(kind)
    assert model.score(data.inputs, names) == model.score(data) > 0.5
    with pytest.raises(ValueError, match="leave y out"):
        model.score(data, names)


@pytest.mark.parametrize("labels", [[3, 5], [True, False], ["a", "b"]])
def test_recall_is_by_the_classes_that_predict_returns(labels):
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.repeat(labels, 2)
    model = MaxRR.on_features().fit(X, y)
    assert model.recall(X, y) == dict.fromkeys(model.predict(X).tolist(), 1.0)


def test_recall_names_classes_that_are_not_known_as_they_were_given():
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([11, 11, 4, 4])
    model = MaxRR.on_features().fit(X, y)
    assert model.recall([*X, [0.0]], [*y, -3]) == {4: 1.0, 11: 1.0, -3: 0.0}


@pytest.mark.parametrize("weights", [[1.0, np.nan], [0.0, 0.0], [1.0], ["a", "b"], [1.0, -1.0]])
def test_records_are_weighed_by_positive_numbers(weights):
    data, model = table(), table_model()
    with pytest.raises(DataError):
        model.score(data.inputs[:2], np.array(data.class_names)[data.labels[:2]], sample_weight=weights)


def test_of_no_records_nothing_is_told():
    with pytest.raises(DataError):
        table_model().predict(table().inputs[:0])


def test_recall_is_the_score_of_each_class():
    data, model = table(), table_model()
    of_class = [data.select(data.ids[data.labels == label]) for label in range(3)]
    found = dict(zip(data.class_names, map(model.score, of_class), strict=True))
    assert model.recall(data) == found
    assert model.recall(data.inputs, np.array(data.class_names)[data.labels]) == found
    assert len(set(found.values())) > 1


def test_a_fitted_model_says_how_many_numbers_it_takes_and_their_names():
    data, model = table(), table_model()
    assert model.n_features_in_ == 5
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(clone(model), "n_features_in_")
    named = MaxRR.on_features().fit(replace(data, columns=tuple("abcde")))
    assert named.feature_names_in_.tolist() == list("abcde")
    assert named.feature_names_in_.dtype == object


def test_progress_is_shown_where_somebody_looks_on(monkeypatch, capsys):
    data = table()
    fresh(HashCore(0.5, key="house"), data, verbose=True).fit(data)
    assert "training: " in capsys.readouterr().err
    for verbose, terminal in ((None, False), (False, True)):
        monkeypatch.setattr("sys.stderr.isatty", lambda terminal=terminal: terminal)
        fresh(HashCore(0.5, key="house"), data, verbose=verbose).fit(data)
        assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    fresh(HashCore(0.5, key="house"), data).fit(data)
    assert "\r[          ] training: " in capsys.readouterr().err


@pytest.mark.parametrize("last", [nn.Softmax(dim=1), nn.LogSoftmax(dim=1), None])
def test_a_network_that_ends_in_a_softmax_is_warned_of(last, recwarn):
    data = table()
    layers = [nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3)]
    fresh(HashCore(0.5, key="house"), data, nn.Sequential(*layers, *([last] if last else []))).fit(data)
    assert ["softmax" in str(warning.message) for warning in recwarn] == [True] * (last is not None)


def test_a_dataset_is_scored_by_the_names_of_its_classes():
    """Another Dataset may list its classes in another order."""
    data, model = table(), table_model()
    other = replace(data, labels=2 - data.labels, class_names=data.class_names[::-1])
    assert model.score(other) == model.score(data)
    assert model.score(data) > 0.5


def test_arrays_and_a_dataset_of_them_are_the_same():
    data = table()
    names = np.array(data.class_names)[data.labels]
    on_dataset = table_model()
    on_arrays = clone(on_dataset).fit(data.inputs, names, ids=data.ids, subjects=data.subjects)
    assert on_arrays.model_hash_ == on_dataset.model_hash_
    assert on_arrays.content_hash_ == on_dataset.content_hash_
    assert on_arrays.score(data.inputs, names) == on_dataset.score(data)
    weights = np.zeros(80)
    weights[:5] = 1.0
    assert on_arrays.score(data.inputs, names, weights) == np.mean(on_arrays.predict(data.inputs)[:5] == names[:5])
    with pytest.raises(ValueError, match="y, ids, subjects"):
        on_arrays.fit(data, names)
    with pytest.raises(ValueError, match="labels"):
        on_arrays.fit(data.inputs)
