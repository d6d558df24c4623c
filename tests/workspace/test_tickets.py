"""Tickets: each request of a batch is answered once, whenever and however often it is asked for."""

import json
from datetime import date

import numpy as np
import pytest

from maxrr.errors import NotHere, Refused
from maxrr.evidence import Envelope
from maxrr.evidence.envelopes import NOTHING_TYPE, Statement
from maxrr.unlearning import contradictions
from maxrr.workspace import Workspace, check_receipt_log
from tests.workspace.outside import KEY
from tests.workspace.problems import NEWCOMERS, contents, copied, facts, kinds

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")
DAYS = {"received": "2026-11-01", "due": date(2026, 12, 1)}


def asked(workspace, requests, **options):
    """The tickets of a batch, for (ticket, what it asks for) each."""
    with workspace.batch(**options) as batch:
        tickets = [batch.unlearn(**what, ticket=name, **DAYS) for name, what in requests]
        expected = batch.plan()[1]
    assert [ticket.outcome for ticket in tickets] == expected
    return tickets


def outcomes(tickets):
    return [ticket.outcome for ticket in tickets]


def requests_in(workspace, records):
    """Requests of all kinds."""
    core, influential, free = kinds(workspace.model)
    person = records.subjects[records.ids == free[-1]].item()
    return [
        ("T-1", {"ids": free[:1]}), ("T-2", {"ids": influential[:1]}), ("T-3", {"ids": core[:1]}),
        ("T-4", {"subjects": [person]}), ("T-5", {"ids": [5]}), ("T-6", {"subjects": [-5]}), ("T-1", {"ids": free[:1]}),
        ("T-7", {"ids": free[:1]}), ("T-1", {"ids": free[1:2]}),
    ]  # fmt: skip


@pytest.mark.parametrize("key", [None, KEY])
def test_each_ticket_is_answered_once(template, tmp_path, records, key):
    folder = copied(template("hash"), tmp_path / "ws")
    with Workspace.open(folder, signing_key=key) as workspace:
        requests = requests_in(workspace, records)
        first = asked(workspace, requests, core_policy="refuse")
        person_is_core = first[3].outcome == "refused"
        fourth = "refused" if person_is_core else "done"
        assert outcomes(first) == [
            "done", "done", "refused", fourth, "nothing-here", "nothing-here", "already-done", "already-done", "done",
        ]  # fmt: skip
        assert first[6].receipt == first[0].receipt
        assert first[7].receipt.number != first[0].receipt.number  # another ticket, whose receipt says so
        for ticket in first:
            if ticket.outcome in ("done", "already-done"):
                assert (ticket.receipt.received, ticket.receipt.due) == ("2026-11-01", "2026-12-01")
                assert list(contradictions(ticket.receipt)) == []
        with pytest.raises(Refused):
            _ = first[2].receipt
        with pytest.raises(NotHere):
            _ = first[4].receipt
        before = facts(workspace, records)
    with Workspace.open(folder, signing_key=key) as workspace:
        again = asked(workspace, requests, core_policy="refuse")
        assert outcomes(again) == [
            outcome.replace("already-", "").replace("done", "already-done") for outcome in outcomes(first)
        ]
        numbers = [[t.receipt.number for t in some if t.outcome.endswith("done")] for some in (first, again)]
        assert numbers[0] == numbers[1]
        assert facts(workspace, records) == before
        later = asked(workspace, requests, core_policy="keep-extractor")  # what was refused is done now
        assert later[2].outcome == "done"
        assert {workspace.find(ticket="T-3").forgotten, workspace.find(ticket="T-8").forgotten} == {True, False}
        assert list(workspace.find(ticket="T-1").receipts) == [first[0].receipt.number, first[8].receipt.number]
    assert b"T-1" not in b"".join(contents(folder).values())
    if key is not None:
        check_receipt_log(folder, [key.public])


@pytest.mark.parametrize("key", [None, KEY])
def test_who_is_not_here_gets_an_answer(folder, key):
    with Workspace.open(folder, signing_key=key) as workspace:
        (ticket,) = asked(workspace, [("T-9", {"subjects": [-5]})])
        fitted = workspace.model._fitted
        requests = workspace.status().requests
    statement = (
        Statement.from_bytes(ticket.answer) if key is None else Envelope.from_bytes(ticket.answer).verify([KEY.public])
    )
    assert (statement.predicate_type, statement.subjects[0].sha256) == (NOTHING_TYPE, fitted.model_commitment)
    said = dict(statement.predicate)
    assert (said["subjects"], said["ticket"], said["due"]) == ([-5], "T-9", "2026-12-01")
    assert said["records"] == fitted.commitment
    assert requests == 0
    assert json.dumps(said)


def test_somebody_who_has_come_back_is_not_forgotten_by_a_former_ticket(folder, records):
    person = int(records.subjects[0])
    with Workspace.open(folder) as workspace:
        request = [("T-1", {"subjects": [person]})]
        assert outcomes(asked(workspace, request, core_policy="keep-extractor")) == ["done"]
        back = NEWCOMERS.select(NEWCOMERS.ids[:1])
        workspace.model.add(back.inputs, ["kind 0"], ids=back.ids, subjects=[person])
        assert outcomes(asked(workspace, request, core_policy="keep-extractor")) == ["already-done"]
        assert workspace.find(subject=person).here
        assert outcomes(asked(workspace, [("T-2", request[0][1])], core_policy="keep-extractor")) == ["done"]
        assert not workspace.find(subject=person).here


def test_one_ticket_may_ask_for_several_people(folder, records):
    people = np.unique(records.subjects)[:2].tolist()
    requests = [("T-1", {"subjects": [person]}) for person in people]
    with Workspace.open(folder) as workspace:
        tickets = asked(workspace, requests, core_policy="keep-extractor")
        assert outcomes(tickets) == ["done", "done"]
        assert len(workspace.find(ticket="T-1").receipts) == 2


def test_dates_are_dates_of_a_ticket(workspace):
    with workspace.batch() as batch:
        for wrong in (
            {"due": "2026-12-01"},
            {"ticket": "T-1", "due": "soon"},
            {"ticket": "T-1", "received": "2026-13-01"},
        ):
            with pytest.raises(ValueError):  # noqa: PT011
                batch.unlearn([5], **wrong)
    assert workspace.status().requests == 0


def test_asked_for_twice_names_the_first_receipt(folder, records):
    """A person and a record alike: nothing is done, and a receipt says by which one it was."""
    person = int(records.subjects[0])
    ids = records.ids[records.subjects == records.subjects[10]]
    with Workspace.open(folder) as workspace:
        for request in ({"subjects": [person]}, {"ids": ids[:1]}):
            first, again = (workspace.model.unlearn(**request, core_policy="keep-extractor") for _ in range(2))
            assert (again.already_forgotten, again.requested, again.tombstones) == (1, 1, [])
            assert again.model_after == first.model_after
        assert workspace.find(subject=person).receipts == {1: "forgotten", 2: "forgotten before"}
        assert workspace.find(id=ids[0].item()).receipts == {3: "forgotten", 4: "forgotten before"}
        both = workspace.model.unlearn(subjects=[person, int(records.subjects[20])], core_policy="keep-extractor")
        assert both.already_forgotten == 1
        assert list(contradictions(both)) == []
