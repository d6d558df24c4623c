"""Receipts that are signed and logged: by whom, in which order, and what happens without the key."""

import json

import pytest

from maxrr.errors import Damaged, EvidenceError, KeyMissing, UntrustedKey
from maxrr.evidence import Envelope, Log, SigningKey, check_log
from maxrr.evidence.envelopes import RECEIPT_TYPE, Statement, Subject
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace import Workspace, WorkspaceError, overview
from maxrr.workspace.names import origin_of
from tests.workspace.problems import contents, found, kinds, receipts_in, together

FIRST, SECOND = SigningKey.generate(), SigningKey.generate()


def handed_in(folder):
    return [HandedReceipt.from_bytes(each) for each in receipts_in(folder)]


def entries(folder, token, *keys):
    """What the log has, once all of it was computed again."""
    checkpoint = check_log(folder / "log", origin_of(token), [key.public for key in keys])
    return [entry.hex() for entry in Log(folder / "log", checkpoint).entries()]


def test_a_receipt_is_signed_as_a_statement_about_the_model(folder):
    with Workspace.open(folder, signing_key=FIRST) as workspace:
        receipt = workspace.model.unlearn(kinds(workspace.model)[2][:1])
        assert list(workspace.receipts()) == [receipt]
        copy = workspace.receipt(1).to_bytes()
    (line,) = receipts_in(folder)
    assert copy == line
    statement = Envelope.from_bytes(line).verify([FIRST.public])
    predicate = json.loads(receipt.to_json())
    assert statement == Statement((Subject("model", receipt.model_after),), RECEIPT_TYPE, predicate)
    assert Envelope.from_bytes(line).to_bytes() == line
    with pytest.raises(UntrustedKey):
        HandedReceipt.from_bytes(line).verify([SECOND.public])


def test_the_log_begins_with_the_receipts_from_before_there_was_a_key(folder):
    with Workspace.open(folder) as workspace:
        free = kinds(workspace.model)[2]
        earlier = [workspace.model.unlearn(free[each : each + 1]) for each in (0, 1)]
        assert workspace.receipt(2) == HandedReceipt(earlier[1])
    assert not (folder / "log").exists()
    Workspace.open(folder, signing_key=FIRST).close()  # which asks for nothing, and so signs nothing
    assert not (folder / "log").exists()
    with Workspace.open(folder, signing_key=FIRST) as workspace:
        workspace.model.unlearn(free[2:3])
        token = workspace._store.token
        assert [handed.envelope is None for handed in handed_in(folder)] == [
            True,
            True,
            False,
        ]
    kept = [handed.sha256 for handed in handed_in(folder)]
    assert entries(folder, token, FIRST) == kept
    assert kept[0] == earlier[0].digest
    assert [receipt.number for receipt in overview(folder).receipts] == [1, 2, 3]


def test_once_signed_no_request_goes_without_a_key(folder, records):
    with Workspace.open(folder, signing_key=FIRST) as workspace:
        _core, _, free = kinds(workspace.model)
        workspace.model.unlearn(free[:1])
    before = contents(folder)
    with Workspace.open(folder) as workspace:
        for act in (
            lambda: workspace.model.unlearn(free[1:2]),
            lambda: together(workspace, [free[1:2]]),
            lambda: workspace.model.execute(workspace.model.plan(free[1:2])),
            lambda: workspace.model.replace(free[1].item(), [0.0] * 5),
            lambda: workspace.catch_up(folder),
        ):
            with pytest.raises(KeyMissing):
                act()
        assert workspace.model.plan(free[1:2]).requested == 1
    assert contents(folder) == before
    with Workspace.open(folder) as workspace:
        workspace.model.fit(records.without(free[:1]))  # of which there is no receipt
    with Workspace.open(folder) as workspace, pytest.raises(WorkspaceError, match="signs its receipts"):
        workspace.model.unlearn(free[1:2])


def test_another_key_may_take_the_place_of_the_first(folder):
    for key, each in ((FIRST, 0), (SECOND, 1), (SECOND, 2)):
        with Workspace.open(folder, signing_key=key) as workspace:
            free = kinds(workspace.model)[2]
            workspace.model.unlearn(free[:1])
            assert len(workspace._store.stored.files.keys) == 1 + (each > 0)
    token = workspace._store.token
    for line, key in zip(receipts_in(folder), (FIRST, SECOND, SECOND), strict=True):
        HandedReceipt.from_bytes(line).verify([key.public])
    assert len(entries(folder, token, SECOND)) == 3
    with pytest.raises(EvidenceError, match="not signed"):
        entries(folder, token, FIRST)


def test_the_key_is_kept_nowhere(tmp_path, records, folder):
    with Workspace.open(folder, signing_key=FIRST) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
    FIRST.save(tmp_path / "key.pem")
    pem = (tmp_path / "key.pem").read_text().splitlines()[1]
    raw = FIRST._key.private_bytes_raw()
    assert not found({"pem": pem[-40:].encode(), "raw": raw, "hex": raw.hex().encode()}, folder)


def test_a_log_that_is_behind_is_brought_up_to_date_by_whoever_has_the_key(folder, monkeypatch):
    """Until then the request counts: it is the log that follows."""
    with Workspace.open(folder, signing_key=FIRST) as workspace:
        free = kinds(workspace.model)[2]
        workspace.model.unlearn(free[:1])
        with monkeypatch.context() as patch:
            patch.setattr("maxrr.evidence.log.LogWriter.append", full)
            with pytest.warns(UserWarning, match="No space left"):
                workspace.model.unlearn(free[1:2])
        assert len(entries(folder, workspace._store.token, FIRST)) == 1
    for options in ({}, {"read_only": True}):
        with Workspace.open(folder, **options) as workspace:
            assert workspace.status().requests == 2
        assert len(entries(folder, workspace._store.token, FIRST)) == 1
    with Workspace.open(folder, signing_key=FIRST) as workspace:
        assert len(entries(folder, workspace._store.token, FIRST)) == 2
        workspace.model.unlearn(free[2:3])
    assert entries(folder, workspace._store.token, FIRST) == [handed.sha256 for handed in handed_in(folder)]


def full(*_):
    raise OSError(28, "No space left on device")


def test_a_log_that_was_taken_back_or_belongs_to_others_is_damage(folder, tmp_path):
    import shutil

    with Workspace.open(folder, signing_key=FIRST) as workspace:
        free = kinds(workspace.model)[2]
        workspace.model.unlearn(free[:1])
        shutil.copytree(folder / "log", tmp_path / "older")
        for each in (1, 2):
            workspace.model.unlearn(free[each : each + 1])
    shutil.copytree(folder, tmp_path / "copy")
    for wrong in ("older", "gone"):
        shutil.rmtree(tmp_path / "copy" / "log")
        if wrong == "older":
            shutil.copytree(tmp_path / "older", tmp_path / "copy" / "log")
        for way in (Workspace.open, overview):
            with pytest.raises(Damaged):
                way(tmp_path / "copy")


def test_the_path_of_a_key_is_no_key(tmp_path):
    with pytest.raises(TypeError, match=r"a str: load one by SigningKey.load\(path\)"):
        Workspace.open(tmp_path, signing_key="key.pem")
    with pytest.raises(TypeError, match=r"SigningKey\.load"):
        Workspace.create(tmp_path / "ws", None, None, signing_key=tmp_path / "key.pem")
    assert not (tmp_path / "ws").exists()
