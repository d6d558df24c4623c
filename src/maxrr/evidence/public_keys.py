"""All public keys of an operator in one file: the newest first, and each former one's word for its successor."""

import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypedDict

from maxrr.errors import EvidenceError, FileExists, NotAKey, NotSucceeded
from maxrr.evidence.envelopes import Envelope, Statement, Subject
from maxrr.evidence.exact_text import read_as
from maxrr.evidence.signing import ENVIRONMENT, PublicKey, SigningKey
from maxrr.files import flush_folder, read_regular, write_atomically
from maxrr.files.atomic import remove_unfinished

KEY_SUCCESSION = "https://maxrr.dev/key-succession/v1"
LARGEST = 1 << 20  # bytes of a file: a key and its succession have about 700


class _Succession(TypedDict):
    former: str
    time: str


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
        """Return these keys with a new one that succeeds the newest.

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
            raise NotSucceeded(f"the key {self.newest.id} does not succeed the kept one, {kept.newest.id}: it is {why}")

    def _former_and_new(self, envelope: Envelope) -> tuple[PublicKey, PublicKey]:
        """The keys of a succession, if the former one has signed it."""
        known = {key.id: key for key in self.keys}
        statement = envelope.verify(self.keys)
        said = read_as(_Succession, statement.predicate, "the succession of a key")
        former, new = said["former"], statement.subjects[0].sha256
        if (
            statement.predicate_type != KEY_SUCCESSION or len(statement.subjects) > 1
            or former != envelope.key_id or new not in known or new == former
            or not re.fullmatch(r"[0-9T:.+Z-]{10,40}", said["time"])
        ):  # fmt: skip
            raise EvidenceError("a statement is not that one of these keys succeeds another")
        return known[former], known[new]


def _parts(data: bytes, where: str) -> Iterator[PublicKey | Envelope]:
    """The keys and statements of a file, in its order."""
    try:
        lines = iter(data.decode("ascii").replace("\r\n", "\n").split("\n"))
    except UnicodeDecodeError:
        raise NotAKey(f"{where} is no file of public keys in PEM") from None
    for line in lines:
        if line == "-----BEGIN PUBLIC KEY-----":
            block = [line, next(lines, ""), next(lines, "")]
            key = PublicKey.from_pem("\n".join(block).encode(), where)
            if key.pem.decode().split("\n") != [*block, ""]:
                raise NotAKey(f"{where} has a public key with something in it that nobody writes")
            yield key
        elif line.startswith("{"):
            yield Envelope.from_bytes(line.encode())
        elif "PRIVATE KEY" in line:
            raise NotAKey(f"{where} holds a private key: give the public one, which `maxrr key show --out` writes")
        elif line.strip():
            raise NotAKey(f"{where} has something in it that is no Ed25519 public key in PEM")


# Where an operator's key lies, and how it comes and goes: found, made, succeeded by another.
#
# The private key is a file that only its owner may read. Beside it, under the same name with the ending .pub, lies a
# file for everybody: its public key, and those that it has succeeded.


def default_place() -> Path:
    """Return the place of the private key where none is named.

    Returns
    -------
    Path
        ``maxrr/key.pem`` in the folder for settings: ``$XDG_CONFIG_HOME``, or ``~/.config``.
    """
    named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".config") / "maxrr" / "key.pem"


def public_place(private: str | Path) -> Path:
    """Return where the public keys lie that belong to a private one.

    Parameters
    ----------
    private
        The file of the private key.

    Returns
    -------
    Path
        The file beside it.

    Examples
    --------
    >>> public_place("keys/key.pem").name
    'key.pub'
    """
    return Path(private).with_suffix(".pub")


def find_key(path: str | Path | None = None) -> SigningKey | None:
    """Find the key to sign with: in the file that is given, else in MAXRR_SIGNING_KEY, else at the default place.

    Parameters
    ----------
    path
        The file, if the user named one.

    Returns
    -------
    SigningKey or None
        The key; None if none was named and there is none.

    Raises
    ------
    EvidenceError
        What was found is no private key, or others may read it.
    OSError
        The file cannot be read.
    """
    if path is not None:
        return SigningKey.load(path)
    if (from_environment := SigningKey.from_environment()) is not None:
        return from_environment
    try:
        return SigningKey.load(default_place())
    except (FileNotFoundError, NotADirectoryError, RuntimeError):  # no such file, or no home
        return None


def find_public_keys(path: str | Path | None = None) -> PublicKeys | None:
    """Find the public keys that belong to the key which `find_key` finds.

    Parameters
    ----------
    path
        The file of the private key, if the user named one.

    Returns
    -------
    PublicKeys or None
        Those in the file beside the private key, or its own alone where there is no such file; None without a key.

    Raises
    ------
    EvidenceError
        As `find_key`; or the file beside it is of another key.
    """
    key = find_key(path)
    if key is None:
        return None
    if path is None and ENVIRONMENT in os.environ:
        return PublicKeys((key.public,))
    return _beside(Path(path or default_place()), key)


def make_key(path: str | Path) -> SigningKey:
    """Make a new key, and write both its files.

    A private key without a public file is what this leaves where it is killed: the public file is then made for that
    key, with a warning, and no other key is made.

    Parameters
    ----------
    path
        The file for the private key. A folder that is missing is made, for its owner alone.

    Returns
    -------
    SigningKey
        The key.

    Raises
    ------
    EvidenceError
        One of the files is there already.
    """
    path, public = Path(path), public_place(path)
    if path == public:
        raise EvidenceError(f"{path} is a name for a public key: name the file of the private key otherwise")
    if os.path.lexists(public):
        there = path if os.path.lexists(path) else public
        raise FileExists(f"{there} is there already, and a key is never written over: choose another name")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.path.lexists(path):
        key = SigningKey.generate()
        key.save(path)
    else:
        key = SigningKey.load(path)
        warnings.warn(f"{path} was there, without {public}: no other key was made, but its public file", stacklevel=2)
    remove_unfinished(path)
    remove_unfinished(public)
    PublicKeys((key.public,)).save(public)
    return key


def rotate_key(path: str | Path) -> SigningKey:
    """Replace a key by a new one, and let the old key sign that the new one succeeds it.

    What the former key signed stays valid: its public key stays in the public file. Nothing needs the former private
    key any more. An interrupted rotation is finished by the next one, with a warning.

    Parameters
    ----------
    path
        The file of the private key.

    Returns
    -------
    SigningKey
        The new key, which is in the file now.

    Raises
    ------
    EvidenceError
        The file is no private key, or the public file beside it is of another key.
    """
    path = Path(path)
    if path.is_symlink():
        raise EvidenceError(f"{path} is a link, and a new key would take its place: name the file itself")
    former = SigningKey.load(path)
    coming = path.with_name(f"{path.name}.next")
    for each in (path, public_place(path), coming):
        remove_unfinished(each)
    public = _beside(path, former)
    if not coming.exists():
        SigningKey.generate().save(coming)
    else:
        warnings.warn(f"{coming} was there, of a rotation that was interrupted: it is finished now", stacklevel=2)
    new = SigningKey.load(coming)
    if public.newest != new.public:
        public = public.succeeded_by(new.public, former, datetime.now(UTC).isoformat(timespec="seconds"))
        public.save(public_place(path))
    os.replace(coming, path)
    flush_folder(path.parent)
    return new


def _beside(path: Path, key: SigningKey) -> PublicKeys:
    """The public keys beside a private one."""
    try:
        found = PublicKeys.load(public_place(path))
    except FileNotFoundError:
        return PublicKeys((key.public,))
    if key.public not in found.keys:
        raise EvidenceError(f"{public_place(path)} has another public key than {path}: move it away")
    return found
