"""Embeddings without a network: every request is exact, files are never loaded whole, and no second copy is kept."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from maxrr import MaxRR
from maxrr.core import FullCore
from maxrr.data import Dataset
from maxrr.data.arrays import is_scratch, take
from maxrr.errors import DataError
from maxrr.nets.networks import NoNetwork
from maxrr.unlearning import Bundle, replay
from maxrr.workspace import Workspace

IDS = np.array([f"text {number}" for number in range(300)])


def records(dtype=np.float32, inputs=None):
    rng = np.random.default_rng(5)
    labels = np.arange(300) % 3
    made = (rng.normal(size=(300, 9)) + 1.5 * rng.normal(size=(3, 9))[labels]).astype(dtype)
    return Dataset(made if inputs is None else inputs, labels, ("ant", "bee", "cow"), IDS, np.arange(300) // 4)


@pytest.fixture
def large(monkeypatch):
    """Everything is treated as if it were large."""
    for place in (
        "maxrr.data.arrays.LARGE", "maxrr.svm.validation.LARGE", "maxrr.workspace.rows.LARGE",
        "maxrr.workspace.codec.LARGE",
    ):  # fmt: skip
        monkeypatch.setattr(place, 0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_requests_end_in_the_bytes_of_a_fit_without_the_records(dtype):
    training = records(dtype)
    model = MaxRR.on_features().fit(training)
    influential = model.ids_of("influential")
    assert len(model.core_.ids) == 0
    assert model.unlearn(np.setdiff1d(IDS, influential)[:4]).guarantee == "exact-untouched"
    receipt = model.unlearn(influential[:9])
    assert (receipt.guarantee, receipt.bytes_claim) == ("exact-refit", "identical")
    assert "extractor" not in receipt.reason  # there is none
    left = training.select(np.sort(model._fitted.records.ids[model._fitted.records.alive]))
    assert len(left) == 287
    assert MaxRR.on_features().fit(left).model_hash_ == model.model_hash_


@pytest.mark.usefixtures("here")
def test_a_replay_needs_the_data_and_no_features_in_the_bundle(tmp_path):
    training = records()
    model = MaxRR.on_features().fit(training)
    receipt = model.unlearn(IDS[:5])
    model.bundle().save(tmp_path / "bundle")
    bundle = Bundle.load(tmp_path / "bundle")
    assert len(bundle.features) == 0
    found = replay(receipt, bundle, training.without(IDS[:5]))
    assert (found.outcome, found.made_again) == ("identical", "heads")
    assert "as features" in found.not_covered


@pytest.mark.usefixtures("here")
def test_the_machine_does_not_matter(monkeypatch):
    """There is nothing that PyTorch computes, so that a replay compares bytes wherever it runs."""
    training = records()
    model = MaxRR.on_features().fit(training)
    receipt = model.unlearn(IDS[:5])
    monkeypatch.setattr("maxrr.nets.recipe.platform.machine", lambda: "another")
    assert replay(receipt, model.bundle(), training.without(IDS[:5])).outcome == "identical"


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_memory_map_gives_the_same_model(tmp_path, dtype):
    training = records(dtype)
    np.save(tmp_path / "x.npy", training.inputs)
    mapped = records(inputs=np.load(tmp_path / "x.npy", mmap_mode="r"))
    model = MaxRR.on_features().fit(mapped)
    assert model.model_hash_ == MaxRR.on_features().fit(training).model_hash_
    held, kept = model._fitted.records.inputs, model.heads_._fitted.solution.samples.X
    assert np.shares_memory(held, kept)  # records and features are one array, in one file without a name
    assert kept.dtype == dtype
    model.unlearn(IDS[:5])
    rows = np.flatnonzero(~model._fitted.records.alive)
    assert len(rows) == 5
    assert not kept[rows].any()
    assert np.array_equal(np.load(tmp_path / "x.npy"), training.inputs)  # the caller's file is the caller's
    assert model.model_hash_ == MaxRR.on_features().fit(training.without(IDS[:5])).model_hash_


@pytest.mark.parametrize("as_large", [False, True])
def test_a_workspace_of_embeddings(tmp_path, request, as_large):
    if as_large:
        request.getfixturevalue("large")
    training = records(np.float16)
    with Workspace.create(tmp_path / "ws", MaxRR.on_features(), training) as workspace:
        first = workspace.model.model_hash_
    with Workspace.open(tmp_path / "ws") as workspace:
        assert workspace.model.model_hash_ == first
        workspace.model.unlearn(IDS[:20])
    with Workspace.open(tmp_path / "ws") as workspace:
        oracle = MaxRR.on_features().fit(training.without(IDS[:20]))
        assert workspace.model.model_hash_ == oracle.model_hash_
        workspace.model.unlearn(subjects=[10])
        left = training.without(np.append(IDS[:20], training.of_subjects([10])))
        assert workspace.model.model_hash_ == MaxRR.on_features().fit(left).model_hash_
        assert workspace.model.predict_proba(training.inputs[:3]).shape == (3, 3)
    stored = b"".join(path.read_bytes() for path in (tmp_path / "ws").iterdir() if path.is_file())
    gone, held = (training.inputs[row].astype("<f2" if as_large else "<f4").tobytes() for row in (0, 200))
    assert gone not in stored
    assert held in stored


def test_what_is_no_embedding_is_refused():
    images = Dataset(np.zeros((4, 1, 2, 2), np.uint8), [0, 1, 0, 1], ("a", "b"), np.arange(4))
    with pytest.raises(DataError, match=r"shape \(records, numbers\)"):
        MaxRR.on_features().fit(images)
    with pytest.raises(ValueError, match="no weights"):
        MaxRR(NoNetwork(), FullCore()).fit(records())


@pytest.mark.usefixtures("large")
def test_rows_of_a_large_array_stay_in_a_file(tmp_path):
    np.save(tmp_path / "x.npy", records().inputs)
    first = take(np.load(tmp_path / "x.npy", mmap_mode="r"), np.arange(200))
    assert is_scratch(first)
    assert is_scratch(take(first, np.arange(100)))
    assert not is_scratch(take(records().inputs, np.arange(100)))


def test_sparse_records_are_refused_with_what_to_do():
    training = records()
    model, sparse = MaxRR.on_features().fit(training), csr_matrix(training.inputs)
    before = model.model_hash_
    for ask in (
        lambda: MaxRR.on_features().fit(sparse, training.labels),
        lambda: Dataset(sparse, training.labels, training.class_names, IDS),
        lambda: model.predict(sparse),
        lambda: model.add(sparse, training.labels, ids=np.arange(300)),
        lambda: model.replace(IDS[0], sparse[0]),
    ):
        with pytest.raises(DataError, match=r"dense array, X\.toarray\(\)"):
            ask()
    assert model.model_hash_ == before


def test_nothing_is_embedded():
    model, new = MaxRR.on_features().fit(records()), replace(records().select(records().ids[:2]), ids=["new", "newer"])
    assert model.plan(add=replace(new, inputs=new.inputs + 1)).embeds == 0


@pytest.mark.parametrize("flags", [True, False])
def test_booleans_are_no_numbers(flags):
    training = records()
    labels = training.labels % 2
    given, other = (labels == 1, [1, 0]) if flags else (labels, [True, False])
    model = MaxRR.on_features().fit(training.inputs, given)
    with pytest.raises(DataError, match=r"of class '(0|False)'"):
        model.add(training.inputs[:2] + 1, other, ids=[1000, 1001])
    assert model.add(training.inputs[:2] + 1, given[:2], ids=[1000, 1001]).added == 2
