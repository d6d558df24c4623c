"""Signed statements: read by the reference tools, and refused when anything is changed."""

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf import json_format
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement as ReferenceStatement
from securesystemslib.dsse import Envelope as ReferenceEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

from maxrr.errors import EvidenceError, UntrustedKey, WrongSignature
from maxrr.evidence import Envelope, SigningKey
from maxrr.evidence.envelopes import IN_TOTO, Statement, Subject, pre_authentication_encoding
from tests.evidence.logs import flipped

DIGEST = "0123456789abcdef" * 4
STATEMENT = Statement(
    (Subject("model", DIGEST), Subject("the one before", DIGEST[::-1])),
    "https://example.com/receipt/v1",
    {"guarantee": "exact-refit", "ε": 1e-09, "records": 3, "by": ["Zoë", None, True]},
)
SEED = bytes(range(32))
KEY, OTHER = SigningKey(Ed25519PrivateKey.from_private_bytes(SEED)), SigningKey.generate()


def reference_key(key):
    return SSlibKey(key.public.id, "ed25519", "ed25519", {"public": key.public.raw.hex()})


def test_what_is_signed_is_the_example_of_the_specification():
    assert pre_authentication_encoding("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pre_authentication_encoding("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "


def test_the_reference_reads_and_verifies_ours():
    envelope = Envelope.sign(STATEMENT, KEY)
    reference = ReferenceEnvelope.from_dict(json.loads(envelope.to_bytes()))
    assert reference.pae() == pre_authentication_encoding(IN_TOTO, envelope.payload)
    assert set(reference.verify([reference_key(KEY), reference_key(OTHER)], 1)) == {KEY.public.id}
    with pytest.raises(VerificationError):
        reference.verify([reference_key(SigningKey.generate())], 1)


def test_ours_reads_and_verifies_the_reference():
    reference = ReferenceEnvelope(STATEMENT.to_bytes(), IN_TOTO, {})
    reference.sign(CryptoSigner(Ed25519PrivateKey.from_private_bytes(SEED), reference_key(KEY)))
    envelope = Envelope.from_bytes(json.dumps(reference.to_dict(), indent=2).encode())
    assert envelope.verify([KEY.public]) == STATEMENT
    assert envelope == Envelope.sign(STATEMENT, KEY)


def test_the_reference_reads_the_statement():
    message = json_format.Parse(STATEMENT.to_bytes(), statement_pb2.Statement())
    ReferenceStatement.copy_from_pb(message).validate()
    assert [(each.name, dict(each.digest)) for each in message.subject] == [
        (each.name, {"sha256": each.sha256}) for each in STATEMENT.subjects
    ]
    assert message.predicate_type == STATEMENT.predicate_type
    assert json_format.MessageToDict(message.predicate) == STATEMENT.predicate


def test_round_trip():
    envelope = Envelope.sign(STATEMENT, KEY)
    assert Envelope.from_bytes(envelope.to_bytes()) == envelope
    assert envelope.verify([OTHER.public, KEY.public]) == STATEMENT
    assert Statement.from_bytes(STATEMENT.to_bytes()) == STATEMENT
    assert Statement.from_bytes(STATEMENT.to_bytes()).to_bytes() == STATEMENT.to_bytes()


def test_every_bit_counts():
    signed = Envelope.sign(STATEMENT, KEY).to_bytes()
    for bit in range(8 * len(signed)):
        with pytest.raises(EvidenceError):
            Envelope.from_bytes(flipped(signed, bit)).verify([KEY.public])


def test_the_payload_is_verified_as_it_is():
    """Nobody's other spelling of the same statement is taken for the signed one, and ours is not asked of others."""
    spaced = json.dumps(json.loads(STATEMENT.to_bytes()), indent=1).encode()
    signature = KEY.sign(pre_authentication_encoding(IN_TOTO, spaced))
    envelope = Envelope(spaced, IN_TOTO, KEY.public.id, signature)
    assert envelope.verify([KEY.public]) == STATEMENT
    with pytest.raises(EvidenceError, match="it was changed"):
        Envelope(STATEMENT.to_bytes(), IN_TOTO, KEY.public.id, signature).verify([KEY.public])


def test_signatures_of_others_are_refused():
    envelope = Envelope.sign(STATEMENT, KEY)
    for keys in ([], [OTHER.public]):
        with pytest.raises(UntrustedKey):
            envelope.verify(keys)
    claimed = Envelope(envelope.payload, IN_TOTO, KEY.public.id, Envelope.sign(STATEMENT, OTHER).signature)
    for forged in (claimed, Envelope(envelope.payload, IN_TOTO, KEY.public.id, b"none")):
        with pytest.raises(WrongSignature):
            forged.verify([KEY.public])


def test_a_signed_payload_of_another_type_is_no_statement():
    signature = KEY.sign(pre_authentication_encoding("text/plain", STATEMENT.to_bytes()))
    envelope = Envelope(STATEMENT.to_bytes(), "text/plain", KEY.public.id, signature)
    with pytest.raises(EvidenceError, match="not of the type"):
        envelope.verify([KEY.public])


def envelope_with(change):
    said = json.loads(Envelope.sign(STATEMENT, KEY).to_bytes())
    change(said)
    return json.dumps(said).encode()


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said.update(more=1),
        lambda said: said.pop("payloadType"),
        lambda said: said.update(signatures=[]),
        lambda said: said.update(signatures={}),
        lambda said: said.update(signatures=said["signatures"] * 2),
        lambda said: said["signatures"].append(dict(said["signatures"][0], keyid="another")),
        lambda said: said["signatures"][0].pop("keyid"),
        lambda said: said["signatures"][0].update(keyid=7),
        lambda said: said["signatures"][0].update(cert=""),
        lambda said: said["signatures"][0].update(sig=said["signatures"][0]["sig"].rstrip("=")),
        lambda said: said.update(payload=said["payload"] + "\n"),
        lambda said: said.update(payload=None),
        lambda said: said.update(payloadType="\ud800"),
        lambda said: said.update(payloadType=["a"]),
    ],
)
def test_envelopes_of_another_form_are_refused(change):
    with pytest.raises(EvidenceError):
        Envelope.from_bytes(envelope_with(change))


