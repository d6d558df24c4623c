"""Appending to a log: new tiles first, then the checkpoint that speaks of them, so that a kill harms nothing.

An append of a few entries waits for the disk six times: for the bytes of the entries' and of the hashes' file, for the
names of both, which stand in two folders, for the bytes of the checkpoint, and for its name. None of these can be left
out: a checkpoint that outlives a power cut must find its tiles, and file systems do not promise to keep the order of
names in different folders. Entries that are appended together share them.

A full tile that a checkpoint covers is never written again. The partial tiles of earlier checkpoints stay until their
tile is full and the checkpoint that covers it is on the disk. Tiles that no checkpoint speaks of, left by a process
that was killed, are replaced or removed before anything is written beside them.
"""

import re
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Self

from maxrr.errors import EvidenceError, WrongLog
from maxrr.evidence.checkpoints import Checkpoint
from maxrr.evidence.log import CHECKPOINT, Log, read_checkpoint
from maxrr.evidence.log_proofs import (
    EMPTY_ROOT,
    HEIGHT,
    LONGEST_ENTRY,
    WIDTH,
    Kind,
    Subtrees,
    Tiles,
    edge_of,
    leaf_hash,
    levels,
    pack,
    tile_path,
    width_of,
)
from maxrr.evidence.signing import PublicKey, SigningKey, require_signing_key
from maxrr.files import flush_folder, write_atomically

PARTIAL = re.compile(r"[1-9][0-9]{0,2}")
UNFINISHED = re.compile(r"\.maxrr-[0-9a-f]+\.tmp")  # what a kill leaves of `write_atomically`
Tile = tuple[Kind, int, int, bytes]  # kind, index, width, content


