"""Records and classes may weigh: every request ends in the model that a fit of the rest, with its weights, gives."""

from dataclasses import replace

import numpy as np
import pytest

from maxrr import MaxRR
from maxrr.core import HashCore
from maxrr.data import Dataset
from maxrr.errors import DataError
from maxrr.svm import FlatHeadWarning
from maxrr.unlearning import Bundle, Receipt, contradictions, replay
from maxrr.workspace import Workspace
from tests.cli.shell import Shell
from tests.unlearning.problems import fresh, table
from tests.workspace.problems import given

CORE = HashCore(0.4, key="house")
WEIGHTS = {"kind 1": 7.5}


def weighted(**changes):
    plain = table()
    return replace(plain, weights=np.random.default_rng(3).uniform(0.2, 5.0, size=len(plain)), **changes)


def kinds(model):
    core = model.core_.ids
    influential = model.ids_of("influential")
    held = model._fitted.records
    return core, influential, np.setdiff1d(np.setdiff1d(held.ids[held.alive], core), influential)


def left_of(model, records):
    held = model._fitted.records
    return records.select(np.sort(held.ids[held.alive]))


@pytest.mark.parametrize("class_weight", [None, WEIGHTS])
def test_requests_end_in_the_bytes_of_a_fit_without_the_records(class_weight):
    records = weighted()
    model = fresh(CORE, records, class_weight=class_weight).fit(records)
    assert model.model_hash_ != fresh(CORE, records).fit(table()).model_hash_  # they do count
    core, influential, free = kinds(model)
    model.unlearn(free[:2])
    model.unlearn(influential[:3])
    model.unlearn(core[:2], core_policy="retrain")
    oracle = fresh(CORE, records, class_weight=class_weight).fit(left_of(model, records))
    assert model.model_hash_ == oracle.model_hash_
    assert np.array_equal(model.predict_proba(records), oracle.predict_proba(records))


def test_a_replaced_record_keeps_its_weight():
    records = weighted()
    model = fresh(CORE, records, class_weight=WEIGHTS).fit(records)
    _, influential, _ = kinds(model)
    new = np.full(5, 0.25, np.float32)
    model.replace(int(influential[0]), new)
    inputs = records.inputs.copy()
    inputs[records.rows([influential[0]])] = new
    assert (
        model.model_hash_ == fresh(CORE, records, class_weight=WEIGHTS).fit(replace(records, inputs=inputs)).model_hash_
    )


@pytest.mark.usefixtures("here")
def test_a_workspace_keeps_them_and_a_replay_uses_them(tmp_path):
    records = weighted()
    with Workspace.create(tmp_path / "ws", fresh(CORE, records, class_weight=WEIGHTS), records) as workspace:
        first = workspace.model.model_hash_
    with Workspace.open(tmp_path / "ws") as workspace:
        assert workspace.model.model_hash_ == first
        assert workspace.model.class_weight == WEIGHTS
        influential = kinds(workspace.model)[1]
        receipt = workspace.model.unlearn(influential[:3])
        left = records.without(influential[:3])
        assert workspace.model.model_hash_ == fresh(CORE, records, class_weight=WEIGHTS).fit(left).model_hash_
        workspace.model.bundle().save(tmp_path / "bundle")
    assert replay(receipt, Bundle.load(tmp_path / "bundle"), left).outcome == "identical"


@pytest.mark.usefixtures("here")
def test_receipts_say_who_counts_more():
    records = weighted()
    model = fresh(CORE, records, class_weight=WEIGHTS).fit(records)
    receipt = model.unlearn(kinds(model)[1][:1])
    assert Receipt.from_json(receipt.to_json()) == receipt
    ((named, weight),) = receipt.class_weights.items()
    assert (weight, receipt.weighted_records) == (7.5, True)
    assert named == receipt.heads[1].class_hmac
    assert "1 class" in " ".join(receipt.sentences)
    bundle = model.bundle()
    for false in ({"class_weights": {named: 2.0}}, {"class_weights": None}, {"weighted_records": None}):
        forged = replace(receipt, **false)
        replayed = replay(forged, replace(bundle, receipts=(forged.digest,)), records)
        assert replayed.outcome == "the receipt is false"
    assert len(contradictions(replace(receipt, class_weights={named: 0.0}))) == 1


def test_receipts_without_weights_do_not_speak_of_them():
    model = fresh(CORE, table()).fit(table())
    said = model.unlearn(kinds(model)[2][:1])
    assert "weight" not in said.to_json() + str(said)


def test_weights_of_an_array():
    records = weighted()
    model = fresh(CORE, records, class_weight={1: 7.5})
    model.fit(records.inputs, records.labels, records.ids, sample_weight=records.weights)
    same = replace(records, class_names=("0", "1", "2"), subjects=None)
    assert model.model_hash_ == fresh(CORE, same, class_weight={"1": 7.5}).fit(same).model_hash_


def test_a_forgotten_class_leaves_no_name_among_the_weights(tmp_path):
    records = weighted()
    model = fresh(CORE, records, class_weight=WEIGHTS).fit(records)
    gone = records.ids[records.labels == 1]
    receipt = model.unlearn(gone, core_policy="retrain")
    assert not model._fitted.blueprint.class_weight
    assert receipt.class_weights is None
    assert model.model_hash_ == fresh(CORE, records).fit(records.without(gone)).model_hash_


def test_a_rare_class_is_found_more_often():
    rng = np.random.default_rng(0)
    labels = (np.arange(2550) % 51 == 0).astype(int)
    inputs = rng.normal(size=(2550, 6)) + 0.9 * labels[:, None]

    def recall(model):
        return np.mean(model.fit(inputs, labels).predict(inputs[labels == 1]) == 1)

    with pytest.warns(FlatHeadWarning, match="class_weight"):
        assert recall(MaxRR.on_features()) == 0.0
    assert recall(MaxRR.on_features(class_weight={1: 50.0})) > 0.8


