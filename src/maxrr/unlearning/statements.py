"""Receipts as statements that can be signed, and read again: statements about the model after the request."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from maxrr.errors import Contradiction, EvidenceError, UnreadableFile
from maxrr.evidence import Envelope, PublicKey, SigningKey
from maxrr.evidence.envelopes import NOTHING_TYPE, RECEIPT_TYPE, Statement, Subject
from maxrr.evidence.exact_text import canonical_json, read_json
from maxrr.unlearning.receipts import Receipt

MODEL = "model"  # what statements are about


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
    def sign(cls, receipt: Receipt, key: SigningKey, text: str | None = None) -> Self:
        """Sign a receipt.

        Parameters
        ----------
        receipt : Receipt
            What was done.
        key : SigningKey
            Who says so.
        text : str, optional
            The receipt's text (`Receipt.to_json`), where that was made already.

        Returns
        -------
        HandedReceipt
            The receipt in its envelope.
        """
        return cls(receipt, Envelope.sign(receipt_statement(receipt), key, text.encode() if text else None))

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
        """The hash that stands for the receipt in the log.

        It is the SHA-256 of the signed statement's bytes, or of the receipt's text where nobody signed it.
        """
        said = self.receipt.to_json().encode() if self.envelope is None else self.envelope.payload
        return hashlib.sha256(said).hexdigest()


def is_envelope(data: bytes) -> bool:
    """Whether these bytes look like an envelope, and not like a receipt by itself."""
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


# Answers to people of whom nothing is there


def answer_in(content: bytes) -> tuple[Envelope | None, Statement]:
    """Read the statement that nothing of a person or record is in a model, and its envelope if it has one."""
    envelope = Envelope.from_bytes(content) if is_envelope(content) else None
    statement = Statement.from_bytes(content if envelope is None else envelope.payload)
    if statement.predicate_type != NOTHING_TYPE:
        raise EvidenceError(f"the statement is no answer: it is of the type {statement.predicate_type[:80]}")
    return envelope, statement


def whom(answer: Statement) -> str:
    """Name the people or records that an answer is about."""
    asked = [answer.predicate.get(name, []) for name in ("subjects", "ids")]
    if not all(isinstance(each, list) for each in asked):
        raise UnreadableFile("the answer names nobody by a list of subjects or ids")
    return ", ".join(str(each) for some in asked for each in some)


def answer_in_words(answer: Statement) -> str:
    """Say what an answer says."""
    return (
        f"Nothing of {whom(answer)} was in the model {answer.subjects[0].sha256[:12]}… on "
        f"{answer.predicate.get('time')}, and nothing of it was forgotten there since the last fit."
    )
