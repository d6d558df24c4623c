"""Several requests in a block: one training, one move of the heads, one commit, and a receipt for each."""

import os
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from maxrr.data import DataError
from maxrr.errors import CoreRefused, NotHere, UnknownId, WorkspaceError
from maxrr.evidence import Dossier
from maxrr.unlearning import Receipt, contradictions, replay
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.receipts import SHARED, follows
from maxrr.workspace import Workspace, check_receipt_log
from tests.workspace.outside import KEY
from tests.workspace.problems import (
    belongs,
    cases,
    contents,
    copied,
    facts,
    found,
    given,
    holds,
    kinds,
    needles,
    reopened,
    together,
)

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")


def are_whole(receipts):
    """Whether receipts, from the first, are those of whole groups."""
    return all(follows(receipt, before) for receipt, before in zip(receipts, [None, *receipts], strict=False))


def asked(workspace):
    """Requests of all kinds."""
    core, influential, free = kinds(workspace.model)
    return [free[:1], influential[:2], [5], core[:1], [free[0], free[3]], free[4:6]]


@pytest.mark.parametrize("key", [None, KEY])
def test_each_has_its_receipt_or_is_refused_by_itself(template, tmp_path, records, key):
    folder = copied(template("hash"), tmp_path / "ws")
    with Workspace.open(folder, signing_key=key) as workspace:
        answers = together(workspace, asked(workspace))
        assert [type(each) for each in answers] == [Receipt, Receipt, UnknownId, CoreRefused, Receipt, Receipt]
        receipts = [each for each in answers if isinstance(each, Receipt)]
        assert [each.number for each in receipts] == [1, 2, 3, 4]
        assert [each.group for each in receipts] == [[1, 4], [2, 4], [3, 4], [4, 4]]
        assert [len(each.tombstones) for each in receipts] == [1, 2, 1, 2]
        assert (receipts[2].already_forgotten, receipts[2].requested) == (1, 2)  # by another one of the group
        assert [each.previous for each in receipts] == ["", *(each.digest for each in receipts[:-1])]
        for name in SHARED:
            assert len({getattr(each, name) for each in receipts}) == 1
        assert receipts[0].records_before - receipts[0].records_after == 6
        assert are_whole(receipts)
        assert [said for each in receipts for said in contradictions(each)] == []
        assert list(workspace.receipts()) == receipts
        before = facts(workspace, records)
        assert workspace.status().requests == 4
    if key is not None:
        assert check_receipt_log(folder, [key.public]).checkpoint.size == 4
    assert reopened(folder, records) == before
    assert set(contents(folder)) == belongs(folder)


