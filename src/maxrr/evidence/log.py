"""A transparency log in two files, which only grow: its entries, and a checkpoint that the operator signs."""

import os
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Self

from maxrr.errors import OtherLog, WrongLog
from maxrr.evidence.checkpoints import LARGEST_CHECKPOINT, Checkpoint
from maxrr.evidence.log_proofs import EMPTY_ROOT, Inclusion, Subtrees, leaf_hash
from maxrr.evidence.signing import PublicKey, SigningKey, require_signing_key
from maxrr.files import flush_folder, open_regular, read_regular, write_atomically
from maxrr.files.atomic import writable, write_at

LOG, CHECKPOINT, ENTRIES = "log", "checkpoint", "entries"  # the folder of a workspace's log, and the files in it
ENTRY = 32  # bytes


class Log:
    """A log at one of its checkpoints. Entries that are appended later do not change it.

    Parameters
    ----------
    folder
        The log's folder.
    checkpoint : Checkpoint
        The newest checkpoint, or an earlier one.
    """

    def __init__(self, folder: str | Path, checkpoint: Checkpoint) -> None:
        self.folder, self.checkpoint = Path(folder), checkpoint

    @classmethod
    def open(cls, folder: str | Path, origin: str | None, keys: Sequence[PublicKey]) -> Self:
        """Open the log as its newest checkpoint has it.

        Parameters
        ----------
        folder
            The log's folder.
        origin : str or None
            The name that the log must have; None for whichever name it says.
        keys : sequence of PublicKey
            The log's keys, as in `Checkpoint.read`.

        Returns
        -------
        Log
            The log. Its entries are not read yet.

        Raises
        ------
        EvidenceError
            There is no checkpoint, or `Checkpoint.read` refuses it.
        """
        return cls(folder, Checkpoint.read(read_checkpoint(folder), origin, keys))

    def entries(self) -> list[bytes]:
        """Read the entries, and compare them with the checkpoint.

        Returns
        -------
        list of bytes
            From the first, 32 bytes each.

        Raises
        ------
        EvidenceError
            Entries are missing, or are not those that the checkpoint speaks of.
        """
        return self._read[0]

    def prove_inclusion(self, index: int) -> Inclusion:
        """The proof that an entry is in the log.

        Parameters
        ----------
        index : int
            Which entry, counted from 0.

        Returns
        -------
        Inclusion
            The proof, which holds for the checkpoint's root.

        Raises
        ------
        EvidenceError
            There is no such entry, or the entries do not give the checkpoint's root.
        """
        if not 0 <= index < self.checkpoint.size:
            raise WrongLog(f"the log has no entry {index}: it has {self.checkpoint.size}, counted from 0")
        return self._read[1].prove_inclusion(index, self.checkpoint.size)

    @cached_property
    def _read(self) -> tuple[list[bytes], Subtrees]:
        """The entries and the hashes over them, compared with the checkpoint."""
        path, size = self.folder / ENTRIES, self.checkpoint.size
        try:
            with open_regular(path) as file:
                content = file.read(ENTRY * size)
        except OSError as error:
            raise WrongLog(f"{path} cannot be read: {error.strerror}") from error
        entries = [content[start : start + ENTRY] for start in range(0, len(content), ENTRY)]
        subtrees = Subtrees(map(leaf_hash, entries))
        if len(content) != ENTRY * size:
            raise WrongLog(f"{path} has {len(content):,} bytes, and the checkpoint speaks of {ENTRY * size:,}")
        if subtrees.root(0, size) != self.checkpoint.root:
            raise WrongLog(f"{path} does not have the entries that the checkpoint speaks of: it was changed")
        return entries, subtrees


def read_checkpoint(folder: str | Path) -> bytes:
    """The bytes of a log's checkpoint file."""
    try:
        return read_regular(Path(folder) / CHECKPOINT, LARGEST_CHECKPOINT)
    except OSError as error:
        raise WrongLog(f"{Path(folder) / CHECKPOINT} cannot be read: {error.strerror}") from error


def check_log(folder: str | Path, origin: str | None, keys: Sequence[PublicKey]) -> Checkpoint:
    """Verify a log's newest checkpoint, and recompute its root from the entries.

    Parameters
    ----------
    folder
        The log's folder.
    origin : str or None
        The name that the log must have; None for whichever name it says.
    keys : sequence of PublicKey
        The log's keys, as in `Checkpoint.read`.

    Returns
    -------
    Checkpoint
        The checkpoint, of which everything holds. To see that nothing was taken back, compare it with one that was
        kept: `compare_logs`.

    Raises
    ------
    EvidenceError
        Names what is wrong: the checkpoint, or the file of entries.
    """
    log = Log.open(folder, origin, keys)
    log.entries()
    return log.checkpoint


# What two signed states of a log say about each other: whether one became the other.


class LogRelation(StrEnum):
    """How a state of a log that is shown now relates to one that somebody has kept.

    Attributes
    ----------
    same
        "same": the same entries.
    extends
        "extends": it begins with all entries of the kept one.
    older
        "older": it has fewer entries than the kept one: an old copy was restored, or entries were taken out.
    forked
        "split view": two histories are signed. Both states together prove it to anybody.
    unknown
        "not known": it has more entries, and they are missing, which would show whether it begins with the kept ones.
    """

    same = "same"
    extends = "extends"
    older = "older"
    forked = "split view"
    unknown = "not known"


