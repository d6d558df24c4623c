"""Checkpoints: what the operator of a log signs. They are signed notes of C2SP, with one signature."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from maxrr.errors import EvidenceError, OtherLog, UntrustedKey, WrongSignature
from maxrr.evidence.exact_text import from_base64, to_base64
from maxrr.evidence.signing import NEWER, PublicKey, SigningKey, require_signing_key

ED25519 = b"\x01"  # the type of signature
LARGEST_CHECKPOINT = 1 << 20  # bytes of a file
NAME = r"[^\s\x00-\x1f+]+"  # of a log: no spaces, and no plus signs
DASH = "\N{EM DASH}"
FORM = re.compile(rf"({NAME})\n(0|[1-9][0-9]{{0,17}})\n([A-Za-z0-9+/=]+)\n\n{DASH} ({NAME}) ([A-Za-z0-9+/=]+)\n")


def note_key_id(name: str, key: PublicKey) -> bytes:
    """The four bytes that stand for a key in the signatures of notes.

    Parameters
    ----------
    name : str
        Under which name the key signs.
    key : PublicKey
        The key.

    Returns
    -------
    bytes
        The beginning of the SHA-256 of name, line feed, type of signature and key.
    """
    return hashlib.sha256(name.encode() + b"\n" + ED25519 + key.raw).digest()[:4]


@dataclass(frozen=True)
class Checkpoint:
    """A log at one moment, signed. Make one with `sign` or `read`: both leave no doubt who signed it.

    Attributes
    ----------
    origin : str
        The name of the log, under which its key signs.
    size : int
        The number of entries.
    root : bytes
        The root of the tree over them, by RFC 6962.
    key : PublicKey
        The key that signed it.
    signature : bytes
        The signature.
    """

    origin: str
    size: int
    root: bytes
    key: PublicKey
    signature: bytes

    @classmethod
    def sign(cls, origin: str, size: int, root: bytes, key: SigningKey) -> Self:
        """Sign the state of a log.

        Parameters
        ----------
        origin : str
            The name of the log.
        size : int
            The number of entries.
        root : bytes
            The root over them.
        key : SigningKey
            The log's key.

        Returns
        -------
        Checkpoint
            The signed state.
        """
        require_signing_key(key)
        if not re.fullmatch(NAME, origin):
            raise EvidenceError(f"{origin[:80]!r} is no name for a log: use letters without spaces or plus signs")
        return cls(origin, size, root, key.public, key.sign(_text(origin, size, root)))

    @classmethod
    def read(cls, data: bytes, origin: str | None, keys: Sequence[PublicKey]) -> Self:
        """Read a checkpoint and verify who signed it.

        Parameters
        ----------
        data : bytes
            The signed note.
        origin : str or None
            The name that the log must have; None for whichever name it says.
        keys : sequence of PublicKey
            The log's keys: the one of today, and those that it had before. One of them must have signed.

        Returns
        -------
        Checkpoint
            What was signed.

        Raises
        ------
        EvidenceError
            It is no checkpoint, is of another log, or is not signed by one of the keys.
        """
        try:
            found = FORM.fullmatch(data.decode()) if len(data) <= LARGEST_CHECKPOINT else None
        except UnicodeDecodeError:
            found = None
        if found is None:
            raise EvidenceError("this is no checkpoint: the log's name, its size, its root, and one signature below")
        said, size, encoded_root, name, signed = found.groups()
        if origin not in (None, said):
            raise OtherLog(f"the checkpoint is of another log: {said[:80]!r} instead of {origin!r}")
        root = from_base64(encoded_root, "the checkpoint's root", length=32)
        content = from_base64(signed, "the checkpoint's signature")
        named = [key for key in keys if name == said and note_key_id(said, key) == content[:4]]
        if not named:
            raise UntrustedKey(f"the checkpoint is not signed by a key of {said} that is trusted: {NEWER}")
        text, signature = _text(said, int(size), root), content[4:]
        key = next((key for key in named if key.verifies(signature, text)), None)  # two may share their four bytes
        if key is None:
            raise WrongSignature(f"the signature of {said} is not of this checkpoint: it was changed")
        return cls(said, int(size), root, key, signature)

    def to_bytes(self) -> bytes:
        """The checkpoint as a file has it.

        Returns
        -------
        bytes
            The signed note.
        """
        signed = to_base64(note_key_id(self.origin, self.key) + self.signature)
        return _text(self.origin, self.size, self.root) + f"\n{DASH} {self.origin} {signed}\n".encode()


def _text(origin: str, size: int, root: bytes) -> bytes:
    """The bytes that are signed."""
    try:
        return f"{origin}\n{size}\n{to_base64(root)}\n".encode()
    except UnicodeEncodeError:
        raise EvidenceError("the name of a log is not Unicode") from None