class LogWriter:
    """The one who appends to a log. Only one may: whoever opens it holds a lock, such as that of a workspace.

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
        The tiles that the next append starts from do not give the checkpoint's root.
    """

    def __init__(self, folder: str | Path, checkpoint: Checkpoint, key: SigningKey) -> None:
        self.folder, self.checkpoint, self.key = Path(folder), checkpoint, key
        tiles, full = Tiles(folder, checkpoint.size), checkpoint.size // WIDTH
        self._last = tiles.entries(full) if checkpoint.size % WIDTH else []  # the entries that are in no full bundle
        bundles = range(-(-checkpoint.size // WIDTH))
        self._subtrees = Subtrees(leaf for index in bundles for leaf in tiles.hashes(0, index))
        same = [*map(leaf_hash, self._last)] == self._subtrees.rows[0][full * WIDTH :]
        if self._subtrees.root != checkpoint.root or not same:
            raise WrongLog(f"the tiles in {folder} do not give the root of its checkpoint: check the log")
        self._settled = {self.folder}  # folders that are on the disk, with nothing that an interrupted append left
        kinds: list[Kind] = ["entries", *range(levels(checkpoint.size))]
        _remove_superseded(self.folder, [(kind, edge_of(kind, checkpoint.size) - 1) for kind in kinds])

    @classmethod
    def create(cls, folder: str | Path, origin: str, key: SigningKey) -> Self:
        """Start a log without entries.

        Parameters
        ----------
        folder
            A folder that does not exist, or has no log in it. The folder that it lies in exists.
        origin : str
            The log's name, for ever: best a place on the web that is the operator's, such as ``example.com/maxrr``.
        key : SigningKey
            The key that signs its checkpoints.

        Returns
        -------
        LogWriter
            The log, open for appending.

        Raises
        ------
        EvidenceError
            There is a log in the folder.
        """
        folder = Path(folder)
        if (folder / CHECKPOINT).exists() or (folder / "tile").exists():
            raise EvidenceError(f"{folder} has a log in it, or a part of one")
        checkpoint = Checkpoint.sign(origin, 0, EMPTY_ROOT, key)
        folder.mkdir(exist_ok=True)
        flush_folder(folder.parent)
        write_atomically(folder / CHECKPOINT, checkpoint.to_bytes())
        return cls(folder, checkpoint, key)

    @classmethod
    def open(
        cls, folder: str | Path, origin: str, key: SigningKey, *, retired: Sequence[PublicKey] = ()
    ) -> Self:  # fmt: skip
        """Open a log for appending.

        Parameters
        ----------
        folder
            The log's folder.
        origin : str
            The name that the log must have.
        key : SigningKey
            The key that signs its next checkpoints.
        retired : sequence of PublicKey
            Keys that the log had before: its newest checkpoint may still be signed by one of them.

        Returns
        -------
        LogWriter
            The log, in the state of its newest checkpoint, whatever was interrupted before.

        Raises
        ------
        EvidenceError
            There is no checkpoint, `Checkpoint.read` refuses it, or the tiles do not give its root.
        """
        require_signing_key(key)
        return cls(folder, Checkpoint.read(read_checkpoint(folder), origin, [key.public, *retired]), key)

    @property
    def log(self) -> Log:
        """The log as its newest checkpoint has it, to read."""
        return Log(self.folder, self.checkpoint)

    def append(self, entries: Iterable[bytes]) -> Checkpoint:
        """Append entries: all of them, under one new checkpoint, or none.

        Parameters
        ----------
        entries : iterable of bytes
            The entries, each of at most 65,535 bytes.

        Returns
        -------
        Checkpoint
            The newest checkpoint. It and all that it speaks of is on the disk.

        Raises
        ------
        EvidenceError
            An entry is too long, or somebody else has appended meanwhile. Nothing was changed.
        OSError
            A file cannot be written. Open the log again: it is as it was before, or has all of the entries.
        """
        entries = list(entries)
        if any(len(entry) > LONGEST_ENTRY for entry in entries):
            raise EvidenceError(f"an entry of a log has at most {LONGEST_ENTRY:,} bytes")
        if read_checkpoint(self.folder) != self.checkpoint.to_bytes():
            raise WrongLog(f"the log in {self.folder} is not as it was left: open it again")
        if not entries:
            return self.checkpoint
        before, last = self.checkpoint.size, self._last + entries
        self._subtrees.extend(map(leaf_hash, entries))
        try:
            tiles = _tiles(self._subtrees, before, last)
            size, root = before + len(entries), self._subtrees.root
            checkpoint = Checkpoint.sign(self.checkpoint.origin, size, root, self.key)
            settled, self._settled = self._settled, {self.folder}  # whoever is interrupted looks again what is there
            settled |= self._write(tiles, settled)
            write_atomically(self.folder / CHECKPOINT, checkpoint.to_bytes())
        except BaseException:
            self._subtrees.cut(before)
            raise
        self._settled, self.checkpoint, self._last = settled, checkpoint, last[len(last) - size % WIDTH :]
        _remove_superseded(self.folder, [(kind, index) for kind, index, width, _ in tiles if width == WIDTH])
        return checkpoint

    def _write(self, tiles: Sequence[Tile], settled: Set[Path]) -> set[Path]:
        """Write tiles, and wait until they and their names are on the disk; gives the folders that are new."""
        touched, new = dict[Path, None](), set[Path]()
        for kind, index, width, data in tiles:
            path = self.folder / tile_path(kind, index, width)
            touched[path.parent] = None
            unsettled = [path.parent]
            while unsettled[-1] not in settled and unsettled[-1] not in new:
                unsettled.append(unsettled[-1].parent)
            for folder in reversed(unsettled[:-1]):
                folder.mkdir(exist_ok=True)  # it may be there, made by a process that was killed
                touched[folder.parent] = None
                new.add(folder)
                if folder == path.parent and width < WIDTH:
                    _remove_partials(folder, beyond=width_of(kind, index, self.checkpoint.size))
            write_atomically(path, data, flush_name=False)
        for folder in touched:
            flush_folder(folder)
        return new


def restore_log(folder: str | Path, checkpoint: Checkpoint, entries: Sequence[bytes]) -> None:
    """Write the files of a log anew, from its newest checkpoint and its entries.

    Parameters
    ----------
    folder
        A folder that does not exist.
    checkpoint : Checkpoint
        The checkpoint, signed by whoever kept the log.
    entries : sequence of bytes
        At least as many entries as the checkpoint speaks of.

    Raises
    ------
    EvidenceError
        The entries do not give the checkpoint's root.
    """
    folder, entries = Path(folder), entries[: checkpoint.size]
    subtrees = Subtrees(map(leaf_hash, entries))
    if subtrees.root != checkpoint.root:
        raise WrongLog("the entries do not give the root of the checkpoint")
    folder.mkdir()
    for kind, index, width, data in _tiles(subtrees, 0, entries):
        path = folder / tile_path(kind, index, width)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
    write_atomically(folder / CHECKPOINT, checkpoint.to_bytes())


def _remove_superseded(folder: Path, tiles: Iterable[tuple[Kind, int]]) -> None:
    """Remove the partial tiles of full ones. What cannot be removed stays, and harms nobody."""
    for kind, index in tiles:
        if index >= 0:
            with suppress(OSError):
                partial = (folder / tile_path(kind, index, 1)).parent
                _remove_partials(partial, beyond=0)
                partial.rmdir()


def _remove_partials(folder: Path, beyond: int) -> None:
    """Remove the partial tiles in a folder that are wider than this, and files that were never finished."""
    for file in folder.iterdir():
        if UNFINISHED.fullmatch(file.name) or (PARTIAL.fullmatch(file.name) and int(file.name) > beyond):
            file.unlink()


def _tiles(subtrees: Subtrees, before: int, last: Sequence[bytes]) -> list[Tile]:
    """The tiles to write since a log had this size; `last` are its entries after the last full bundle of that time."""
    found, first = list[Tile](), before - before % WIDTH
    for start in range(0, len(last), WIDTH):
        part = last[start : start + WIDTH]
        found.append(("entries", (first + start) // WIDTH, len(part), pack(part)))
    for level, hashes in enumerate(subtrees.rows[::HEIGHT]):
        for index in range(edge_of(level, before), -(-len(hashes) // WIDTH)):
            tile = hashes[WIDTH * index : WIDTH * (index + 1)]
            if len(hashes) > before >> HEIGHT * level:
                found.append((level, index, len(tile), b"".join(tile)))
    return found
