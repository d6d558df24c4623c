"""Checkpoints: what the operator of a log signs, and what two of them say about each other."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from maxrr.errors import EvidenceError, OtherLog, UntrustedKey, WrongSignature
from maxrr.evidence.exact_text import from_base64, to_base64
from maxrr.evidence.signing import NEWER, PublicKey, SigningKey, require_signing_key

# Signed notes of C2SP: a text with the signatures of one or several keys below it.


ED25519 = b"\x01"  # the type of signature
DASH = "\N{EM DASH} "
MOST_SIGNATURES = 64


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


def require_name(name: str) -> None:
    """Refuse what cannot be the name of a key or the origin of a log."""
    if not name or "+" in name or any(sign.isspace() or sign < " " for sign in name):
        raise EvidenceError(f"{name[:80]!r} is no name for a log: use letters without spaces or plus signs")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise EvidenceError("the name of a log is not Unicode") from None


@dataclass(frozen=True)
class NoteSignature:
    """One signature below a note.

    Attributes
    ----------
    name : str
        The name of the key.
    key_id : bytes
        Its four bytes, see `note_key_id`.
    signature : bytes
        The signature, of whatever type the key is.
    """

    name: str
    key_id: bytes
    signature: bytes


@dataclass(frozen=True)
class Note:
    """A text and its signatures. The text is not to be believed before `verify` has returned.

    Attributes
    ----------
    text : str
        One or several lines, each with its line feed.
    signatures : tuple of NoteSignature
        In the order in which they stand there, those of unknown keys as well.
    """

    text: str
    signatures: tuple[NoteSignature, ...]

    @classmethod
    def sign(cls, text: str, name: str, key: SigningKey) -> Self:
        """Sign a text.

        Parameters
        ----------
        text : str
            One or several lines, each with its line feed.
        name : str
            Under which name the key signs.
        key : SigningKey
            The key.

        Returns
        -------
        Note
            The text with this one signature.
        """
        require_name(name)
        require_signing_key(key)
        return cls(text, (NoteSignature(name, note_key_id(name, key.public), key.sign(text.encode())),))

    def verify(self, name: str, keys: Sequence[PublicKey]) -> list[PublicKey]:
        """Refuse the note if none of these keys has signed it; pass over the signatures of others.

        Parameters
        ----------
        name : str
            Under which name the keys sign.
        keys : sequence of PublicKey
            The keys that are trusted.

        Returns
        -------
        list of PublicKey
            Those of them that have signed.

        Raises
        ------
        EvidenceError
            None of the keys has signed, or a signature that names one of them is not its own.
        """
        known: dict[bytes, list[PublicKey]] = {}
        for key in keys:  # two of them may share their four bytes
            known.setdefault(note_key_id(name, key), []).append(key)
        ours = [each for each in self.signatures if each.name == name and each.key_id in known]
        if not ours:
            raise UntrustedKey(f"the note is not signed by a key of {name} that is trusted: {NEWER}")
        signers: list[PublicKey] = []
        for each in ours:
            own = [key for key in known[each.key_id] if key.verifies(each.signature, self.text.encode())]
            if not own:
                raise WrongSignature(
                    f"the signature of {name} is not of this note: it was changed, or is of another key"
                )
            signers += own
        return signers

    def to_bytes(self) -> bytes:
        """The note as a file has it.

        Returns
        -------
        bytes
            The text, an empty line, and the signatures.
        """
        lines = [f"{DASH}{each.name} {to_base64(each.key_id + each.signature)}\n" for each in self.signatures]
        return f"{self.text}\n{''.join(lines)}".encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a note; nothing in it is verified yet.

        Parameters
        ----------
        data : bytes
            What `to_bytes` gave.

        Returns
        -------
        Note
            What was read.

        Raises
        ------
        EvidenceError
            It is no note.
        """
        try:
            said = data.decode()
        except UnicodeDecodeError:
            raise EvidenceError("the note is not UTF-8") from None
        if any(sign < " " and sign != "\n" for sign in said):
            raise EvidenceError("the note has control characters")
        text, blank, below = said.rpartition("\n\n")
        if not blank or not below.endswith("\n"):
            raise EvidenceError("the note has no signatures after an empty line, or does not end with a line")
        lines = below[:-1].split("\n")
        if len(lines) > MOST_SIGNATURES:
            raise EvidenceError(f"the note has more than {MOST_SIGNATURES} signatures")
        return cls(text + "\n", tuple(_signature(line) for line in lines))


def _signature(line: str) -> NoteSignature:
    name, space, encoded = line.removeprefix(DASH).partition(" ")
    if not line.startswith(DASH) or not space:
        raise EvidenceError("a line below the note is no signature")
    require_name(name)
    content = from_base64(encoded, "a signature of the note")
    if len(content) < 5:
        raise EvidenceError("a signature of the note is too short")
    return NoteSignature(name, content[:4], content[4:])


LARGEST_CHECKPOINT = 1 << 20  # bytes of a file


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
    note : Note
        The signed text, with the signatures of witnesses if there are any.
    """

    origin: str
    size: int
    root: bytes
    note: Note

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
        require_name(origin)
        return cls(origin, size, root, Note.sign(f"{origin}\n{size}\n{to_base64(root)}\n", origin, key))

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
            The log's keys: the one of today, and those that it had before. One of them must have signed, and a
            signature that names one must be its own. The signatures of others are kept and not looked at.

        Returns
        -------
        Checkpoint
            What was signed.

        Raises
        ------
        EvidenceError
            It is no checkpoint, is of another log, or is not signed by one of the keys.
        """
        if len(data) > LARGEST_CHECKPOINT:
            raise EvidenceError("the checkpoint is too large to be one")
        note = Note.from_bytes(data)
        lines = note.text[:-1].split("\n")
        if len(lines) != 3 or not re.fullmatch("0|[1-9][0-9]{0,18}", lines[1]) or int(lines[1]) >= 1 << 63:
            raise EvidenceError("the checkpoint does not have three lines: the log's name, its size, its root")
        if origin is None:
            origin = lines[0]
        if lines[0] != origin:
            raise OtherLog(f"the checkpoint is of another log: {lines[0][:80]!r} instead of {origin!r}")
        require_name(origin)
        root = from_base64(lines[2], "the checkpoint's root", length=32)
        note.verify(origin, keys)
        return cls(origin, int(lines[1]), root, note)

    def to_bytes(self) -> bytes:
        """The checkpoint as a file has it.

        Returns
        -------
        bytes
            The signed note, with all its signatures.
        """
        return self.note.to_bytes()
