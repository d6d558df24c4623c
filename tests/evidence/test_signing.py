"""Keys: RFC 8032's, files that others can read, and nothing private in what is shown."""

import copy
import hashlib
import pickle
import traceback

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from maxrr.errors import EvidenceError, NotAKey
from maxrr.evidence import Checkpoint, Envelope, PublicKey, SigningKey
from maxrr.evidence.envelopes import Statement, Subject
from maxrr.evidence.log import LogWriter

RFC_8032 = [  # section 7.1, the first two: secret key, public key, message, signature
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe2"
        "4655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302ae"
        "eb00d291612bb0c00",
    ),
]


@pytest.mark.parametrize(("secret", "public", "message", "signature"), RFC_8032)
def test_keys_and_signatures_of_the_rfc(secret, public, message, signature):
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secret)))
    assert key.public == PublicKey(bytes.fromhex(public))
    assert key.sign(bytes.fromhex(message)).hex() == signature
    assert key.public.verifies(bytes.fromhex(signature), bytes.fromhex(message))
    assert not key.public.verifies(bytes.fromhex(signature), bytes.fromhex(message) + b" ")
    assert not key.public.verifies(bytes.fromhex(signature)[:-1], bytes.fromhex(message))


def test_the_id_is_that_of_the_key_in_der():
    public = SigningKey.generate().public
    der = serialization.load_pem_public_key(public.pem).public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert public.id == hashlib.sha256(der).hexdigest()


def test_both_halves_in_files(tmp_path):
    key = SigningKey.generate()
    key.save(tmp_path / "key")
    (tmp_path / "key.pub").write_bytes(key.public.pem)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "key").read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----\n")
    assert (
        SigningKey.load(tmp_path / "key").public
        == key.public
        == PublicKey.from_pem((tmp_path / "key.pub").read_bytes())
    )
    with pytest.raises(EvidenceError, match="never written over"):
        SigningKey.generate().save(tmp_path / "key")
    assert SigningKey.load(tmp_path / "key").public == key.public


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o666])
def test_a_private_key_that_others_can_use_is_refused(tmp_path, mode):
    SigningKey.generate().save(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(EvidenceError, match=rf"{tmp_path}/key .*{mode:o}.*chmod 600"):
        SigningKey.load(tmp_path / "key")


def test_from_the_environment(monkeypatch):
    monkeypatch.delenv("MAXRR_SIGNING_KEY", raising=False)
    assert SigningKey.from_environment() is None
    secret, public, _, _ = RFC_8032[0]
    pem = pem_of(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secret)))
    monkeypatch.setenv("MAXRR_SIGNING_KEY", pem.decode())
    assert SigningKey.from_environment().public.raw.hex() == public


def pem_of(key, encryption=None):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption or serialization.NoEncryption()
    )


def damaged():
    pem = pem_of(Ed25519PrivateKey.generate()).decode()
    body = pem.split("\n")[1]
    return {
        "cut": pem.replace(body, body[:-8]),
        "no PEM": body,
        "another curve": pem_of(ec.generate_private_key(ec.SECP256R1())).decode(),
        "password": pem_of(Ed25519PrivateKey.generate(), serialization.BestAvailableEncryption(b"p")).decode(),
        "empty": "",
        "public": SigningKey.generate().public.pem.decode(),
    }


@pytest.mark.parametrize("what", damaged())
def test_errors_show_nothing_of_a_key(tmp_path, monkeypatch, what):
    text = damaged()[what]
    (tmp_path / "key").write_text(text)
    (tmp_path / "key").chmod(0o600)
    monkeypatch.setenv("MAXRR_SIGNING_KEY", text)
    lines = [line for line in text.split("\n") if line and not line.startswith("-----")]
    for load in (lambda: SigningKey.load(tmp_path / "key"), SigningKey.from_environment):
        with pytest.raises(EvidenceError) as caught:
            load()
        shown = "".join(traceback.format_exception(caught.value))
        assert not any(line in shown for line in lines)


@pytest.mark.parametrize("what", sorted(damaged().keys() - {"public"}))
def test_what_is_no_public_key_is_refused(tmp_path, what):
    (tmp_path / "key.pub").write_text(damaged()[what])
    with pytest.raises(NotAKey):
        PublicKey.from_pem((tmp_path / "key.pub").read_bytes(), "key.pub")
    with pytest.raises(EvidenceError, match="32 bytes"):
        PublicKey(b"short")


def test_a_private_key_shows_only_its_id():
    secret = bytes.fromhex(RFC_8032[0][0])
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(secret))
    for shown in (repr(key), str(key), f"{key}", repr([key]), repr(key.public)):
        assert secret.hex() not in shown
        assert repr(secret) not in shown
    assert key.public.id in repr(key)
    assert not hasattr(key, "__dict__")
    for copying in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="is not copied"):
            copying(key)


def test_what_is_no_key_signs_nothing_and_is_not_shown(tmp_path):
    statement = Statement((Subject("model", "0" * 64),), "https://example.com/receipt/v1", {})
    writer = LogWriter.create(tmp_path / "log", "example.com/maxrr", SigningKey.generate())
    secret = "-----BEGIN PRIVATE KEY-----"
    for taken in (
        lambda: Envelope.sign(statement, secret),
        lambda: Checkpoint.sign("example.com/maxrr", 0, bytes(32), secret),
        lambda: LogWriter.create(tmp_path / "new", "example.com/maxrr", secret),
        lambda: LogWriter.open(writer.folder, "example.com/maxrr", secret),
    ):
        with pytest.raises(TypeError, match=r"SigningKey.load\(path\)") as told:
            taken()
        assert secret not in str(told.value)
    assert not (tmp_path / "new").exists()


def test_who_lacks_a_newer_key_is_told_how_to_get_it():
    key, newer = SigningKey.generate(), SigningKey.generate()
    signed = Envelope.sign(Statement((Subject("model", "0" * 64),), "https://example.com/receipt/v1", {}), newer)
    with pytest.raises(EvidenceError, match="maxrr verify NEW"):
        signed.verify([key.public])
    with pytest.raises(EvidenceError, match="maxrr verify NEW"):
        Checkpoint.read(Checkpoint.sign("example.com/maxrr", 0, bytes(32), newer).to_bytes(), None, [key.public])
