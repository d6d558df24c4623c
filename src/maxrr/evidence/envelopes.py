"""A signed payload in a DSSE envelope (Dead Simple Signing Envelope, version 1)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypedDict

from maxrr.errors import EvidenceError, UntrustedKey, WrongSignature
from maxrr.evidence.exact_text import canonical_json, from_base64, read_as, read_json, to_base64
from maxrr.evidence.signing import NEWER, PublicKey, SigningKey, require_signing_key

# What is said of a model, by its digest: a Statement of in-toto, version 1.


STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
RECEIPT_TYPE = "https://maxrr.dev/receipt/v1"  # the predicate's, where a receipt is what is said
NOTHING_TYPE = "https://maxrr.dev/nothing-here/v1"  # where it is that a model has nothing of a person or a record


@dataclass(frozen=True)
class Subject:
    """What a statement is about.

    Attributes
    ----------
    name : str
        What it is called. It has a meaning within the statement only.
    sha256 : str
        The SHA-256 of its bytes, in 64 lower-case hexadecimal digits: this is what identifies it.
    """

    name: str
    sha256: str

    def __post_init__(self) -> None:
        if not self.name:
            raise EvidenceError("a subject has a name")
        if not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise EvidenceError("a subject's SHA-256 has 64 lower-case hexadecimal digits")


class _Digest(TypedDict):
    sha256: str


class _Subject(TypedDict):
    name: str
    digest: _Digest


class _Statement(TypedDict):
    _type: str
    subject: list[_Subject]
    predicateType: str
    predicate: dict[str, Any]


@dataclass(frozen=True)
class Statement:
    """A predicate about one or several subjects.

    Attributes
    ----------
    subjects : tuple of Subject
        What it is about; no two of one name.
    predicate_type : str
        The URI that says how the predicate is to be read.
    predicate : mapping
        What is said, as JSON can say it.
    """

    subjects: tuple[Subject, ...]
    predicate_type: str
    predicate: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not self.subjects or len({subject.name for subject in self.subjects}) < len(self.subjects):
            raise EvidenceError("a statement has at least one subject, and no two of one name")
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:\S+", self.predicate_type):
            raise EvidenceError("a statement's predicate type is a URI")

    def to_bytes(self, predicate: bytes | None = None) -> bytes:
        """The statement as JSON, in the one form that is written here.

        Parameters
        ----------
        predicate : bytes, optional
            The canonical JSON of the predicate, where that was made already.

        Returns
        -------
        bytes
            Names sorted, no spaces, UTF-8.
        """
        subjects = [{"name": each.name, "digest": {"sha256": each.sha256}} for each in self.subjects]
        around = canonical_json(
            {"_type": STATEMENT_TYPE, "subject": subjects, "predicateType": self.predicate_type, "predicate": None}
        )
        said = canonical_json(dict(self.predicate)) if predicate is None else predicate
        return around.replace(b'"predicate":null', b'"predicate":' + said, 1)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a statement, in whatever order and spacing its JSON is.

        Parameters
        ----------
        data : bytes
            The JSON text: the payload of an envelope whose signature was verified.

        Returns
        -------
        Statement
            What it says.

        Raises
        ------
        EvidenceError
            It is no such statement, has fields that are not known here, or one name twice.
        """
        said = read_as(_Statement, read_json(data, "the statement"), "the statement")
        if said["_type"] != STATEMENT_TYPE:
            raise EvidenceError(f"the statement is not of the type {STATEMENT_TYPE}")
        subjects = tuple(Subject(each["name"], each["digest"]["sha256"]) for each in said["subject"])
        return cls(subjects, said["predicateType"], said["predicate"])


IN_TOTO = "application/vnd.in-toto+json"


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: DSSE's PAE of a payload and its type.

    Parameters
    ----------
    payload_type : str
        How the payload is to be read.
    payload : bytes
        What is signed, as it is.

    Returns
    -------
    bytes
        Both with their lengths, so that no other pair gives the same.

    Examples
    --------
    >>> pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
    b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


class _Signature(TypedDict):
    keyid: str
    sig: str


class _Envelope(TypedDict):
    payload: str
    payloadType: str
    signatures: list[_Signature]


@dataclass(frozen=True)
class Envelope:
    """A payload and who signed it. Its payload is not to be believed before `verify` has returned it.

    Attributes
    ----------
    payload : bytes
        What is signed.
    payload_type : str
        How it is to be read.
    key_id : str
        Which key is said to have signed: `PublicKey.id`.
    signature : bytes
        The signature.
    """

    payload: bytes
    payload_type: str
    key_id: str
    signature: bytes

    @classmethod
    def sign(cls, statement: Statement, key: SigningKey, predicate: bytes | None = None) -> Self:
        """Sign a statement.

        Parameters
        ----------
        statement : Statement
            What is said.
        key : SigningKey
            Who says it.
        predicate : bytes, optional
            The canonical JSON of the statement's predicate, where that was made already.

        Returns
        -------
        Envelope
            The signed statement.
        """
        require_signing_key(key)
        payload = statement.to_bytes(predicate)
        return cls(payload, IN_TOTO, key.public.id, key.sign(pre_authentication_encoding(IN_TOTO, payload)))

    def verify(self, keys: Sequence[PublicKey]) -> Statement:
        """What is said in the envelope, if one of these keys signed it.

        Parameters
        ----------
        keys : sequence of PublicKey
            The keys that are trusted.

        Returns
        -------
        Statement
            Read from the bytes whose signature was verified.

        Raises
        ------
        EvidenceError
            None of the keys is named, the signature is not that key's of this payload, or the payload is no statement.
        """
        key = next((key for key in keys if key.id == self.key_id), None)
        if key is None:
            raise UntrustedKey(f"the envelope is not signed by a key that is trusted: {NEWER}")
        if not key.verifies(self.signature, pre_authentication_encoding(self.payload_type, self.payload)):
            raise WrongSignature(f"the signature of the key {self.key_id} is not of this envelope: it was changed")
        if self.payload_type != IN_TOTO:
            raise EvidenceError(f"the envelope's payload is not of the type {IN_TOTO}")
        return Statement.from_bytes(self.payload)

    def to_bytes(self) -> bytes:
        """The envelope as JSON.

        Returns
        -------
        bytes
            Names sorted, no spaces, UTF-8.
        """
        signatures = [{"keyid": self.key_id, "sig": to_base64(self.signature)}]
        return canonical_json(
            {"payload": to_base64(self.payload), "payloadType": self.payload_type, "signatures": signatures}
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read an envelope; nothing in it is verified yet.

        Parameters
        ----------
        data : bytes
            Its JSON text, in whatever order and spacing.

        Returns
        -------
        Envelope
            What was read.

        Raises
        ------
        EvidenceError
            It is no such envelope, has fields that are not known here, more signatures than one, or Base64 that is not
            exact.
        """
        said = read_as(_Envelope, read_json(data, "the envelope"), "the envelope")
        if len(said["signatures"]) != 1:
            raise EvidenceError(f"an envelope has one signature, not {len(said['signatures'])}")
        (signed,) = said["signatures"]
        payload = from_base64(said["payload"], "the envelope's payload")
        return cls(payload, said["payloadType"], signed["keyid"], from_base64(signed["sig"], "its signature"))
