"""Records that are added to a workspace: durable, and as in memory."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from maxrr.data import DataError
from maxrr.errors import NotHere, WorkspaceError
from maxrr.unlearning import Action, replay
from maxrr.workspace import Commit, Workspace, overview
from tests.unlearning.problems import core_of, fresh, joined, table
from tests.workspace.problems import (
    HASHED,
    NEWCOMERS,
    cases,
    contents,
    facts,
    fixed_key,
    given,
    holds,
    kinds,
    model_facts,
    named,
    reopened,
)

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # of a class with one record


@pytest.mark.parametrize("case", ["hash, words", "frequency", "frozen, words"])
def test_adding_is_that_of_the_model_in_memory(case, tmp_path):
    records, model = cases()[case]
    new = named(NEWCOMERS) if "words" in case else NEWCOMERS
    with fixed_key():
        inside = clone(model).fit(records)
        workspace = Workspace.create(tmp_path / "ws", model, records)
    with workspace:
        for verb in (lambda each: each.add(new), lambda each: each.unlearn(new.ids[:2])):
            receipts = verb(inside), verb(workspace.model)
            assert receipts[0].added == receipts[1].added
            assert model_facts(workspace.model, records) == model_facts(inside, records)
        before = facts(workspace, records)
        status = workspace.status()
        assert status.waiting_for_fit == len(inside._fitted.waiting)
        assert workspace.status().conditions == inside._fitted.conditions
    assert reopened(tmp_path / "ws", records) == before
    assert overview(tmp_path / "ws").status == status


@pytest.mark.parametrize("names", [("a", "b"), ("1", "0")])
def test_records_may_have_the_classes_in_another_order_than_they_were_added_in(names, tmp_path, here):
    """Who puts the days together in an order of their own brings the same records."""
    old = table(classes=2)
    first = replace(old, class_names=names)
    days = [
        replace(old.select(old.ids[9 * day :][:9]), ids=np.arange(9) + 10 * day, labels=[0] * 9, class_names=(name,))
        for day, name in enumerate(names)
    ]
    days = [replace(day, inputs=day.inputs + 3 * (1 + place)) for place, day in enumerate(days)]
    joins = [first.join(*days), first.join(*days[::-1]), days[1].join(first, days[0])]
    model = fresh(HASHED, table(), epochs=1)
    with Workspace.create(tmp_path / "ws", model, first) as workspace:
        for day in days:
            receipt = workspace.model.add(day)
        assert workspace.model.kind_.class_names == names
        for join in joins[1:]:
            assert replay(receipt, workspace.model, join).outcome == "identical"
        core = workspace.model.core_.ids[:1]
        given(workspace, joins[2]).model.unlearn(core, core_policy="retrain")
        given(workspace, joins[1]).model.refit()
        never = clone(workspace.model).fit(joins[0].without(core))
        assert (workspace.model.model_hash_, workspace.model.content_hash_) == (never.model_hash_, never.content_hash_)
        swapped = replace(joins[0], class_names=names[::-1])
        with pytest.raises(DataError, match="differ from those"):
            given(workspace, swapped).model.refit()


def test_rows_are_appended_and_the_rest_is_not_written_again(workspace, folder, records):
    """Unless what arrives needs other rows, such as longer ids."""
    (rows,) = folder.glob("rows-*")
    before = rows.read_bytes()
    workspace.model.add(named(NEWCOMERS) if records.ids.dtype.kind == "U" else NEWCOMERS)
    assert rows.read_bytes()[: len(before)] == before
    assert len(rows.read_bytes()) == len(before) * 85 // 80


def test_wider_ids_make_another_table(tmp_path):
    records, model = cases()["full, words"]
    with Workspace.create(tmp_path / "ws", model, records) as workspace:
        new = named(NEWCOMERS)
        long = np.array([f"{id_} with a longer name" for id_ in new.ids])
        workspace.model.add(
            new.inputs, [new.class_names[label] for label in new.labels], ids=long, subjects=new.subjects
        )
        workspace.model.unlearn(long[:1])
        assert holds(workspace, long).tolist() == [False, True, True, True, True]
        assert workspace.model.has_forgotten(long).tolist() == [True, False, False, False, False]
    assert Commit.last(tmp_path / "ws").requests == 2


def test_where_records_come_from_is_kept_for_each_addition(folder, records):
    with Workspace.open(folder) as workspace:
        first = workspace.sources
        workspace.model.add(NEWCOMERS.select(NEWCOMERS.ids[:2]), source={"name": "monday"})
        workspace.model.add(NEWCOMERS.select(NEWCOMERS.ids[2:]))
        assert workspace.sources == (*first, {"name": "monday"})
    with Workspace.open(folder) as workspace:
        assert workspace.sources == (*first, {"name": "monday"})
        assert workspace.status().sources[1:] == [{"name": "monday"}]
        everyone = joined(records, NEWCOMERS)
        given(workspace, everyone).model.refit()
        assert workspace.sources == (*first, {"name": "monday"})
        workspace.model.fit(everyone, source={"name": "all"})
        assert workspace.sources == ({"name": "all"},)


def test_a_refit_is_a_fit_of_what_is_here(workspace, records):
    everyone = joined(records, NEWCOMERS)
    core = kinds(workspace.model)[0]
    workspace.model.add(NEWCOMERS)
    gone = [core[0], NEWCOMERS.ids[0]]
    workspace.model.unlearn(gone, core_policy="keep-extractor")
    assert core_of(workspace.model).tolist() == core[1:].tolist()
    with pytest.raises(DataError, match="in this data"):
        given(workspace, records).model.refit()
    given(workspace, everyone).model.refit()
    status = workspace.status()
    assert (status.waiting_for_fit, status.core_left_in_extractor, status.requests) == (0, 0, 2)
    assert workspace.model.model_hash_ == clone(workspace.model).fit(everyone.without(gone)).model_hash_
    mine = everyone.without(gone)
    core = np.sort(mine.ids[HASHED.is_core(mine.ids, mine.subjects)])
    assert core_of(workspace.model).tolist() == core.tolist()
    with pytest.raises(DataError, match="not come back"):
        workspace.model.add(NEWCOMERS.select(NEWCOMERS.ids[:1]))


def test_in_memory_too(records):
    model = clone(cases()["hash"][1]).fit(records)
    model.add(NEWCOMERS)
    receipts = model.bundle().receipts
    model.unlearn(NEWCOMERS.ids[:1])
    model.refit()
    assert (len(model._fitted.waiting), len(model.bundle().receipts)) == (0, len(receipts) + 1)
    with pytest.raises(DataError, match="not come back"):
        model.add(NEWCOMERS.select(NEWCOMERS.ids[:1]))


def test_nothing_is_left_of_an_addition_that_failed(workspace, folder, monkeypatch):
    before, state = contents(folder), workspace.model.model_hash_

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("maxrr.workspace.store.write_atomically", full)
        with pytest.raises(OSError, match="No space"):
            workspace.model.add(NEWCOMERS)
    assert (contents(folder), workspace.model.model_hash_) == (before, state)
    assert workspace.model.add(NEWCOMERS).number == 1


def test_threads_add_and_predict_together(workspace, records):
    parts = [NEWCOMERS.select([id_]) for id_ in NEWCOMERS.ids]
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(workspace.model.add, part) for part in parts]
        asked = [pool.submit(workspace.model.decision_function, records) for _ in range(6)]
        numbers = sorted(each.result().number for each in done)
        assert all(len(each.result()) == len(records) for each in asked)
    assert numbers == [1, 2, 3, 4, 5]


def test_who_only_reads_can_plan_it_and_not_do_it(folder):
    with Workspace.open(folder, read_only=True) as reader:
        assert reader.model.plan(add=NEWCOMERS).added == 5
        with pytest.raises(WorkspaceError, match="for reading only"):
            reader.model.add(NEWCOMERS)


def test_somebody_of_whom_no_record_is_left_is_remembered(folder, records):
    person = int(records.subjects[0])
    with Workspace.open(folder) as workspace:
        receipt = workspace.model.unlearn(subjects=[person], core_policy="keep-extractor")
        ids = records.ids[records.subjects == records.subjects[10]]
        one, last = (workspace.model.unlearn(some, core_policy="keep-extractor") for some in (ids[:1], ids[1:]))
    assert (len(receipt.subject_tombstones), one.subject_tombstones, len(last.subject_tombstones)) == (1, None, 1)
    with Workspace.open(folder) as workspace:
        for who, number in ((person, 1), (int(records.subjects[10]), 3)):
            plan = workspace.model.plan(subjects=[who])
            assert (plan.action, plan.already_forgotten) == (Action.nothing, 1)
            assert f"receipt {number}" in plan.reason
        assert workspace.find(subject=person).receipts == {1: "forgotten"}
        assert last.number not in workspace.find(subject=person).receipts
        assert workspace.model.plan(subjects=[person, int(records.subjects[20])]).already_forgotten == 1
        with pytest.raises(NotHere):
            workspace.model.plan(subjects=[-5, int(records.subjects[20])])
        # Somebody who comes back with other records is here again.
        back = NEWCOMERS.select(NEWCOMERS.ids[:1])
        workspace.model.add(back.inputs, ["kind 0"], ids=back.ids, subjects=[person])
        assert workspace.find(subject=person).here
        assert workspace.model.plan(subjects=[person]).requested == 1
        workspace.model.fit(records.without(np.concatenate([ids, records.ids[records.subjects == person]])))
        assert "receipt 3" in workspace.model.plan(subjects=[int(records.subjects[10])]).reason