def test_a_name_twice_is_refused():
    signed = Envelope.sign(STATEMENT, KEY).to_bytes()
    payload = base64.b64encode(b"{}")
    with pytest.raises(EvidenceError, match="one name twice"):
        Envelope.from_bytes(signed.replace(b'{"payload":', b'{"payload":"' + payload + b'","payload":', 1))


def statement_with(change):
    said = json.loads(STATEMENT.to_bytes())
    change(said)
    return json.dumps(said).encode()


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said.update(more=1),
        lambda said: said.update(_type="https://in-toto.io/Statement/v0.1"),
        lambda said: said.update(subject=[]),
        lambda said: said.update(subject={}),
        lambda said: said.update(subject=["a"]),
        lambda said: said.update(subject=said["subject"] + said["subject"][:1]),
        lambda said: said["subject"][0].pop("name"),
        lambda said: said["subject"][0].update(name=""),
        lambda said: said["subject"][0].update(name=1),
        lambda said: said["subject"][0].update(uri="a:b"),
        lambda said: said["subject"][0].update(digest={}),
        lambda said: said["subject"][0].update(digest={"sha256": DIGEST.upper()}),
        lambda said: said["subject"][0].update(digest={"sha256": DIGEST + "\n"}),
        lambda said: said["subject"][0].update(digest={"sha256": DIGEST, "sha1": "00"}),
        lambda said: said["subject"][0].update(digest={"sha256": None}),
        lambda said: said.update(predicateType=""),
        lambda said: said.update(predicateType="no scheme"),
        lambda said: said.update(predicateType=None),
        lambda said: said.update(predicate=[]),
        lambda said: said.pop("predicate"),
    ],
)
def test_statements_of_another_form_are_refused(change):
    with pytest.raises(EvidenceError):
        Statement.from_bytes(statement_with(change))
