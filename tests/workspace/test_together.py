"""Several requests by one commit: each as if it came alone, and all of them or none."""

import os

import numpy as np
import pytest

from maxrr.errors import DataError, NotHere, Refused
from maxrr.evidence import SigningKey
from maxrr.unlearning import Receipt
from maxrr.workspace import Workspace
from tests.workspace.problems import belongs, contents, copied, facts, found, kinds, needles, reopened

KEY = SigningKey.generate()


def asked(workspace):
    """Requests of all kinds."""
    core, influential, free = kinds(workspace.model)
    return [free[:1], influential[:2], [5], core[:1], [free[0], free[3]], free[4:6]]


@pytest.mark.parametrize("key", [None, KEY])
def test_they_are_answered_as_one_after_the_other(template, tmp_path, records, key, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")  # two copies go on, which nobody must notice
    one, other = (copied(template("hash"), tmp_path / name) for name in ("one", "other"))
    with Workspace.open(one, signing_key=key) as together, Workspace.open(other, signing_key=key) as apart:
        requests = asked(together)
        answers = together.unlearn_each(requests)
        for request, answer in zip(requests, answers, strict=True):
            if isinstance(answer, Receipt):
                apart.model.unlearn(request)
            else:
                with pytest.raises(type(answer), match=str(answer)[:20]):
                    apart.model.unlearn(request)
        assert [type(each) for each in answers] == [Receipt, Receipt, NotHere, Refused, Receipt, Receipt]
        assert [each.number for each in answers if isinstance(each, Receipt)] == [1, 2, 3, 4]
        assert [receipt.previous for receipt in together.receipts()][1:] == [
            receipt.digest for receipt in list(together.receipts())[:-1]
        ]
        assert facts(together, records) == facts(apart, records)
        assert together.state == apart.state == 5
    assert reopened(one, records) == reopened(other, records)
    assert set(contents(one)) == belongs(one)


def test_by_people(workspace, records):
    free = kinds(workspace.model)[2]
    people = records.subjects[np.isin(records.ids, free[:2])]
    answers = workspace.unlearn_each(subjects=people.tolist(), core_policy="keep-extractor")
    assert [
        answer.number in workspace.find(subject=person).receipts for answer, person in zip(answers, people, strict=True)
    ] == [True] * 2
    with pytest.raises(ValueError, match="one of the two"):
        workspace.unlearn_each()
    assert workspace.unlearn_each([]) == []


@pytest.mark.parametrize("count", [1, 3, 20])
def test_free_requests_cost_the_flushes_of_one(workspace, monkeypatch, count):
    free = kinds(workspace.model)[2]
    workspace.model.unlearn(free[-1:])
    fsyncs, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (fsyncs.append(descriptor), fsync(descriptor)))
    assert len(workspace.unlearn_each(free[:count])) == count
    assert len(fsyncs) == 2


def test_if_one_fails_none_was_carried_out(workspace, records, monkeypatch):
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
            workspace.unlearn_each(free[:4])
    assert (facts(workspace, records), contents(workspace.folder)) == (before, files)
    with pytest.raises(DataError):
        workspace.unlearn_each([free[:1], [0.5]])
    assert (facts(workspace, records), contents(workspace.folder)) == (before, files)
    assert [each.number for each in workspace.unlearn_each(free[:4])] == [1, 2, 3, 4]


def test_nothing_of_any_of_them_is_left(workspace, records):
    _, influential, free = kinds(workspace.model)
    ids = [*free[:3].tolist(), influential[0].item()]
    wanted = {
        f"{id_}: {what}": needle for id_ in ids for what, needle in needles(workspace.model, records, id_).items()
    }
    assert found(wanted, workspace.folder)
    workspace.unlearn_each(ids)
    assert found(wanted, workspace.folder) == set()
