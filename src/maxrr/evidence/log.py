"""A transparency log in a folder of static files, for those who read it: its entries, and proofs about them."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Self

from maxrr.errors import EvidenceError, OtherLog, WrongLog
from maxrr.evidence.checkpoints import LARGEST_CHECKPOINT, Checkpoint
from maxrr.evidence.exact_text import to_base64
from maxrr.evidence.log_proofs import (
    HEIGHT,
    WIDTH,
    Consistency,
    Inclusion,
    Kind,
    Subtrees,
    Tiles,
    edge_of,
    leaf_hash,
    levels,
    pack,
    prove_consistency,
    prove_inclusion,
    root_of,
    tile_path,
)
from maxrr.evidence.signing import PublicKey
from maxrr.files import read_regular
from maxrr.plain_text import count

LOG, CHECKPOINT = "log", "checkpoint"  # the folder of a workspace's log, and the file in it that is signed


class Log:
    """A log as one of its checkpoints has it. What is appended later does not change it.

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
            The log. Its tiles are not read yet: `check_log` recomputes all of them.

        Raises
        ------
        EvidenceError
            There is no checkpoint, or `Checkpoint.read` refuses it.
        """
        return cls(folder, Checkpoint.read(read_checkpoint(folder), origin, keys))

    def entries(self) -> Iterator[bytes]:
        """Read the entries, and compare each with its hash in the log.

        Yields
        ------
        bytes
            One entry after the other.

        Raises
        ------
        EvidenceError
            An entry is missing, or is not the one that was appended.
        """
        for bundle in range(-(-self.checkpoint.size // WIDTH)):
            tiles = Tiles(self.folder, self.checkpoint.size)
            for place, (entry, hashed) in enumerate(zip(tiles.entries(bundle), tiles.hashes(0, bundle), strict=True)):
                if leaf_hash(entry) != hashed:
                    raise WrongLog(f"entry {WIDTH * bundle + place} of the log is not the one that was appended")
                yield entry

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
            There is no such entry, or the files do not give the checkpoint's root.
        """
        if not 0 <= index < self.checkpoint.size:
            raise EvidenceError(f"the log has no entry {index}: it has {self.checkpoint.size}, counted from 0")
        tiles = Tiles(self.folder, self.checkpoint.size)
        proof = prove_inclusion(index, self.checkpoint.size, tiles.subtree)
        self._require(proof.verify(tiles.subtree(0, index), self.checkpoint.size, self.checkpoint.root))
        return proof

    def prove_consistency(self, earlier: int) -> Consistency:
        """The proof that the log began with what it was at an earlier size.

        Parameters
        ----------
        earlier : int
            The number of entries it had.

        Returns
        -------
        Consistency
            The proof, which holds for the earlier root and that of the checkpoint.

        Raises
        ------
        EvidenceError
            The log never had that size yet, or the files do not give the checkpoint's root.
        """
        if not 0 <= earlier <= self.checkpoint.size:
            held = count(self.checkpoint.size, "entry", "entries")
            raise WrongLog(f"the log has {held}, and never had {earlier}")
        tiles = Tiles(self.folder, self.checkpoint.size)
        proof = prove_consistency(earlier, self.checkpoint.size, tiles.subtree)
        root = root_of(0, earlier, tiles.subtree)
        self._require(proof.verify(earlier, root, self.checkpoint.size, self.checkpoint.root))
        return proof

    def _require(self, holds: bool) -> None:
        if not holds:
            raise WrongLog(f"the tiles in {self.folder} do not give the root of its checkpoint: check the log")


def read_checkpoint(folder: str | Path) -> bytes:
    """The bytes of a log's checkpoint file."""
    try:
        return read_regular(Path(folder) / CHECKPOINT, LARGEST_CHECKPOINT)
    except OSError as error:
        raise EvidenceError(f"{Path(folder) / CHECKPOINT} cannot be read: {error.strerror}") from error


# What two signed states of a log say about each other: whether one became the other.


class History(StrEnum):
    """What a state of a log that is shown now is to one that somebody has kept.

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
        "not known": it has more entries, and the tiles are missing that would show whether it begins with the kept
        ones.
    """

    same = "same"
    extends = "extends"
    older = "older"
    forked = "split view"
    unknown = "not known"


