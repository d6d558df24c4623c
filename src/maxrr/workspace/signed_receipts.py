"""Receipts as they are handed out: a statement about the model in a signed envelope, or the text of one that is not
signed. The log has the hash of the statement, or of the text.
"""

import hashlib
from base64 import b64encode

from maxrr.evidence import Envelope, EnvelopeSignature, SigningKey, Statement, Subject
from maxrr.evidence.envelopes import IN_TOTO, RECEIPT_TYPE, pre_authentication_encoding


class Signer:
    """Makes receipts to hand out, with a key or without."""

    def __init__(self, key: SigningKey | None) -> None:
        self.key = key
        if key is not None:
            empty = Envelope(b"", IN_TOTO, (EnvelopeSignature(key.public.id, b""),)).to_bytes()
            self.envelope = empty.replace(b'""', b'"%b"')  # where payload and signature stand

    def handed(self, text: str, model_after: str) -> tuple[bytes, bytes]:
        """A receipt to hand out, from its text and the model that it is about; and what the log has of it."""
        if self.key is None:
            return text.encode(), hashlib.sha256(text.encode()).digest()
        payload = statement_bytes(text, model_after)
        signature = self.key.sign(pre_authentication_encoding(IN_TOTO, payload))
        return self.envelope % (b64encode(payload), b64encode(signature)), hashlib.sha256(payload).digest()


NOBODY = "0" * 64
BEFORE, AFTER = Statement((Subject("model", NOBODY),), RECEIPT_TYPE, {}).to_bytes().split(b"{}")


def statement_bytes(text: str, model_after: str) -> bytes:
    """The statement that a receipt is: about the model after the request, what the receipt says.

    The receipt's text, which is canonical JSON, is put where the statement says it: it is not read again.
    """
    return BEFORE + text.encode() + AFTER.replace(NOBODY.encode(), model_after.encode())
