"""What a person gets: proofs that hold against the signed receipt and the log, for whoever knows whom to ask for."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from maxrr.data.hashes import identifier_bytes, layout
from maxrr.errors import NotHere, NotSigned
from maxrr.evidence import Checkpoint, Envelope, SigningKey
from maxrr.evidence.log_proofs import Inclusion, leaf_hash
from maxrr.evidence.sparse_tree import Absence, Presence, key_of, value_of
from maxrr.workspace import Workspace, WorkspaceError
from maxrr.workspace.dossiers import earlier_receipts
from maxrr.workspace.history import frames_in
from tests.workspace.problems import (
    NEW,
    NEWCOMERS,
    cases,
    contents,
    copied,
    history_in,
    kinds,
    named,
    together,
    with_replaced,
)

KEY = SigningKey.generate()


@pytest.fixture(params=["hash", "hash, words"])
def case(request):
    return request.param


@pytest.fixture
def used(template, tmp_path, case):
    """A workspace that forgot a record, a person and three records, and replaced one; who they were."""
    records = cases()[case][0]
    folder = copied(template(case), tmp_path / "workspace")
    with Workspace.open(folder, signing_key=KEY) as workspace:
        free = kinds(workspace.model)[2].tolist()
        person = records.subjects[records.ids == free[1]][0].item()
        about = records.ids[records.subjects == person].tolist()
        free = [free[0], *(id_ for id_ in free[1:] if id_ not in about)]
        workspace.model.unlearn([free[0]])
        workspace.model.unlearn(subjects=[person], core_policy="keep-extractor")
        workspace.model.replace(free[-1], NEW)
        rest = kinds(workspace.model)[2].tolist()[:3]
        together(workspace, [rest[:2], rest[2:]])
    return folder, records, free, person, rest


def holds(dossier, records, replaced=None):
    """Whether everything in it does, computed from the raw records; gives the receipt's number."""
    envelope = Envelope.from_bytes(json.dumps(dossier["envelope"]).encode())
    said = envelope.verify([KEY.public]).predicate
    hashes = {id_: digest.tobytes() for id_, digest in zip(records.ids.tolist(), records.record_hashes(), strict=True)}
    for record in dossier["records"]:
        ((kind, id_),) = record["id"].items()
        assert type(id_).__name__ == kind
        salt, name = bytes.fromhex(record["salt"]), identifier_bytes(id_)
        key, value = key_of(salt, name), value_of(salt, hashes[id_])
        assert value.hex() == record["value"]
        assert Presence.from_object(record["before"]).verify(bytes.fromhex(said["commitment_before"]), key, value)
        after = bytes.fromhex(said["commitment_after"])
        if replaced is None:
            assert Absence.from_object(record["after"]).verify(after, key)
            assert "after_value" not in record
        else:
            new = value_of(salt, replaced)
            assert record["after_value"] == new.hex()
            assert Presence.from_object(record["after"]).verify(after, key, new)
    log = dossier["log"]
    checkpoint = Checkpoint.read(log["checkpoint"].encode(), log["origin"], [KEY.public])
    inclusion = Inclusion.from_object(log["inclusion"])
    entry = hashlib.sha256(envelope.payload).digest()
    assert inclusion.index == said["number"] - 1
    assert inclusion.verify(leaf_hash(entry), checkpoint.size, checkpoint.root)
    assert dossier["keys"] == [KEY.public.pem.decode()]
    assert bytes.fromhex(dossier["record_layout"]) == layout(records.inputs.dtype, records.shape)
    return said["number"]


def test_it_says_who_answers_if_that_is_set(used, monkeypatch):
    folder, _, free, _, _ = used
    with Workspace.open(folder, read_only=True) as workspace:
        assert workspace.dossier(1, ids=[free[0]])["operator"] is None
        monkeypatch.setenv("MAXRR_OPERATOR", "Example Clinic, privacy@clinic.example")
        assert workspace.dossier(1, ids=[free[0]])["operator"] == "Example Clinic, privacy@clinic.example"


def test_everything_in_it_holds(used):
    folder, records, free, person, rest = used
    about = records.ids[records.subjects == person].tolist()
    changed = with_replaced(records, free[-1], NEW)
    new = changed.record_hashes()[changed.ids == free[-1]][0].tobytes()
    for options in ({}, {"read_only": True}, {"signing_key": KEY}):
        with Workspace.open(folder, **options) as workspace:
            assert holds(workspace.dossier(1, ids=[free[0]]), records) == 1
            hers = workspace.dossier(2, subject=person)
            assert holds(hers, records) == 2
            assert sorted(str(next(iter(each["id"].values()))) for each in hers["records"]) == sorted(map(str, about))
            assert hers["subject"] == person
            assert holds(workspace.dossier(2, ids=about[:1]), records) == 2
            assert holds(workspace.dossier(3, ids=[free[-1]]), records, new) == 3
            assert holds(workspace.dossier(4, ids=rest[:2]), records) == 4
            assert holds(workspace.dossier(5, ids=rest[2:]), records) == 5