def compare_logs(kept: Log | Checkpoint, shown: Log | Checkpoint) -> History:
    """Compare two signed states of a log.

    Parameters
    ----------
    kept : Log or Checkpoint
        What somebody has kept: a checkpoint alone, or a log with its tiles.
    shown : Log or Checkpoint
        What the operator shows now.

    Returns
    -------
    History
        What the second is to the first. Where one has more entries and its tiles are there, it is proved that it begins
        with those of the other, or that it does not.

    Raises
    ------
    EvidenceError
        They are of two logs, or tiles do not give the root of their checkpoint.
    """
    old, new = (each.checkpoint if isinstance(each, Log) else each for each in (kept, shown))
    if old.origin != new.origin:
        raise OtherLog(f"these are two logs: {old.origin!r} and {new.origin!r}")
    if old.size == new.size:
        return History.same if old.root == new.root else History.forked
    grown = old.size < new.size
    (less, more), tiles = ((old, new), shown) if grown else ((new, old), kept)
    if isinstance(tiles, Log):
        proof = tiles.prove_consistency(less.size)  # which holds for the root that the tiles have at that size
        if not proof.verify(less.size, less.root, more.size, more.root):
            return History.forked
        return History.extends if grown else History.older
    return History.unknown if grown else History.older


# Recompute a whole log from its entries, and name the first thing that is wrong.


def check_log(folder: str | Path, origin: str | None, keys: Sequence[PublicKey]) -> Checkpoint:
    """Verify a log's newest checkpoint and recompute every hash that it rests on from the entries.

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
        Names the first thing that is wrong: the checkpoint, a bundle of entries or a tile that is missing or damaged,
        an entry or a hash that does not fit, a root that is not that of the entries.
    """
    checkpoint = Log.open(folder, origin, keys).checkpoint
    tiles = Tiles(folder, checkpoint.size, exact=True)
    subtrees, bundle = Subtrees(), list[bytes]()
    for index in range(-(-checkpoint.size // WIDTH)):
        bundle = tiles.entries(index)
        subtrees.extend(map(leaf_hash, bundle))
    for level in range(levels(checkpoint.size)):
        hashes = subtrees.rows[HEIGHT * level]
        for first in range(0, len(hashes), WIDTH):
            _require_hashes(tiles, level, first // WIDTH, hashes[first : first + WIDTH])
    if subtrees.root != checkpoint.root:
        raise WrongLog(
            f"the root of {count(checkpoint.size, 'entry', 'entries')} is {to_base64(subtrees.root)}, and the "
            f"checkpoint has {to_base64(checkpoint.root)}: entries and tiles were exchanged together"
        )
    for level in range(levels(checkpoint.size)):
        edge = subtrees.rows[HEIGHT * level][WIDTH * edge_of(level, checkpoint.size) :]
        _require_earlier(tiles, level, edge, b"".join)
    _require_earlier(tiles, "entries", bundle[: checkpoint.size % WIDTH], pack)
    return checkpoint


def _require_hashes(tiles: Tiles, level: int, index: int, hashes: list[bytes]) -> None:
    """Refuse a tile whose hashes are not these."""
    found = tiles.hashes(level, index)
    for place, (read, computed) in enumerate(zip(found, hashes, strict=True)):
        if read != computed:
            where = WIDTH * index + place
            of = f"entry {where}" if level == 0 else f"the tile {tile_path(level - 1, where)}"
            raise WrongLog(f"{tile_path(level, index, len(hashes))}: hash {place} is not that of {of}")


def _require_earlier(tiles: Tiles, kind: Kind, edge: list[bytes], joined: Callable[[list[bytes]], bytes]) -> None:
    """Refuse a partial tile of an earlier checkpoint that is not the beginning of the one of today."""
    for width in range(1, len(edge)):
        name = tile_path(kind, edge_of(kind, tiles.size), width)
        if (tiles.folder / name).exists() and read_regular(tiles.folder / name) != joined(edge[:width]):
            raise WrongLog(f"{name} is not the beginning of what the log has become")
