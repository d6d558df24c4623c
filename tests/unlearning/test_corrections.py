"""What a model equals after records were replaced, and after a class has gone."""

from dataclasses import replace

import numpy as np
import pytest

from maxrr.core import FrequencyCore, FullCore, HashCore
from maxrr.errors import DataError
from maxrr.unlearning import contradictions, replay
from maxrr.unlearning.records import HeldRecords
from tests.unlearning.problems import core_of, fresh, kinds, parts_of, table, table_model
from tests.unlearning.search import holds_bytes

CORE = HashCore(0.5, key="house")


@pytest.mark.parametrize("core", [CORE, FullCore()])
def test_replacing_a_core_record_is_fitting_the_corrected_data(core):
    model = fresh(core, table()).fit(table())
    id_ = core_of(model)[0]
    new = np.linspace(-1.0, 1.0, 5).astype(np.float32)
    receipt = model.replace(id_, new, core_policy="retrain")
    assert (receipt.guarantee, receipt.unconditional) == ("exact-retrain", True)
    features = table().inputs.copy()
    features[table().rows([id_])] = new
    corrected = replace(table(), inputs=features)
    never = fresh(core, table()).fit(corrected)
    assert parts_of(model) == parts_of(never)
    assert model.content_hash_ == never.content_hash_
    assert core_of(model).tolist() == core_of(never).tolist()


def test_a_record_that_was_replaced_under_head_is_core_when_the_extractor_is_trained_again():
    """Or 'without conditions' would be false of the later request."""
    model = table_model()
    first, second = core_of(model)[:2]
    new = np.linspace(-1.0, 1.0, 5).astype(np.float32)
    model.replace(first, new, core_policy="keep-extractor")
    receipt = model.unlearn([second], core_policy="retrain")
    features = table().inputs.copy()
    features[table().rows([first])] = new
    never = fresh(CORE, table()).fit(replace(table(), inputs=features).without([second]))
    assert receipt.unconditional
    assert parts_of(model) == parts_of(never)


def test_after_training_again_the_hashes_of_records_are_those_of_records_read_anew():
    """Training again takes the hashes of the records that stay from the model before."""
    model = table_model()
    first, second, third = core_of(model)[:3]
    model.replace(first, np.linspace(-1.0, 1.0, 5).astype(np.float32), core_policy="keep-extractor")
    model.replace(second, np.linspace(1.0, 2.0, 5).astype(np.float32), core_policy="retrain")
    model.unlearn([third], core_policy="retrain")
    held = model._state.records
    anew = HeldRecords.of(held.retained())
    rows = held.rows(anew.ids)
    assert len(anew.ids) == len(table()) - 1
    assert np.array_equal(held.hashes[rows], anew.hashes)
    assert np.array_equal(held.contents[rows], anew.contents)


def test_with_a_ranked_core_a_replaced_record_is_not_core():
    model = fresh(FrequencyCore(40, runs=2), table()).fit(table())
    id_ = core_of(model)[0]
    receipt = model.replace(id_, np.zeros(5), core_policy="retrain")
    assert not receipt.unconditional
    assert id_ not in core_of(model)


@pytest.mark.parametrize("gone", [0, 1, 2])
@pytest.mark.parametrize("as_array", [False, True])
def test_forgetting_a_class_is_fitting_the_rest(gone, as_array):
    """In whichever way classes are named: by a dataset, or by the labels of arrays, which then count from zero."""
    data = table()
    labels = np.array(["ant", "bee", "cat"])[data.labels]
    leaving = data.labels == gone

    def fit(rows):
        model = fresh(CORE, data)
        return model.fit(data.inputs[rows], labels[rows], ids=data.ids[rows]) if as_array else model.fit(
            data.select(data.ids[rows])
        )  # fmt: skip

    model, never = fit(leaving >= 0), fit(~leaving)
    receipt = model.unlearn(data.ids[leaving], core_policy="retrain")
    assert receipt.unconditional
    assert model.model_hash_ == never.model_hash_
    assert model.content_hash_ == never.content_hash_
    assert model.classes_.tolist() == never.classes_.tolist()
    assert model.predict(data.inputs).tolist() == never.predict(data.inputs).tolist()
    assert model.predict_proba(data.inputs).tobytes() == never.predict_proba(data.inputs).tobytes()


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize("policy", ["keep-extractor", "retrain"])
def test_the_name_of_a_class_that_is_gone_is_gone(as_array, policy):
    """It may be that of a person."""
    data = table()
    names = ("kind 0", "Anna Meier-Grün", "kind 2")
    renamed = replace(data, class_names=names)
    model = fresh(CORE, data)
    model = model.fit(data.inputs, np.array(names)[data.labels], ids=data.ids) if as_array else model.fit(renamed)
    wanted = ["Anna Meier-Grün".encode(), np.array("Anna Meier-Grün").tobytes()]
    assert holds_bytes(model, wanted)
    receipt = model.unlearn(data.ids[data.labels == 1], core_policy=policy)
    assert holds_bytes(model, wanted) == []
    assert holds_bytes(receipt, wanted) == []
    earlier = model.unlearn(data.ids[data.labels == 0][:1], core_policy="keep-extractor")
    assert holds_bytes(earlier, wanted) == []


def test_a_correction_that_the_extractor_has_not_seen_can_be_asked_for_again(here):
    """First quickly, then exactly: the old version leaves the extractor, and it is a fit of the corrected data."""
    model = table_model()
    core = core_of(model)[0].item()
    new = np.full(5, 0.25, dtype=np.float32)
    first = model.replace(core, new, core_policy="keep-extractor")
    assert (first.guarantee, first.core_left_in_extractor) == ("approximate-refit", 1)
    with pytest.raises(DataError, match="just so already"):
        model.replace(core, new, core_policy="keep-extractor")
    receipt = model.replace(core, new, core_policy="retrain")
    assert (receipt.guarantee, receipt.core_left_in_extractor) == ("exact-retrain", 0)
    inputs = table().inputs.copy()
    inputs[table().rows([core])] = new
    corrected = replace(table(), inputs=inputs)
    assert model.model_hash_ == fresh(CORE, table()).fit(corrected).model_hash_
    assert list(contradictions(receipt)) == []
    assert replay(receipt, model.bundle(), corrected).outcome == "identical"
    assert len(list(contradictions(replace(receipt, records_after=receipt.records_after - 1)))) == 1
    with pytest.raises(DataError, match="just so already"):
        model.replace(core, new, core_policy="retrain")


def test_a_request_that_finds_nothing_to_do_supersedes_nothing(here):
    model = table_model()
    gone = kinds(model, table())[1][:1]
    receipt = model.unlearn(gone)
    model.unlearn(gone)
    assert replay(receipt, model.bundle(), table().without(gone)).outcome == "identical"


def test_a_mixed_request_says_what_is_left_in_the_extractor():
    model = table_model()
    core, _, free = kinds(model, table())
    model.unlearn(core[:1], core_policy="keep-extractor")
    plan = model.plan([core[0], free[0]], core_policy="keep-extractor")
    assert plan.guarantee == "approximate-refit"
    assert plan.reason.startswith("the extractor keeps what it learned from 1 record that is forgotten already")
