"""What a workspace says of its records: how ids are written, what classes are called, whom a receipt names."""

from dataclasses import replace

import numpy as np
import pytest

from maxrr.data import DataError
from maxrr.unlearning.record_kind import RecordKind
from maxrr.unlearning.records import of_kind
from maxrr.workspace import Commit, Workspace, WorkspaceError
from tests.workspace.problems import NEW, cases, forgotten_but_here, given, history_in, holds


@pytest.fixture(params=["hash", "hash, words"])
def records(request):
    return cases()[request.param][0]


@pytest.fixture
def workspace(records, tmp_path):
    model = next(model for known, model in cases().values() if known is records)
    with Workspace.create(tmp_path / "ws", model, records) as made:
        yield made


def test_it_is_that_of_the_records_that_were_fitted(workspace, records):
    kind = workspace.model.kind_
    assert (kind.shape, kind.class_names) == (records.shape, records.class_names)
    assert kind.conform(records) is records


def test_a_record_is_found_whatever_array_its_id_is_in(workspace, records):
    ids = records.ids[:2]
    kinds = (object, ids.dtype) if ids.dtype.kind == "U" else (object, np.uint32, np.int64)
    for kind in kinds:
        assert holds(workspace, ids.astype(kind)).all()
    assert holds(workspace, ids.tolist()).all()
    assert holds(workspace, []).tolist() == []


def test_texts_stay_texts_and_integers_integers():
    texts = np.array(["7", "8"])
    assert of_kind(texts, text=True).tolist() == ["7", "8"]
    assert of_kind(texts, text=False).tolist() == [7, 8]
    assert of_kind(np.array([7, 8]), text=True).tolist() == ["7", "8"]
    for other in ("007", "7.0", "seven", "9" * 30):
        assert of_kind(np.array([other]), text=False).tolist() == [other]


def test_ids_of_few_records_are_still_texts():
    records, _ = cases()["hash"]
    words, numbers = (RecordKind(records.shape, np.dtype("f4"), text_ids=texts) for texts in (True, False))
    assert words.conform(records).ids.tolist() == list(map(str, records.ids.tolist()))
    assert numbers.conform(records) is records


def test_columns_by_their_names():
    records = replace(cases()["hash"][0], columns=tuple("abcde"))
    found = RecordKind(records.shape, np.dtype("f4"), columns=tuple("edcba")).conform(records)
    assert found.columns == tuple("edcba")
    np.testing.assert_array_equal(found.inputs, records.inputs[:, ::-1])


def test_classes_by_their_names():
    records, _ = cases()["hash"]
    kind = RecordKind(records.shape, np.dtype("f4"), class_names=("other", *records.class_names), present=(1, 2, 3))
    np.testing.assert_array_equal(kind.with_classes(records).labels, records.labels + 1)
    with pytest.raises(DataError, match="workspace's: kind 1"):
        replace(kind, present=(2, 3)).with_classes(records)


def test_whom_a_receipt_names(workspace, records):
    gone, exchanged, other = records.ids[:3].tolist()
    first = workspace.model.unlearn([gone], core_policy="keep-extractor")
    second = workspace.model.unlearn([gone], core_policy="keep-extractor")
    third = workspace.model.replace(exchanged, NEW, core_policy="keep-extractor")
    for receipt, expected in (
        (first, ([True, False, False], [False] * 3, [False] * 3)),
        (second, ([False] * 3, [False] * 3, [True, False, False])),
        (third, ([False] * 3, [False, True, False], [False] * 3)),
    ):
        assert (
            tuple(mask.tolist() for mask in workspace.model.on_receipt(receipt, [gone, exchanged, other])) == expected
        )
    assert forgotten_but_here(workspace) == 0
    assert workspace.model.returning(records).tolist() == [gone, exchanged]
    assert workspace.model.returning(records, copies=False).tolist() == [gone]


def test_a_replacement_is_planned_as_it_is_done(workspace):
    one = workspace.model._fitted.records.ids[0].item()
    plan = workspace.model.plan(one, inputs=NEW, core_policy="keep-extractor")
    assert workspace.model.replace(one, NEW, core_policy="keep-extractor").guarantee == plan.guarantee
    assert workspace.model.plan("nobody", inputs=NEW).refusal.startswith("no record has id 'nobody'")


def test_a_workspace_is_created_or_opened_and_not_constructed():
    with pytest.raises(TypeError, match=r"Workspace\.create .* Workspace\.open"):
        Workspace()


def test_what_was_committed_last(tmp_path):
    records, model = cases()["hash"]
    assert Commit.last(tmp_path) is None
    with Workspace.create(tmp_path / "ws", model, records) as workspace:
        assert Commit.last(tmp_path / "ws") == Commit(1, 0, records.shape, records.class_names)
        workspace.model.unlearn(records.ids[:2], core_policy="keep-extractor")
    assert Commit.last(tmp_path / "ws") == Commit(2, 1, records.shape, records.class_names)
    history_in(tmp_path / "ws").write_text("{}")
    with pytest.raises(WorkspaceError, match="damaged"):
        Commit.last(tmp_path / "ws")


def test_weights_are_kept_and_erased(tmp_path):
    records, model = cases()["hash"]
    weighted = replace(records, weights=np.arange(len(records)) + 0.5)
    gone = records.ids[:3]
    with Workspace.create(tmp_path / "ws", model, weighted) as workspace:
        workspace.model.unlearn(gone, core_policy="keep-extractor")
    with Workspace.open(tmp_path / "ws") as again:
        held = given(again, weighted).model._apart()._fitted.records
    assert held.retained().content_hash() == weighted.without(gone).content_hash()
    assert not held.weights[~held.alive].any()
    with Workspace.open(tmp_path / "ws") as again, pytest.raises(DataError, match="differ from those"):
        given(again, records).model._apart()


def test_forgotten_values_are_known_after_a_fit_with_columns_in_another_order(tmp_path):
    records = replace(cases()["hash"][0], columns=tuple("abcde"))
    turned = replace(records, inputs=records.inputs[:, ::-1], columns=tuple("edcba"))
    gone = records.ids[:1]
    with Workspace.create(tmp_path / "ws", cases()["hash"][1], records) as workspace:
        workspace.model.unlearn(gone, core_policy="keep-extractor")
        workspace.model.fit(turned.without(gone))
    with Workspace.open(tmp_path / "ws") as workspace:
        for each in (records, turned):
            copy = replace(each.select(gone), ids=gone + 999_000_000)
            assert workspace.model.returning(copy).tolist() == copy.ids.tolist()
            with pytest.raises(DataError, match="exactly the values"):
                workspace.model.add(copy)
