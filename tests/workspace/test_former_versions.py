"""Workspaces of version 3, receipts of version 4 and bundles of version 1 are read, and their evidence holds.

They have other words: the policy `keep-extractor` was called `head`, tombstones were marks, commitments manifests.

tests/fixtures/policy_head was written by commit 42e050b: records of `tests.unlearning.problems.table`, a workspace that
forgot a free and an influential record, two core ones under `head`, replaced one under `head`, retrained without one,
and forgot another under `head`; and the bundle of its model.

tests/fixtures/before_adding was written by commit bc20925, before records could be added: a workspace of version 4 with
receipts of version 5 and the bundle of its model, of version 2. It forgot a free and an influential record, replaced
one, retrained without one, and forgot one under `keep-extractor`.

tests/fixtures/before_growing was written by commit b9cb329, before there were files that only grow: a workspace of
version 6 with receipts of that version. It forgot a free and an influential record, replaced one, forgot a person, and
was killed after it had committed to forget another free record: its receipt is not handed out, its row not erased.
"""

import contextlib
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from tests.cases import stride
from tests.cli.shell import Shell
from tests.workspace.faults import Points
from tests.workspace.problems import NEW, belongs, contents, copied, facts, found, kinds, with_replaced
from tests.workspace.test_recovery import Killed, killed

from maxrr.data import Dataset
from maxrr.evidence import Log, SigningKey, check_log
from maxrr.unlearning import Bundle, Receipt
from maxrr.unlearning.consistency import contradictions, is_latest, lies, not_among
from maxrr.workspace import Workspace, overview
from maxrr.workspace.names import origin_of
from maxrr.workspace.ownership import Marker
from maxrr.workspace.signed_receipts import KeptReceipt

FIXTURE = Path(__file__).parents[1] / "fixtures" / "policy_head"
REPLACED = 700_000_066
BEFORE_ADDING = FIXTURE.parent / "before_adding"
BEFORE_GROWING = FIXTURE.parent / "before_growing"
FIXTURES = {"3": FIXTURE, "4": BEFORE_ADDING, "6": BEFORE_GROWING}
ERASED = 700_000_165  # by the last request of that


@pytest.fixture
def folder(tmp_path):
    return private_copy(FIXTURE, tmp_path)


def private_copy(fixture, tmp_path):
    made = copied(fixture / "workspace", tmp_path / "workspace")
    for path in (made, *made.rglob("*")):  # Git does not keep who may read and write
        path.chmod(0o700 if path.is_dir() else 0o600)
    return made


@pytest.fixture
def records():
    """What it was fitted on, with the replaced record as it is now."""
    return with_replaced(records_of(FIXTURE), REPLACED, NEW)


def records_of(fixture):
    with np.load(fixture / "records.npz") as file:
        names = tuple(file["class_names"].tolist())
        return Dataset(file["features"], file["labels"], names, file["ids"], file["subjects"])


def test_old_receipts_hold(folder, records):
    bundle = Bundle.load(FIXTURE / "model.bundle")
    with Workspace.open(folder) as workspace:
        receipts = list(workspace.receipts())
        assert [receipt.core_policy for receipt in receipts] == ["head", "head", "head", "head", "retrain", "head"]
        for receipt in receipts:
            assert list(contradictions(receipt)) == []
            assert (not_among(receipt, bundle.receipts), list(lies(receipt, bundle))) == ("", [])
        assert is_latest(receipts[-1], bundle, bundle.retained(records))
        assert workspace.bundle().receipts == bundle.receipts
        assert workspace.model_hash_ == bundle.model_hash
    file = folder / "receipts" / "000006.json"
    shell = Shell()
    assert shell("receipt", "verify", file, "--workspace", folder, "--json").json["holds"] is True
    assert "approximate-refit" in shell("receipt", "show", file).out


@pytest.mark.parametrize("path", sorted((FIXTURE / "workspace" / "receipts").iterdir()), ids=lambda path: path.stem)
def test_an_old_receipt_keeps_the_text_it_was_handed_out_with(path):
    text = path.read_text(encoding="utf-8")
    receipt = Receipt.from_json(text)
    assert (receipt.version, receipt.to_json()) == (4, text)
    assert receipt.tombstones == json.loads(text)["record_marks"]
    assert receipt.commitment_after == json.loads(text)["manifest_after"]


@pytest.mark.parametrize(("old", "new"), [("record_marks", "tombstones"), ("neither", "free")])
def test_versions_are_not_mixed(old, new):
    said = json.loads((FIXTURE / "workspace" / "receipts" / "000001.json").read_text(encoding="utf-8"))
    for version, name, other in ((4, old, new), (5, old, old), (6, old, old), (7, old, old)):
        mixed = {other if key == name else key: value for key, value in said.items()} | {"version": version}
        with pytest.raises(ValueError, match="not a receipt"):
            Receipt.from_json(json.dumps(mixed))