def test_it_names_the_keys_that_it_is_signed_with(used):
    """That of the receipt, and that of the log's checkpoint, which may have come later."""
    folder, _, free, _, _ = used
    later = SigningKey.generate()
    with Workspace.open(folder, signing_key=later) as workspace:
        last = kinds(workspace.model)[2][-1].item()
        workspace.model.unlearn([last])
        keys = [workspace.dossier(number, ids=[id_])["keys"] for number, id_ in ((1, free[0]), (6, last))]
    pems = [key.public.pem.decode() for key in (KEY, later)]
    assert keys == [pems, pems[1:]]


def test_about_others_there_is_none(used):
    folder, _records, free, _person, rest = used
    with Workspace.open(folder) as workspace:
        for number, asked in (
            (1, {"ids": [free[1]]}), (1, {"subject": "nobody"}), (2, {"ids": [free[0]]}), (4, {"ids": rest}),
            (6, {"ids": [free[0]]}), (0, {"ids": [free[0]]}), (1, {"ids": []}),
        ):  # fmt: skip
            with pytest.raises(NotHere, match="receipt"):
                workspace.dossier(number, **asked)
        with pytest.raises(ValueError, match="one of the two"):
            workspace.dossier(1)


def test_what_is_not_signed_has_none(folder):
    with Workspace.open(folder) as workspace:
        free = kinds(workspace.model)[2].tolist()
        workspace.model.unlearn(free[:1])
        with pytest.raises(NotSigned):
            workspace.dossier(1, ids=free[:1])


def test_the_proofs_on_the_disk_show_nothing(used):
    """Neither ids nor values, salts or hashes of the tree: only who knows the id can ask for them."""
    folder, _records, free, _, _ = used
    with Workspace.open(folder) as workspace:
        (record,) = workspace.dossier(1, ids=[free[0]])["records"]
    content = b"".join(frame.proofs for frame in frames_in(history_in(folder)))
    known = [record["value"], record["salt"], *record["before"]["siblings"], *record["after"]["siblings"]]
    assert all(bytes.fromhex(each) not in content and each.encode() not in content for each in known)
    assert str(free[0]).encode() not in content
    assert all(bytes.fromhex(record["value"]) not in each for each in contents(folder).values())


def test_a_flipped_bit_of_a_proof_is_damage(used):
    folder = used[0]
    path = history_in(folder)
    content, proofs = bytearray(path.read_bytes()), frames_in(path)[1].proofs
    content[content.index(proofs) + int(np.random.default_rng(0).integers(len(proofs)))] ^= 1
    path.write_bytes(content)
    with pytest.raises(WorkspaceError, match=path.name):
        Workspace.open(folder)


def naive(workspace, receipt):
    """Look through all receipts before one, from the newest, for what it says was forgotten before."""
    gone, found = set(receipt.earlier_tombstones), []
    for before in workspace.receipts()[receipt.number - 2 :: -1]:
        named = gone & {*before.tombstones, *(before.subject_tombstones or ())}
        found, gone = [*found, before] if named else found, gone - named
    return found


def test_earlier_receipts_are_found_and_no_others_read(used, monkeypatch):
    folder, records, free, person, rest = used
    with Workspace.open(folder, signing_key=KEY) as workspace:
        model = workspace.model
        asked = [model.unlearn([free[0], rest[2]]), model.unlearn(subjects=[person]), model.unlearn([rest[0]])]
        assert [[each.number for each in naive(workspace, one)] for one in asked] == [[5, 1], [2], [4]]
        read, receipt = [], type(workspace._store).receipt
        with monkeypatch.context() as patch:
            patch.setattr(type(workspace._store), "receipt", lambda self, at: read.append(at) or receipt(self, at))
            found = [earlier_receipts(workspace, one) for one in asked]
        assert found == [naive(workspace, one) for one in asked]
        assert read == [5, 1, 2, 4]
        new = named(NEWCOMERS) if records.ids.dtype.kind == "U" else NEWCOMERS
        model.add(replace(new, subjects=np.full(len(new), person)))
        model.unlearn(subjects=[person], core_policy="keep-extractor")
        assert earlier_receipts(workspace, asked[1]) == naive(workspace, asked[1])  # not the receipt of today
