"""Checkpoints: Go's signature, other keys, other forms."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from maxrr.errors import EvidenceError, OtherLog, UntrustedKey, WrongSignature
from maxrr.evidence import Checkpoint, PublicKey, SigningKey
from maxrr.evidence.checkpoints import note_key_id
from maxrr.evidence.exact_text import from_base64, to_base64
from tests.evidence.logs import KEY, ORIGIN, digits, flipped, numbers, tree_hash
from tests.evidence.test_signing import RFC_8032

GO = json.loads((Path(__file__).parents[1] / "fixtures" / "evidence" / "go_tlog.json").read_text())
OTHER = SigningKey.generate()

# The key of the example in C2SP's signed-note.
EXAMPLE_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"


def checkpoint(size, *, key=KEY, origin=ORIGIN, entries=None):
    return Checkpoint.sign(origin, size, tree_hash(entries or numbers(0, size)), key)


def test_the_id_of_the_example_in_the_specification():
    name, key_id, encoded = EXAMPLE_KEY.split("+")
    assert note_key_id(name, PublicKey(from_base64(encoded, "key")[1:])).hex() == key_id


def signed(text, name=ORIGIN, key=KEY):
    """A note with any text."""
    return f"{text}\n— {name} {to_base64(note_key_id(name, key.public) + key.sign(text.encode()))}\n".encode()


def test_ours_is_what_go_signs():
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(RFC_8032[0][0])))
    assert f"{ORIGIN}+{note_key_id(ORIGIN, key.public).hex()}+" in GO["verifier_key"]
    ours = checkpoint(1000, key=key, entries=digits(0, 1000))
    assert ours.to_bytes() == GO["checkpoint"].encode()
    assert Checkpoint.read(GO["checkpoint"].encode(), ORIGIN, [key.public]) == ours


def test_every_bit_counts():
    ours = checkpoint(12).to_bytes()
    assert Checkpoint.read(ours, ORIGIN, [KEY.public]).size == 12
    for bit in range(8 * len(ours)):
        with pytest.raises(EvidenceError):
            Checkpoint.read(flipped(ours, bit), ORIGIN, [KEY.public])


def test_there_is_one_signature():
    ours = checkpoint(12).to_bytes()
    below = ours.split(b"\n\n")[1]
    for more in (below, f"— witness.example {to_base64(bytes(72))}\n".encode()):
        for both in (ours + more, ours.replace(below, more + below)):
            with pytest.raises(EvidenceError):
                Checkpoint.read(both, ORIGIN, [KEY.public])
    forged = f"— {ORIGIN} {to_base64(note_key_id(ORIGIN, KEY.public) + bytes(64))}\n".encode()
    with pytest.raises(WrongSignature):
        Checkpoint.read(ours.replace(below, forged), ORIGIN, [KEY.public])


def test_another_key_and_another_origin_are_refused():
    mine = checkpoint(12).to_bytes()
    with pytest.raises(UntrustedKey):
        Checkpoint.read(mine, ORIGIN, [OTHER.public])
    with pytest.raises(UntrustedKey):
        Checkpoint.read(mine, ORIGIN, [])
    with pytest.raises(OtherLog):
        Checkpoint.read(mine, "example.com/other", [KEY.public])
    renamed = mine.replace(ORIGIN.encode(), b"example.com/other", 1)
    with pytest.raises(UntrustedKey):
        Checkpoint.read(renamed, "example.com/other", [KEY.public])


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
        Checkpoint.read(signed(text), ORIGIN, [KEY.public])


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
        lambda data: data + "— a QUJDREU=\n".encode() * 80_000,
        lambda data: b"\xff" + data,
        lambda data: b"",
    ],
)
def test_notes_of_another_form_are_refused(change):
    ours = checkpoint(12).to_bytes()
    changed = change(ours)
    if changed == ours:
        pytest.fail("nothing was changed")
    with pytest.raises(EvidenceError):
        Checkpoint.read(changed, ORIGIN, [KEY.public])


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\nb", "a\u00a0b", "\ud800", "a\x00"])
def test_names_that_no_note_can_have(name):
    with pytest.raises(EvidenceError):
        Checkpoint.sign(name, 0, tree_hash([]), KEY)