def test_what_is_no_weight_is_refused():
    records = weighted()
    with pytest.raises(ValueError, match="fixed numbers"):
        fresh(CORE, records, class_weight="balanced").fit(records)
    with pytest.raises(DataError, match="class 'kind 9'"):
        fresh(CORE, records, class_weight={"kind 9": 2.0}).fit(records)
    with pytest.raises(ValueError, match="y, ids, subjects"):
        fresh(CORE, records).fit(records, sample_weight=records.weights)


def test_weights_in_the_shell(tmp_path):
    rows = np.random.default_rng(1).normal(size=(80, 3))
    lines = [f"{n},{'ill' if n % 4 == 0 else 'well'},{1 + n % 3}," + ",".join(map(str, r)) for n, r in enumerate(rows)]
    (tmp_path / "t.csv").write_text("\n".join(["id,label,counts,a,b,c", *lines]))
    shell = Shell()
    shell("data", "prepare", tmp_path / "t.csv", "--weight", "counts")
    fit = "fit", tmp_path / "t.csv", "--epochs", "2", "--class-weight"
    shell(*fit, "ill=5", "--out", tmp_path / "ws")
    with Workspace.open(tmp_path / "ws") as workspace:
        assert workspace.model.class_weight == {"ill": 5.0}
        assert set(workspace.model._fitted.records.weights.tolist()) == {1.0, 2.0, 3.0}
    assert "NAME=NUMBER" in shell(*fit, "ill", "--out", tmp_path / "other", code=2).err


def test_weights_and_a_dataset_of_one_kind():
    """A dataset with weights has another content hash than one without."""
    assert weighted().content_hash() != Dataset(*(getattr(table(), name) for name in (
        "inputs", "labels", "class_names", "ids", "subjects"))).content_hash()  # fmt: skip


@pytest.mark.parametrize("weights", [{0: 9.0}, {2: 9.0}, {0: 9.0, 2: 3.0}])
def test_weights_stay_with_their_classes_when_another_is_forgotten_and_all_are_fitted_again(weights):
    records = weighted()
    model = fresh(CORE, records, class_weight=weights).fit(records.inputs, records.labels, records.ids)
    model.unlearn(records.ids[records.labels == 2], core_policy="retrain")
    kept = records.labels != 2
    left = {label: weight for label, weight in weights.items() if label != 2} or None
    oracle = fresh(CORE, records, class_weight=left)
    oracle.fit(records.inputs[kept], records.labels[kept], records.ids[kept])
    assert model.model_hash_ == oracle.model_hash_
    assert model.refit().model_hash_ == oracle.model_hash_


def forgotten_and_back(records):
    """The ids of a weighted class, and other records of it."""
    gone = records.ids[records.labels == 1]
    back = records.select(gone[:5])
    return gone, replace(back, ids=back.ids + 500_000, inputs=back.inputs + np.float32(0.5))


def test_the_weight_of_a_class_that_never_was_is_kept_by_a_refit():
    records = replace(weighted(), class_names=("kind 0", "kind 1", "kind 2", "kind 3"))
    model = MaxRR.on_features(class_weight={"kind 3": 4.0}).fit(records)
    assert model.refit()._fitted.blueprint.class_weight == {"kind 3": 4.0}


def test_a_refit_passes_over_the_weight_of_a_forgotten_class():
    records = weighted()
    model = MaxRR.on_features(class_weight=WEIGHTS).fit(records)
    gone = records.ids[records.labels == 1]
    model.unlearn(gone)
    assert model.refit().model_hash_ == MaxRR.on_features().fit(records.without(gone)).model_hash_
    with pytest.raises(DataError, match="'kind 1'"):  # a fit is told the weights of its classes
        model.fit(replace(records.select(records.ids[records.labels != 1]), class_names=("kind 0", "1", "kind 2")))


@pytest.mark.parametrize("verb", ["refit", "fit", "fit with the class"])
def test_a_workspace_is_fitted_again_after_a_weighted_class_is_forgotten(verb, tmp_path):
    records = weighted()
    gone, back = forgotten_and_back(records)
    left = records.without(gone)
    with Workspace.create(tmp_path / "ws", MaxRR.on_features(class_weight=WEIGHTS), records) as workspace:
        workspace.model.unlearn(gone)
        assert not workspace._store.words.class_weight
    with Workspace.open(tmp_path / "ws") as workspace:
        if verb == "fit with the class":
            workspace.model.set_params(class_weight=WEIGHTS).fit(joined(left, back))
        elif verb == "fit":
            workspace.model.fit(left)
        else:
            given(workspace, left).model.refit()
        here, weights = (joined(left, back), WEIGHTS) if "class" in verb else (left, {})
        assert workspace._store.words.class_weight == weights
        oracle = MaxRR.on_features(class_weight=weights).fit(here)
        assert workspace.model.model_hash_ == oracle.model_hash_


def joined(one, other):
    parts = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in (
        "inputs", "labels", "ids", "subjects", "weights")}  # fmt: skip
    return replace(one, **parts)


def test_a_weight_out_of_range_is_told_by_the_id_of_its_record():
    records = weighted()
    heavy = replace(records, weights=np.where(records.ids == records.ids[7], 1e60, 1.0))
    named = rf"record {records.ids[7]} counts C · 1e\+60 = 7e\+59 in the heads"
    with pytest.raises(DataError, match=named):
        fresh(CORE, records).fit(heavy)
    model = fresh(CORE, records).fit(replace(records, weights=np.ones(80)).without(records.ids[7]))
    with pytest.raises(DataError, match=named):
        model.add(heavy.select(records.ids[7]))
