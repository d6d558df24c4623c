"""Signed notes and checkpoints: the specification's example, Go's signature, other keys, older and other histories."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from maxrr.errors import EvidenceError, OtherLog, UntrustedKey, WrongSignature
from maxrr.evidence import Checkpoint, PublicKey, SigningKey
from maxrr.evidence.checkpoints import Note, NoteSignature, note_key_id
from maxrr.evidence.exact_text import from_base64
from tests.evidence.logs import KEY, ORIGIN, flipped, numbers, tree_hash
from tests.evidence.test_signing import RFC_8032

GO = json.loads((Path(__file__).parents[1] / "fixtures" / "evidence" / "go_tlog.json").read_text())
OTHER = SigningKey.generate()

# The example of C2SP's signed-note.
EXAMPLE_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
EXAMPLE = """This is an example message.

— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
""".encode()


def checkpoint(size, *, key=KEY, origin=ORIGIN, entries=None):
    return Checkpoint.sign(origin, size, tree_hash(entries or numbers(0, size)), key)


def test_the_example_of_the_specification():
    name, key_id, encoded = EXAMPLE_KEY.split("+")
    key = PublicKey(from_base64(encoded, "key")[1:])
    assert note_key_id(name, key).hex() == key_id
    note = Note.from_bytes(EXAMPLE)
    note.verify(name, [key])
    assert note.text == "This is an example message.\n"
    assert note.to_bytes() == EXAMPLE
    for bit in range(8 * len(EXAMPLE)):
        with pytest.raises(EvidenceError):
            Note.from_bytes(flipped(EXAMPLE, bit)).verify(name, [key])


def test_ours_is_what_go_signs():
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(RFC_8032[0][0])))
    assert f"{ORIGIN}+{note_key_id(ORIGIN, key.public).hex()}+" in GO["verifier_key"]
    ours = checkpoint(1000, key=key)
    assert ours.to_bytes() == GO["checkpoint"].encode()
    assert Checkpoint.read(GO["checkpoint"].encode(), ORIGIN, [key.public]) == ours


def test_every_bit_counts():
    signed = checkpoint(12).to_bytes()
    assert Checkpoint.read(signed, ORIGIN, [KEY.public]).size == 12
    for bit in range(8 * len(signed)):
        with pytest.raises(EvidenceError):
            Checkpoint.read(flipped(signed, bit), ORIGIN, [KEY.public])


def test_signatures_of_witnesses_are_kept_and_not_looked_at():
    signed = checkpoint(12)
    witness = NoteSignature("witness.example", b"abcd", b"a signature of another type")
    namesake = NoteSignature(ORIGIN, note_key_id(ORIGIN, OTHER.public), b"of a key that is not known")
    colliding = NoteSignature("witness.example", note_key_id(ORIGIN, KEY.public), b"only the id is the same")
    note = Note(signed.note.text, (witness, namesake, *signed.note.signatures, colliding))
    read = Checkpoint.read(note.to_bytes(), ORIGIN, [KEY.public])
    assert (read.size, read.root) == (signed.size, signed.root)
    assert read.to_bytes() == note.to_bytes()
    with pytest.raises(WrongSignature):
        Checkpoint.read(note.to_bytes(), ORIGIN, [KEY.public, OTHER.public])
    forged = NoteSignature(ORIGIN, note_key_id(ORIGIN, KEY.public), bytes(64))
    with pytest.raises(WrongSignature):
        Checkpoint.read(Note(note.text, (*note.signatures, forged)).to_bytes(), ORIGIN, [KEY.public])


def test_another_key_and_another_origin_are_refused():
    signed = checkpoint(12).to_bytes()
    with pytest.raises(UntrustedKey):
        Checkpoint.read(signed, ORIGIN, [OTHER.public])
    with pytest.raises(UntrustedKey):
        Checkpoint.read(signed, ORIGIN, [])
    with pytest.raises(OtherLog):
        Checkpoint.read(signed, "example.com/other", [KEY.public])
    mine = checkpoint(12).note
    renamed = Note(mine.text.replace(ORIGIN, "example.com/other"), mine.signatures)
    with pytest.raises(UntrustedKey):
        Checkpoint.read(renamed.to_bytes(), "example.com/other", [KEY.public])


def test_a_log_may_have_changed_its_key():
    for key in (KEY, OTHER):
        assert Checkpoint.read(checkpoint(3, key=key).to_bytes(), ORIGIN, [KEY.public, OTHER.public]).size == 3


ROOT = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="


@pytest.mark.parametrize(
    "text",
    [
        f"{ORIGIN}\n0\n{ROOT}\nextension\n",
        f"{ORIGIN}\n0\n",
        f"{ORIGIN}\n00\n{ROOT}\n",
        f"{ORIGIN}\n+1\n{ROOT}\n",
        f"{ORIGIN}\n-1\n{ROOT}\n",
        f"{ORIGIN}\n١\n{ROOT}\n",
        f"{ORIGIN}\n 1\n{ROOT}\n",
        f"{ORIGIN}\n9223372036854775808\n{ROOT}\n",
        f"{ORIGIN}\n0\n{ROOT[:-1]}\n",
        f"{ORIGIN}\n0\n{ROOT[4:]}\n",
        f"{ORIGIN}\n0\n{ROOT[:-2]}V=\n",
        f"\n{ORIGIN}\n0\n{ROOT}\n",
        f"{ORIGIN}\n0\n{ROOT} \n",
    ],
)
def test_signed_texts_that_are_no_checkpoints_are_refused(text):
    with pytest.raises(EvidenceError):
        Checkpoint.read(Note.sign(text, ORIGIN, KEY).to_bytes(), ORIGIN, [KEY.public])


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data + b"\n",
        lambda data: data + b"more\n",
        lambda data: data.replace(b"\n\n", b"\n"),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b" ", b"\t"),
        lambda data: data.replace(b"=\n", b"\n"),
        lambda data: data + "— a+b QUJDREU=\n".encode(),
        lambda data: data + "— a QUJD\n".encode(),
        lambda data: data + "— a\n".encode(),
        lambda data: data + "— a  QUJDREU=\n".encode(),
        lambda data: data + b"- a QUJDREU=\n",
        lambda data: data + "— a QUJDREU=\n".encode() * 64,
        lambda data: data + "— a QUJDREU=\n".encode() * 80_000,
        lambda data: b"\xff" + data,
        lambda data: b"",
    ],
)
def test_notes_of_another_form_are_refused(change):
    signed = checkpoint(12).to_bytes()
    changed = change(signed)
    if changed == signed:
        pytest.fail("nothing was changed")
    with pytest.raises(EvidenceError):
        Checkpoint.read(changed, ORIGIN, [KEY.public])


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\nb", "a\u00a0b", "\ud800", "a\x00"])
def test_names_that_no_note_can_have(name):
    with pytest.raises(EvidenceError):
        Checkpoint.sign(name, 0, tree_hash([]), KEY)
