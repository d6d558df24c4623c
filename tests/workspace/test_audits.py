"""What a workspace keeps for audits: which test records were set aside, and how often a receipt was audited."""

import copy
import threading
from unittest import mock

import pytest

from maxrr.audit.auditing import count_audit
from maxrr.unlearning.commitment import set_aside_of
from maxrr.workspace import Workspace, WorkspaceError, folder
from maxrr.workspace.history import History, frames_in
from tests.workspace.problems import (
    cases,
    contents,
    facts_of,
    found,
    given,
    history_in,
    kinds,
    needles,
    rewrite_facts,
)

# Test records that are set aside


@pytest.fixture
def sides(records):
    """Records to train on, and others to test with."""
    return records.without(records.ids[:10]), records.select(records.ids[:10])


@pytest.fixture
def kept(sides, tmp_path):
    """A workspace that knows which test records were set aside, in a folder of its own."""
    training, test = sides
    with Workspace.create(tmp_path / "kept", cases()["hash"][1], training, test=test) as made:
        yield made


def aside_in(folder):
    """What the files say, for somebody who comes anew."""
    with Workspace.open(folder, read_only=True) as opened:
        return opened.model._fitted.set_aside


def test_what_is_set_aside_comes_back_from_the_files(kept, sides):
    training, test = sides
    aside = kept.model._fitted.set_aside
    assert aside == set_aside_of(kept.model._fitted.key, test) == aside_in(kept.folder)
    core, _, free = kinds(kept.model)
    kept.model.unlearn(free[:1])
    assert aside_in(kept.folder) == aside
    given(kept, training).model.unlearn(core[:1], core_policy="retrain")
    given(kept, training).model.refit()
    assert aside_in(kept.folder) == aside
    assert given(kept, training).model._apart()._fitted.set_aside == aside
    training = training.without([*free[:1], *core[:1]])
    kept.model.fit(training, test=test.select(test.ids[:4]))
    assert aside_in(kept.folder) == set_aside_of(kept.model._fitted.key, test.select(test.ids[:4]))
    kept.model.fit(training)
    assert aside_in(kept.folder) is None


def test_a_request_that_only_erases_still_is_one_frame(kept):
    """What was set aside is compared by its value, and is no reason to write the whole state."""
    kept.model.unlearn(kinds(kept.model)[2][:1])
    assert [frame.files is None for frame in frames_in(history_in(kept.folder))] == [False, True]


def test_nothing_of_the_test_records_is_in_the_folder(kept, sides, records):
    _, test = sides
    other = cases()["hash"][1]
    whole = copy.deepcopy(other).fit(records)
    for id_ in test.ids[:3].tolist():
        known = needles(whole, records, id_)
        assert found({name: known[name] for name in known if "raw" in name}, kept.folder) == set()
    assert not any(digest.tobytes().hex().encode() in b"".join(contents(kept.folder).values())
                   for digest in test.record_hashes())  # fmt: skip


@pytest.mark.parametrize("change", [{"records": 3}, {"hash": "0" * 64}, None])
def test_nobody_changes_it_without_the_key(kept, change):
    folder = kept.folder
    kept.close()
    facts = facts_of(folder)
    if change is None:
        facts["set_aside"] = None
    else:
        facts["set_aside"] |= change
    rewrite_facts(folder, facts, key=b"")
    with pytest.raises(WorkspaceError):
        aside_in(folder)


@pytest.mark.parametrize("wrong", [{"records": "3"}, {"hash": 3}, {"records": None}, {"more": 1}])
def test_what_is_of_another_kind_is_damage(kept, wrong):
    folder = kept.folder
    kept.close()
    facts = facts_of(folder)
    facts["set_aside"] |= wrong
    rewrite_facts(folder, facts)
    with pytest.raises(WorkspaceError):
        aside_in(folder)


# Audits that were made


@pytest.fixture
def receipt(workspace):
    return workspace.model.unlearn(kinds(workspace.model)[0][:1], core_policy="keep-extractor")


def audited(workspace, receipt, records):
    """How many audits of a receipt there were, for one who audits it now, while nobody works there."""
    with Workspace.open(workspace.folder, read_only=True) as reader:
        model = given(reader, records).model._apart()
    workspace.close()
    return count_audit(model, receipt.digest)


def test_audits_are_counted_by_receipt_whoever_makes_them(workspace, records, receipt):
    assert [audited(workspace, receipt, records) for _ in range(3)] == [0, 1, 2]
    with Workspace.open(workspace.folder) as workspace:
        other = workspace.model.unlearn(kinds(workspace.model)[0][:1], core_policy="keep-extractor")
        assert audited(workspace, other, records) == 0
    with Workspace.open(workspace.folder, records=lambda: records) as workspace:
        workspace.model.refit()
        model = workspace.model._apart()
        assert count_audit(model, receipt.digest) == 3
        assert count_audit(copy.deepcopy(model), receipt.digest) == 4
    assert count_audit(model, receipt.digest) == 5
    assert audited(workspace, receipt, records) == 6


def test_of_audits_that_end_at_once_none_is_lost(workspace, records, receipt):
    models, counted = [given(workspace, records).model._apart() for _ in range(8)], []
    threads = [
        threading.Thread(target=lambda model=model: counted.append(count_audit(model, receipt.digest)))
        for model in models
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(counted) == 7
    assert sorted(counted) >= list(range(8))
    assert audited(workspace, receipt, records) == 8


@pytest.mark.parametrize("how", ["read only", "in use", "gone"])
def test_an_audit_that_cannot_be_noted_is_not_lost(workspace, records, receipt, tmp_path, monkeypatch, how):
    with Workspace.open(workspace.folder, read_only=True) as reader:
        model = given(reader, records).model._apart()
    earlier = 0
    monkeypatch.setattr(folder, "PATIENCE", 0.0)
    if how == "read only":
        earlier = 1 + audited(workspace, receipt, records)
        monkeypatch.setattr(History, "append", mock.Mock(side_effect=PermissionError("not yours")))
    elif how == "gone":
        workspace.close()
        workspace.folder.rename(tmp_path / "moved")
    with pytest.warns(UserWarning, match="later audits will"):
        assert count_audit(model, receipt.digest) == earlier


def test_notes_say_nothing_but_when_and_of_which_receipt(workspace, records, receipt):
    before = contents(workspace.folder)
    audited(workspace, receipt, records)
    after, path = contents(workspace.folder), history_in(workspace.folder)
    assert {name for name in after if after[name] != before.get(name)} == {path.name}
    one, two = frames_in(path)[-2:]
    assert two.audit.keys() == {"receipt", "time"}
    assert two.audit["receipt"] == workspace._store.answers[0].digest
    assert (two.state, two.requests, two.commitment) == (one.state, one.requests, one.commitment)
    assert len(two.to_bytes()) < 400