def compare_logs(kept: Log | Checkpoint, shown: Log | Checkpoint) -> LogRelation:
    """Compare two signed states of a log.

    Parameters
    ----------
    kept : Log or Checkpoint
        What somebody has kept: a checkpoint alone, or a log with its entries.
    shown : Log or Checkpoint
        What the operator shows now.

    Returns
    -------
    LogRelation
        How the second relates to the first. If the longer one has its entries at hand, they prove whether it begins
        with those of the other.

    Raises
    ------
    EvidenceError
        They are of two logs, or entries do not give the root of their checkpoint.
    """
    old, new = (each.checkpoint if isinstance(each, Log) else each for each in (kept, shown))
    if old.origin != new.origin:
        raise OtherLog(f"these are two logs: {old.origin!r} and {new.origin!r}")
    if old.size == new.size:
        return LogRelation.same if old.root == new.root else LogRelation.forked
    grown = old.size < new.size
    less, longer = (old, shown) if grown else (new, kept)
    if not isinstance(longer, Log):
        return LogRelation.unknown if grown else LogRelation.older
    if longer._read[1].root(0, less.size) != less.root:
        return LogRelation.forked
    return LogRelation.extends if grown else LogRelation.older


# Appending: first the entries, then the checkpoint that speaks of them, so that a kill harms nothing.


class LogWriter:
    """Appends to a log. Whoever opens one holds a lock, such as that of a workspace.

    Parameters
    ----------
    folder
        The log's folder.
    checkpoint : Checkpoint
        Its newest checkpoint, read from the folder.
    key : SigningKey
        The key that signs the next ones.

    Raises
    ------
    EvidenceError
        The entries do not give the checkpoint's root.
    """

    def __init__(self, folder: str | Path, checkpoint: Checkpoint, key: SigningKey) -> None:
        self.folder, self.checkpoint, self.key = Path(folder), checkpoint, key
        self._subtrees = Log(folder, checkpoint)._read[1]

    @classmethod
    def create(cls, folder: str | Path, origin: str, key: SigningKey) -> Self:
        """Begin a log in a folder that has none."""
        folder, checkpoint = Path(folder), Checkpoint.sign(origin, 0, EMPTY_ROOT, key)
        if (folder / CHECKPOINT).exists():
            raise WrongLog(f"{folder} has a log in it")
        write_log(folder, checkpoint, [])
        return cls(folder, checkpoint, key)

    @classmethod
    def open(cls, folder: str | Path, origin: str, key: SigningKey, *, retired: Sequence[PublicKey] = ()) -> Self:
        """Open a log for appending. Its newest checkpoint may still be signed by a key that is retired."""
        require_signing_key(key)
        return cls(folder, Checkpoint.read(read_checkpoint(folder), origin, [key.public, *retired]), key)

    def root_with(self, entries: Iterable[bytes]) -> bytes:
        """Return the root that the log will have with more entries."""
        try:
            self._subtrees.extend(map(leaf_hash, entries))
            return self._subtrees.root(0, len(self._subtrees.rows[0]))
        finally:
            self._subtrees.cut(self.checkpoint.size)

    def append(self, entries: Iterable[bytes]) -> Checkpoint:
        """Append entries of 32 bytes: all of them, under one new checkpoint, or none.

        If it raises an `OSError`, open the log again: it is as it was before, or has all of the entries.
        """
        entries, before = list(entries), self.checkpoint.size
        if any(len(entry) != ENTRY for entry in entries):
            raise WrongLog(f"an entry of a log has {ENTRY} bytes")
        if read_checkpoint(self.folder) != self.checkpoint.to_bytes():
            raise WrongLog(f"the log in {self.folder} is not as it was left: open it again")
        if not entries:
            return self.checkpoint
        self._subtrees.extend(map(leaf_hash, entries))
        try:
            size = before + len(entries)
            checkpoint = Checkpoint.sign(self.checkpoint.origin, size, self._subtrees.root(0, size), self.key)
            with writable(self.folder / ENTRIES) as descriptor:
                os.ftruncate(descriptor, ENTRY * before)  # beyond lies what one who was killed has left
                write_at(descriptor, ENTRY * before, b"".join(entries))
                os.fsync(descriptor)
            write_atomically(self.folder / CHECKPOINT, checkpoint.to_bytes())
        except BaseException:
            self._subtrees.cut(before)
            raise
        self.checkpoint = checkpoint
        return checkpoint


def write_log(folder: Path, checkpoint: Checkpoint, entries: Sequence[bytes]) -> None:
    """Write the files of a log from a checkpoint and at least its entries."""
    folder.mkdir(exist_ok=True)
    flush_folder(folder.parent)
    write_atomically(folder / ENTRIES, b"".join(entries[: checkpoint.size]))
    write_atomically(folder / CHECKPOINT, checkpoint.to_bytes())
