"""`receipts-<token>.jsonl`: one line for each receipt, signed where the workspace has a key.

A signed one is a statement about the model in a DSSE envelope; of one that is not, the line has its text. The log has
the hash of the statement, or of the text.
"""

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

from maxrr.errors import EvidenceError
from maxrr.evidence import Envelope, EnvelopeSignature, PublicKey, SigningKey, Statement, Subject
from maxrr.evidence.envelopes import IN_TOTO, RECEIPT_TYPE, pre_authentication_encoding
from maxrr.evidence.exact_text import canonical_json, exactly, read_json, text
from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.statements import receipt_in
from maxrr.workspace.receipt_copies import UNSIGNED


@dataclass(frozen=True)
class KeptReceipt:
    """A line of the file.

    Attributes
    ----------
    content : bytes
        The line, without its end.
    receipt : Receipt
        What it says.
    signed : Envelope or None
        The envelope; None where it is not signed.
    """

    content: bytes
    receipt: Receipt
    signed: Envelope | None

    @classmethod
    def read(cls, content: bytes) -> "KeptReceipt":
        """Read a line; no signature is verified.

        A line that is neither is an `EvidenceError`, a receipt that is none a `ValueError`.
        """
        if content.startswith(UNSIGNED):
            said = text(exactly(read_json(content, "the line"), ("unsigned",), "the line")["unsigned"], "the receipt")
            return cls(content, Receipt.from_json(said), None)
        envelope = Envelope.from_bytes(content)
        return cls(content, receipt_in(Statement.from_bytes(envelope.payload)), envelope)

    @property
    def logged(self) -> bytes:
        """What the log has of it."""
        return logged(self.signed.payload if self.signed else self.receipt.to_json().encode())

    def verify(self, keys: Sequence[PublicKey]) -> None:
        """Refuse it if it is not signed by one of these keys."""
        if self.signed is None:
            raise EvidenceError(f"receipt {self.receipt.number} is not signed")
        self.signed.verify(keys)


class Signer:
    """Makes the lines of receipts, with a key or without."""

    def __init__(self, key: SigningKey | None) -> None:
        self.key = key
        if key is not None:
            empty = Envelope(b"", IN_TOTO, (EnvelopeSignature(key.public.id, b""),)).to_bytes()
            self.envelope = empty.replace(b'""', b'"%b"')  # where payload and signature stand

    def line(self, text: str, model_after: str) -> tuple[bytes, bytes]:
        """The line of a receipt, from its text and the model that it is about; and what the log has of it."""
        if self.key is None:
            return canonical_json({"unsigned": text}) + b"\n", logged(text.encode())
        payload = statement_bytes(text, model_after)
        signature = self.key.sign(pre_authentication_encoding(IN_TOTO, payload))
        return self.envelope % (b64encode(payload), b64encode(signature)) + b"\n", logged(payload)


NOBODY = "0" * 64
BEFORE, AFTER = Statement((Subject("model", NOBODY),), RECEIPT_TYPE, {}).to_bytes().split(b"{}")


def statement_bytes(text: str, model_after: str) -> bytes:
    """The statement that a receipt is: about the model after the request, what the receipt says.

    The receipt's text, which is canonical JSON, is put where the statement says it: it is not read again.
    """
    return BEFORE + text.encode() + AFTER.replace(NOBODY.encode(), model_after.encode())


def logged(said: bytes) -> bytes:
    """What the log has of a receipt: 32 bytes."""
    return hashlib.sha256(said).digest()