@pytest.mark.parametrize("policy", ["retrain", "keep-extractor"])
@pytest.mark.parametrize("case", ["hash", "hash in shards", "frequency", "full, words"])
def test_it_is_the_model_of_one_request_for_all(template, tmp_path, case, policy, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")  # two copies go on, which nobody must notice
    records, _ = cases()[case]
    one, other = (copied(template(case), tmp_path / name) for name in ("one", "other"))
    read = {"records": lambda: records}
    with Workspace.open(one, **read) as batched, Workspace.open(other, **read) as alone:
        core, influential, free = kinds(batched.model)
        requests = [some for some in (core[:2], influential[:2], free[:1], [core[3]]) if len(some)]
        receipts = together(batched, requests, core_policy=policy)
        receipt = alone.model.unlearn(np.concatenate(requests), core_policy=policy)
        assert batched.model.model_hash_ == alone.model.model_hash_
        assert batched.model.content_hash_ == alone.model.content_hash_
        for name in ("core_left_in_extractor", "heads", "conditions"):
            assert all(getattr(each, name) == getattr(receipt, name) for each in (receipts[0], receipts[-1]))
        for name in ("requested", "core", "influential", "free"):
            assert sum(getattr(each, name) for each in receipts) == getattr(receipt, name)
        assert sorted(stone for each in receipts for stone in each.tombstones) == receipt.tombstones
        exact = {each.guarantee for each in receipts if not each.core}
        assert exact <= ({"exact-retrain"} if policy == "retrain" else {"exact-refit", "exact-untouched"})


@pytest.mark.usefixtures("here")
def test_five_people_with_core_records_train_once(folder, records, monkeypatch):
    """And the bytes are those of a fit without all of them."""
    trained, train = [], Blueprint.train_some
    monkeypatch.setattr(Blueprint, "train_some", lambda self, *rest: trained.append(1) or train(self, *rest))
    with Workspace.open(folder, records=lambda: records) as workspace:
        core = kinds(workspace.model)[0]
        people = np.unique(records.subjects[np.isin(records.ids, core)])[:5].tolist()
        with workspace.batch(core_policy="retrain") as batch:
            tickets = [batch.unlearn(subjects=[person]) for person in people]
        receipts = [ticket.receipt for ticket in tickets]
        assert (len(trained), len(receipts)) == (1, 5)
        assert {each.guarantee for each in receipts} == {"exact-retrain"}
        assert [workspace.find(subject=person).receipts for person in people] == [
            {number: "forgotten"} for number in range(1, 6)
        ]
        retained = records.without(records.ids[np.isin(records.subjects, people)])
        assert clone(cases()["hash"][1]).fit(retained).model_hash_ == workspace.model.model_hash_
        for receipt in receipts:
            assert replay(receipt, workspace.model, records).outcome == "identical"
        given(workspace, records).model.unlearn(kinds(workspace.model)[1][:1])
        assert replay(receipts[0], workspace.model, records).outcome == "superseded"


def test_a_person_gets_proofs_of_their_own_records(folder, records):
    with Workspace.open(folder, signing_key=KEY) as workspace:
        people = np.unique(records.subjects)[:3].tolist()
        with workspace.batch(core_policy="keep-extractor") as batch:
            tickets = [batch.unlearn(subjects=[person]) for person in people]
        for person, ticket in zip(people, tickets, strict=True):
            dossier = Dossier.from_object(workspace.dossier(ticket.receipt.number, subject=person))
            assert len(dossier.records) == (records.subjects == person).sum()
            assert all(check.held for check in dossier.check([KEY.public]))
        with pytest.raises(NotHere):
            workspace.dossier(tickets[0].receipt.number, subject=people[1])


def test_a_ticket_has_nothing_before_the_block_ends(workspace, records):
    free = kinds(workspace.model)[2]
    with workspace.batch() as batch:
        ticket, unknown = batch.unlearn(free[:1]), batch.unlearn([5])
        with pytest.raises(ValueError, match="has not ended"):
            _ = ticket.receipt
        assert holds(workspace, free[:1]).all()
    assert (ticket.receipt.number, ticket.receipt.group) == (1, None)  # the only one that was answered
    with pytest.raises(NotHere):
        _ = unknown.receipt
    with pytest.raises(ValueError, match="of the two"), workspace.batch() as batch:
        batch.unlearn()
    with pytest.raises(ValueError, match="core_policy is"), workspace.batch(core_policy="perhaps"):
        pass
    with workspace.batch():
        pass
    assert workspace.status().requests == 1


def test_somebody_who_is_asked_for_twice_is_forgotten_once(workspace, records):
    person = int(records.subjects[0])
    first, second = together(workspace, subjects=[[person], [person]], core_policy="keep-extractor")
    assert (first.number, first.already_forgotten) == (1, 0)
    assert (second.number, second.already_forgotten, second.tombstones) == (2, 1, [])
    assert workspace.find(subject=person).receipts == {1: "forgotten", 2: "forgotten before"}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("case", ["hash", "hash in shards"])
def test_joint_receipts_count_the_records_of_their_own_person_alone(template, tmp_path, case):
    """Also that of somebody under two tickets, of whom the extractor that is trained again keeps nothing."""
    records, _ = cases()[case]
    with Workspace.open(copied(template(case), tmp_path / "ws"), records=lambda: records) as workspace:
        core, influential, free = (each.tolist() for each in kinds(workspace.model))
        people = np.unique(records.subjects[np.isin(records.ids, core)])[:3].tolist()
        mine = [records.ids[records.subjects == person].tolist() for person in people]
        receipts = together(workspace, subjects=[[each] for each in [*people, people[0]]], core_policy="retrain")
    naive = [tuple(len({*ids} & {*kind}) for kind in (core, influential, free)) for ids in mine] + [(0, 0, 0)]
    assert [(each.core, each.influential, each.free) for each in receipts] == naive
    assert [(each.requested, each.already_forgotten) for each in receipts] == [(len(ids), 0) for ids in mine] + [(1, 1)]
    numbers = {int(number) for number in re.findall(r"\d+(?= records? )", receipts[-1].reason)}
    assert numbers <= {naive[0][0]}  # and not how many of all people are core
    assert [said for each in receipts for said in contradictions(each)] == []


def test_nothing_is_done_where_something_is_raised(workspace, records, monkeypatch):
    before, files = facts(workspace, records), contents(workspace.folder)
    free = kinds(workspace.model)[2]
    real = Receipt.to_json

    def failing(receipt):
        if receipt.number == 3:
            raise OSError("no more")
        return real(receipt)

    with monkeypatch.context() as patch:
        patch.setattr(Receipt, "to_json", failing)
        with pytest.raises(OSError, match="no more"):
            together(workspace, free[:4])
    assert (facts(workspace, records), contents(workspace.folder)) == (before, files)
    with pytest.raises(DataError):
        together(workspace, [free[:1], [0.5]])
    with pytest.raises(ValueError, match="of the two"), workspace.batch() as batch:
        assert batch.unlearn(free[:1]) != batch.unlearn()
    assert (facts(workspace, records), contents(workspace.folder)) == (before, files)
    assert [each.number for each in together(workspace, free[:4])] == [1, 2, 3, 4]


def test_who_may_not_change_anything_is_refused_at_once(folder):
    with (
        Workspace.open(folder, read_only=True) as reader,
        pytest.raises(WorkspaceError, match="for reading only"),
        reader.batch(),
    ):
        pytest.fail("it was entered")


@pytest.mark.parametrize("count", [1, 3, 20])
def test_free_requests_cost_the_flushes_of_one(workspace, monkeypatch, count):
    free = kinds(workspace.model)[2]
    workspace.model.unlearn(free[-1:])
    fsyncs, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (fsyncs.append(descriptor), fsync(descriptor)))
    assert len(together(workspace, free[:count])) == count
    assert len(fsyncs) == 2


