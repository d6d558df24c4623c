"""Receipts, and what was found about them, as statements that can be signed, and read again.

A receipt is a statement about the model after the request. A replay or an audit is a statement about a receipt: about
the SHA-256 of the statement that the receipt is, or of its text where nobody signed it.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Self

from maxrr.errors import Contradiction, EvidenceError
from maxrr.evidence import Envelope, PublicKey, SigningKey
from maxrr.evidence.envelopes import RECEIPT_TYPE, Statement, Subject
from maxrr.evidence.exact_text import canonical_json, read_json
from maxrr.unlearning.receipts import Receipt

if TYPE_CHECKING:  # it needs PyTorch
    from maxrr.unlearning.replaying import Replay

REPLAY_TYPE = "https://maxrr.dev/replay/v1"
AUDIT_TYPE = "https://maxrr.dev/audit/v1"
MODEL, RECEIPT = "model", "receipt"  # what statements are about


@dataclass(frozen=True)
class HandedReceipt:
    """A receipt as it is handed out: in an envelope, or as a text of its own.

    Attributes
    ----------
    receipt : Receipt
        What it says.
    envelope : Envelope or None
        Who signed it, which `verify` looks at; None where nobody did.
    """

    receipt: Receipt
    envelope: Envelope | None = None

    @classmethod
    def sign(cls, receipt: Receipt, key: SigningKey) -> Self:
        """Sign a receipt.

        Parameters
        ----------
        receipt : Receipt
            What was done.
        key : SigningKey
            Who says so.

        Returns
        -------
        HandedReceipt
            The receipt in its envelope.
        """
        return cls(receipt, Envelope.sign(receipt_statement(receipt), key))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a receipt that was handed out. No signature is verified yet.

        Parameters
        ----------
        data : bytes
            An envelope as JSON, or the text of a receipt.

        Returns
        -------
        HandedReceipt
            What was read.

        Raises
        ------
        ValueError
            It is neither, or the statement in the envelope is not a receipt.
        """
        if not is_envelope(data):
            return cls(Receipt.from_json(data.decode("utf-8-sig")))
        envelope = Envelope.from_bytes(data)
        return cls(receipt_in(Statement.from_bytes(envelope.payload)), envelope)

    def to_bytes(self) -> bytes:
        """The receipt as a file has it.

        Returns
        -------
        bytes
            The envelope, or the text.
        """
        return self.receipt.to_json().encode() if self.envelope is None else self.envelope.to_bytes()

    def verify(self, keys: Sequence[PublicKey]) -> None:
        """Refuse the receipt if none of these keys has signed it.

        Parameters
        ----------
        keys : sequence of PublicKey
            The keys that are trusted.

        Raises
        ------
        EvidenceError
            It is not signed, not by one of these keys, or was changed.
        """
        if self.envelope is None:
            raise EvidenceError("it is not signed")
        if receipt_in(self.envelope.verify(keys)) != self.receipt:
            raise Contradiction("the envelope has another receipt")

    @property
    def sha256(self) -> str:
        """The name that the log and statements about the receipt have for it.

        It is the SHA-256 of the signed statement's bytes, or of the receipt's text where nobody signed it.
        """
        said = self.receipt.to_json().encode() if self.envelope is None else self.envelope.payload
        return hashlib.sha256(said).hexdigest()


def is_envelope(data: bytes) -> bool:
    """Whether these bytes are meant to be an envelope, and not a receipt or a report by itself."""
    try:
        return "payloadType" in read_json(data, "the file")
    except (EvidenceError, TypeError):
        return False


def receipt_statement(receipt: Receipt) -> Statement:
    """The statement that a receipt is: about the model after the request, all that the receipt says.

    Parameters
    ----------
    receipt : Receipt
        The receipt.

    Returns
    -------
    Statement
        What is signed.
    """
    return Statement((Subject(MODEL, receipt.model_after),), RECEIPT_TYPE, receipt._plain())


def receipt_in(statement: Statement) -> Receipt:
    """The receipt that a statement is.

    Parameters
    ----------
    statement : Statement
        What `receipt_statement` gave.

    Returns
    -------
    Receipt
        The receipt.

    Raises
    ------
    EvidenceError
        The statement is not a receipt, or about another model than its receipt.
    ValueError
        What it says is no receipt that can be read.
    """
    if statement.predicate_type != RECEIPT_TYPE:
        raise EvidenceError(f"the statement is not a receipt: it is of the type {statement.predicate_type[:80]}")
    receipt = Receipt.from_json(canonical_json(dict(statement.predicate)).decode())
    if statement.subjects != (Subject(MODEL, receipt.model_after),):
        raise Contradiction("the statement is about another model than its receipt")
    return receipt


def replay_statement(replay: "Replay", handed: HandedReceipt) -> Statement:
    """What came out of a replay, as a statement about the receipt.

    Parameters
    ----------
    replay : Replay
        What came out.
    handed : HandedReceipt
        The receipt that was replayed.

    Returns
    -------
    Statement
        What can be signed, by the operator or by whoever replayed it: the fields of the replay. Where the largest
        difference is no number, it is null.
    """
    largest = replay.largest_difference
    said = asdict(replay) | {"largest_difference": float(largest) if math.isfinite(largest) else None}
    return about_receipt(handed, REPLAY_TYPE, json.dumps(said))


def about_receipt(handed: HandedReceipt, kind: str, said: str) -> Statement:
    """A statement about a receipt: of a predicate type, saying what a JSON object says."""
    return Statement((Subject(RECEIPT, handed.sha256),), kind, read_json(said.encode(), "what is said of a receipt"))


def check_about(envelope: Envelope, handed: HandedReceipt, keys: Sequence[PublicKey]) -> Statement:
    """Read a signed replay or audit of a receipt.

    Parameters
    ----------
    envelope : Envelope
        What was signed.
    handed : HandedReceipt
        The receipt that it must be about.
    keys : sequence of PublicKey
        The keys that are trusted.

    Returns
    -------
    Statement
        What is said about the receipt.

    Raises
    ------
    EvidenceError
        It is not signed by one of the keys, is no replay or audit, or is about another receipt.
    """
    statement = envelope.verify(keys)
    if statement.predicate_type not in (REPLAY_TYPE, AUDIT_TYPE):
        raise EvidenceError(f"it is no replay and no audit, but of the type {statement.predicate_type[:80]}")
    if statement.subjects != (Subject(RECEIPT, handed.sha256),):
        raise EvidenceError("it is about another receipt")
    return statement
