"""How requests name records: by ids and subjects in either kind, by an earlier receipt, one by one in a batch."""

from dataclasses import replace

import numpy as np
import pytest

from maxrr.core import HashCore
from maxrr.errors import DataError, NotHere
from maxrr.unlearning import contradictions, replay
from maxrr.workspace import Workspace
from tests.unlearning.problems import core_of, everything, fresh, table, table_model
from tests.workspace.problems import together

CORE = HashCore(0.5, key="house")


def test_what_was_kept_in_the_extractor_is_forgotten_by_the_receipt_alone(here):
    """Nobody has the ids any more: they are gone from the model, and the receipt names HMACs."""
    model, never = table_model(), table_model()
    ids = core_of(model)[:3]
    kept = model.unlearn(ids, core_policy="keep-extractor")
    assert model.plan(receipt=kept, core_policy="retrain").already_forgotten == 3
    done = model.unlearn(receipt=kept, core_policy="retrain")
    assert (done.guarantee, done.already_forgotten, done.core_left_in_extractor) == ("exact-retrain", 3, 0)
    assert done.earlier_tombstones == kept.tombstones
    assert not list(contradictions(done))
    assert replay(done, model, table().without(ids)).outcome == "identical"
    never.unlearn(ids, core_policy="retrain")
    assert everything(model) == everything(never)
    again = model.unlearn(receipt=kept, core_policy="retrain")
    assert (again.guarantee, again.already_forgotten) == ("exact-untouched", 3)
    with pytest.raises(NotHere):
        never.unlearn(receipt=kept)
    with pytest.raises(ValueError, match="receipt itself"):
        model.unlearn(receipt=1)


@pytest.mark.parametrize("by_number", [True, False])
def test_in_a_workspace_by_the_number_of_the_receipt_or_for_the_person_again(by_number, tmp_path):
    data = table()
    with Workspace.create(tmp_path / "ws", fresh(CORE, data), data) as workspace:
        person = data.subjects[data.rows(core_of(workspace.model)[:1])][0].item()
        kept = workspace.model.unlearn(subjects=[person], core_policy="keep-extractor")
        again = workspace.model.unlearn(subjects=[person])
        assert (again.guarantee, again.core_left_in_extractor) == ("approximate-refit", kept.core)
    with Workspace.open(tmp_path / "ws", records=table) as workspace:
        named = {"receipt": 1} if by_number else {"subjects": [person]}
        done = workspace.model.unlearn(**named, core_policy="retrain")
        assert (done.guarantee, done.core_left_in_extractor) == ("exact-retrain", 0)
        assert done.already_forgotten == (kept.requested if by_number else 1)
        never = fresh(CORE, data).fit(data.without(data.ids[data.subjects == person]))
        assert workspace.model.model_hash_ == never.model_hash_


@pytest.mark.parametrize("texts", [False, True])
def test_an_integer_and_its_text_are_one_id_and_one_person(texts, tmp_path):
    data = table()
    if texts:
        data = replace(data, ids=data.ids.astype(str), subjects=data.subjects.astype(str))
    with Workspace.create(tmp_path / "ws", fresh(CORE, data), data) as workspace:
        model, other = workspace.model, (int if texts else str)
        person, id_ = other(data.subjects[0]), other(data.ids[-1])
        assert workspace.find(subject=person).here
        assert workspace.find(id=id_).here
        count = int((data.subjects == data.subjects[0]).sum())
        assert model.unlearn(subjects=[person], core_policy="keep-extractor").requested == count
        assert model.unlearn([id_], core_policy="keep-extractor").requested == 1
        assert model.unlearn(other(data.ids[0]), core_policy="keep-extractor").already_forgotten == 1
        assert not workspace.find(subject=person).here


def test_tombstones_are_the_same_in_memory_and_in_a_workspace_that_was_opened_again(tmp_path):
    """Also of a record that becomes again what it was."""
    data, id_ = table(), table().ids[0]
    old, new = data.inputs[0], np.linspace(-1.0, 1.0, 5).astype(np.float32)
    with Workspace.create(tmp_path / "ws", fresh(CORE, data), data) as workspace:
        for values in (new, old, new):
            workspace.model.replace(id_, values, core_policy="keep-extractor")
        live = set(workspace.model._fitted.tombstones)
    with Workspace.open(tmp_path / "ws") as workspace:
        assert set(workspace.model._fitted.tombstones) == live
    assert len(live) == 2


def test_a_batch_says_which_of_its_requests_is_wrong(tmp_path):
    data = replace(table(), subjects=None)
    with Workspace.create(tmp_path / "ws", fresh(CORE, data), data) as workspace:
        with pytest.raises(DataError, match="request 2 of"):
            together(workspace, [data.ids[:1]], [["ann"]])
        assert not workspace.receipts()


def test_whether_something_was_forgotten_is_asked_by_ids_or_by_subjects():
    model = table_model()
    assert model.has_forgotten(table().ids[:2]).tolist() == [False, False]
    for named in ({}, {"ids": [1], "subjects": ["anna"]}):
        with pytest.raises(ValueError, match="by subjects"):
            model.has_forgotten(**named)