def test_nothing_of_any_of_them_is_left(workspace, records):
    _, influential, free = kinds(workspace.model)
    ids = [*free[:3].tolist(), influential[0].item()]
    wanted = {
        f"{id_}: {what}": needle for id_ in ids for what, needle in needles(workspace.model, records, id_).items()
    }
    assert found(wanted, workspace.folder)
    together(workspace, ids)
    assert found(wanted, workspace.folder) == set()


WRONG = {
    "no place": {"group": [0, 2]}, "beyond its end": {"group": [3, 2]}, "alone": {"group": [1, 1]},
    "three numbers": {"group": [1, 2, 3]}, "fewer than its own": {"records_after": 79},
    "nothing was forgotten": {"records_after": 80},
}  # fmt: skip


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_what_a_receipt_of_a_group_cannot_say(workspace, change):
    influential = kinds(workspace.model)[1]
    first, second = together(workspace, [influential[:2], influential[2:3]])
    assert [*contradictions(first), *contradictions(second)] == []
    assert list(contradictions(replace(first, **change)))


def test_groups_are_whole(workspace):
    free = kinds(workspace.model)[2]
    receipts = [*together(workspace, free[:3]), workspace.model.unlearn(free[3:4]), *together(workspace, free[4:6])]
    assert are_whole(receipts)
    for missing in (0, 1, 2, 4):
        assert not are_whole(receipts[:missing] + receipts[missing + 1 :])
    for name in SHARED:
        other = replace(receipts[1], **{name: getattr(receipts[4], name)})
        if getattr(receipts[4], name) != getattr(receipts[1], name):
            assert not are_whole([receipts[0], other, *receipts[2:]])


def test_a_request_is_what_it_was_when_it_was_asked(template, tmp_path):
    """The caller's array may be used again, also before the block ends; afterwards nothing is taken."""
    with Workspace.open(copied(template("hash"), tmp_path / "ws")) as workspace:
        free = workspace.model.ids_of("free")[:3]
        asked = free[:1].copy()
        with workspace.batch() as batch:
            tickets = []
            for id_ in free:
                asked[0] = id_
                tickets.append(batch.unlearn(asked))
        assert [ticket.receipt.requested for ticket in tickets] == [1, 1, 1]
        assert workspace.model.has_forgotten(free).all()
        with pytest.raises(ValueError, match="has ended"):
            batch.unlearn(free)
