"""All public keys of an operator in one file: the newest first, and each former one's word for its successor."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from maxrr.errors import EvidenceError
from maxrr.evidence.envelopes import Envelope
from maxrr.evidence.exact_text import exactly, text
from maxrr.evidence.signing import PublicKey, SigningKey
from maxrr.evidence.statements import Statement, Subject
from maxrr.files import read_regular, write_atomically

KEY_SUCCESSION = "https://maxrr.dev/key-succession/v1"
LARGEST = 1 << 20  # bytes of a file: a key and its succession have about 700


@dataclass(frozen=True)
class PublicKeys:
    """The keys that somebody trusts: usually one, or those that an operator has had.

    Attributes
    ----------
    keys : tuple of PublicKey
        The newest first.
    successions : tuple of Envelope
        Statements that one of the keys succeeds another, signed by the former one. There may be none: somebody may list
        keys because they know them all.

    Raises
    ------
    EvidenceError
        There is no key, one twice, or a succession that the former key has not signed, or of keys that are not listed.
    """

    keys: tuple[PublicKey, ...]
    successions: tuple[Envelope, ...] = ()

    def __post_init__(self) -> None:
        if not self.keys or len(set(self.keys)) < len(self.keys):
            raise EvidenceError("there is no public key, or one of them twice")
        for each in self.successions:
            self._former_and_new(each)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read all public keys in a file.

        Parameters
        ----------
        path
            One or several keys in PEM, one after the other, and what `save` writes between them.

        Returns
        -------
        PublicKeys
            The keys, in the order of the file.

        Raises
        ------
        EvidenceError
            There is no key in the file, or something else: also a succession that the former key has not signed.
        OSError
            The file cannot be read.
        """
        parts = list(_parts(read_regular(path, LARGEST), str(path)))
        try:
            return cls(
                tuple(each for each in parts if isinstance(each, PublicKey)),
                tuple(each for each in parts if isinstance(each, Envelope)),
            )
        except EvidenceError as error:
            raise EvidenceError(f"{path}: {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the keys to a file that anybody may read.

        Parameters
        ----------
        path
            The file. One that is there is replaced.
        """
        write_atomically(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The keys as a file has them.

        Returns
        -------
        bytes
            PEM, in which each succession is a line of JSON before the former key. Programs that know one key only read
            the newest.
        """
        before: dict[PublicKey, bytes] = {}
        for each in self.successions:
            former, _ = self._former_and_new(each)
            before[former] = before.get(former, b"") + each.to_bytes() + b"\n"
        return b"".join(before.get(key, b"") + key.pem for key in self.keys)

    @property
    def newest(self) -> PublicKey:
        """The key that signs today."""
        return self.keys[0]

    def succeeded_by(self, new: PublicKey, former: SigningKey, time: str) -> Self:
        """The same keys, and a new one that succeeds the newest of them.

        Parameters
        ----------
        new : PublicKey
            The new key.
        former : SigningKey
            The private key of the newest one, which says so.
        time : str
            When, as in ISO 8601.

        Returns
        -------
        PublicKeys
            All keys, with the signed statement.

        Raises
        ------
        EvidenceError
            The former key is not the newest one, or the new one is listed already.
        """
        if former.public != self.newest:
            raise EvidenceError("a key is succeeded while it is the newest")
        statement = Statement((Subject("key", new.id),), KEY_SUCCESSION, {"former": former.public.id, "time": time})
        return type(self)((new, *self.keys), (Envelope.sign(statement, former), *self.successions))

    def require_follows(self, kept: "PublicKeys") -> None:
        """Refuse these keys if the newest of them does not follow from the newest one that somebody has kept.

        Parameters
        ----------
        kept : PublicKeys
            The keys that were trusted until now.

        Raises
        ------
        EvidenceError
            No row of successions, each signed by the former key, leads from the kept key to the newest one.
        """
        pairs = [self._former_and_new(each) for each in self.successions]
        follow = [kept.newest]
        for key in follow:  # it grows
            follow += [new for former, new in pairs if former == key and new not in follow]
        if self.newest not in follow:
            why = "older than the kept one" if self.newest in kept.keys else "not signed for by it, nor by a successor"
            raise EvidenceError(
                f"the key {self.newest.id} does not succeed the one that was kept, {kept.newest.id}: it is {why}"
            )

    def _former_and_new(self, envelope: Envelope) -> tuple[PublicKey, PublicKey]:
        """The keys of a succession, if the former one has signed it."""
        known = {key.id: key for key in self.keys}
        statement = envelope.verify([key for key in self.keys if envelope.signatures[0].key_id == key.id])
        said = exactly(statement.predicate, ("former", "time"), "the succession of a key")
        former, new = said["former"], statement.subjects[0].sha256
        time = text(said["time"], "the time of a succession")
        if (
            statement.predicate_type != KEY_SUCCESSION or len(statement.subjects) > 1 or len(envelope.signatures) > 1
            or former != envelope.signatures[0].key_id or new not in known or new == former
            or not re.fullmatch(r"[0-9T:.+Z-]{10,40}", time)
        ):  # fmt: skip
            raise EvidenceError("a statement is not that one of these keys succeeds another")
        return known[former], known[new]


def _parts(data: bytes, where: str) -> Iterator[PublicKey | Envelope]:
    """The keys and statements of a file, in its order."""
    try:
        lines = iter(data.decode("ascii").replace("\r\n", "\n").split("\n"))
    except UnicodeDecodeError:
        raise EvidenceError(f"{where} is no file of public keys in PEM") from None
    for line in lines:
        if line == "-----BEGIN PUBLIC KEY-----":
            block = [line, next(lines, ""), next(lines, "")]
            key = PublicKey.from_pem("\n".join(block).encode(), where)
            if key.pem.decode().split("\n") != [*block, ""]:
                raise EvidenceError(f"{where} has a public key with something in it that nobody writes")
            yield key
        elif line.startswith("{"):
            yield Envelope.from_bytes(line.encode())
        elif "PRIVATE KEY" in line:
            raise EvidenceError(
                f"{where} holds a private key: give the public one, which `maxrr key show --out` writes"
            )
        elif line.strip():
            raise EvidenceError(f"{where} has something in it that is no Ed25519 public key in PEM")