@pytest.mark.parametrize("version", FIXTURES)
def test_an_old_workspace_is_read_as_it_is_and_written_anew_when_it_is_opened_to_work_in_it(tmp_path, version):
    folder, records = private_copy(FIXTURES[version], tmp_path), records_of(FIXTURES[version])
    said = json.loads((folder / "workspace.json").read_text())
    assert said["version"] == int(version)
    texts = [path.read_text(encoding="utf-8") for path in sorted((folder / "receipts").iterdir())]
    texts += [(folder / said["staged"]).read_text()] if (folder / (said["staged"] or "none")).exists() else []
    with Workspace.open(folder, read_only=True) as workspace:
        before, status = facts(workspace, records), workspace.status()
        assert [receipt.to_json() for receipt in workspace.receipts()] == texts
        assert overview(folder).receipts == tuple(workspace.receipts())
    assert json.loads((folder / "workspace.json").read_text()) == said
    with Workspace.open(folder) as workspace:
        assert facts(workspace, records) == before
    with Workspace.open(folder) as workspace:
        assert facts(workspace, records) == before
        assert [receipt.to_json() for receipt in workspace.receipts()] == texts
        assert workspace.status().held_about_forgotten == status.held_about_forgotten
        assert (workspace.state, workspace.status().requests) == (said["state"] + 1, len(said["receipts"]))
        workspace.unlearn(kinds(workspace.model)[2][:1])
    now = json.loads((folder / "workspace.json").read_text())
    assert (now["version"], now["state"]) == (7, said["state"] + 1)
    assert set(contents(folder)) == belongs(folder)  # what they were called is gone
    assert [path.read_text(encoding="utf-8") for path in sorted((folder / "receipts").iterdir())][:-1] == texts
    assert version != "6" or not found({"the last that was forgotten": ERASED.to_bytes(8, "little")}, folder)


@pytest.mark.parametrize("version", FIXTURES)
def test_a_migration_that_is_killed_anywhere_is_done_by_the_next_opening(tmp_path, version):
    """With a key, so that there is a log of the earlier receipts, too."""
    records = records_of(FIXTURES[version])
    key, old = SigningKey.generate(), None
    for at in itertools.count(1, stride(4)):
        folder = private_copy(FIXTURES[version], tmp_path)
        points = Points(at, killed, lasting=True)
        with points.patched(), contextlib.suppress(Killed):
            Workspace.open(folder, signing_key=key).close()
        if points.count < at:
            break
        with Workspace.open(folder, read_only=True) as workspace:
            seen = facts(workspace, records)
            old = old or seen
            assert seen == old, at
        with Workspace.open(folder, signing_key=key) as workspace:
            assert facts(workspace, records) == old, at
            assert check_receipt_log(folder, key) == workspace.status().requests
            workspace.unlearn(kinds(workspace.model)[2][:1])
        assert check_receipt_log(folder, key) == workspace._store.root.requests
        assert set(contents(folder)) == belongs(folder), at
    assert at > 20


def check_receipt_log(folder, key):
    """How many entries the log has: those of the receipts."""
    token = Marker.read(folder).token
    checkpoint = check_log(folder / "log", origin_of(token), [key.public])
    lines = (folder / f"receipts-{token}.jsonl").read_bytes().splitlines()
    assert list(Log(folder / "log", checkpoint).entries()) == [KeptReceipt.read(line).logged for line in lines]
    return checkpoint.size


def test_an_old_workspace_goes_on_forgetting(folder, records):
    with Workspace.open(folder) as workspace:
        core, influential, free = kinds(workspace.model)
        last = list(workspace.receipts())[-1]
        assert workspace.unlearn(free[:1]).previous == last.digest
        assert workspace.unlearn(influential[:1]).guarantee == "exact-refit"
        receipt = workspace.unlearn(core[:1], core_policy="keep-extractor")
        assert (receipt.core_policy, receipt.core_left_in_extractor) == ("keep-extractor", 2)
        assert list(contradictions(receipt)) == []
        receipt = workspace.unlearn(core[1:2], core_policy="retrain", records=records)
        assert (receipt.guarantee, receipt.unconditional, receipt.number) == ("exact-retrain", True, 10)
    with Workspace.open(folder) as workspace:
        assert [receipt.core_policy for receipt in workspace.receipts()][-5:] == [
            "head", "refuse", "refuse", "keep-extractor", "retrain",
        ]  # fmt: skip


def test_a_workspace_from_before_adding_goes_on(tmp_path):
    """Its receipts keep their text, its bundle is that of its model, and it forgets as before, now in version 7."""
    folder, records = private_copy(BEFORE_ADDING, tmp_path), records_of(BEFORE_ADDING)
    bundle = Bundle.load(BEFORE_ADDING / "model.bundle")
    for path in sorted((BEFORE_ADDING / "workspace" / "receipts").iterdir()):
        receipt = Receipt.from_json(path.read_text(encoding="utf-8"))
        assert (receipt.version, receipt.to_json()) == (5, path.read_text(encoding="utf-8"))
        assert list(contradictions(receipt)) == []
        assert (not_among(receipt, bundle.receipts), list(lies(receipt, bundle))) == ("", [])
    with Workspace.open(folder) as workspace:
        assert (workspace.model_hash_, workspace.content_hash_) == (bundle.model_hash, bundle.content_hash)
        core, influential, free = kinds(workspace.model)
        assert workspace.unlearn(free[:1]).guarantee == "exact-untouched"
        assert workspace.unlearn(influential[:1]).guarantee == "exact-refit"
        receipt = workspace.unlearn(core[:1], core_policy="retrain", records=records)
        assert (receipt.guarantee, receipt.number, receipt.version) == ("exact-retrain", 8, 7)
    said = json.loads((folder / "workspace.json").read_text())
    assert (said["version"], said["requests"]) == (7, 8)
