"""A transparency log in a folder of static files, for those who read it: its entries, and proofs about them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from maxrr.errors import EvidenceError
from maxrr.evidence.append_tree import leaf_hash
from maxrr.evidence.checkpoints import LARGEST_CHECKPOINT, Checkpoint
from maxrr.evidence.log_proofs import Consistency, Inclusion, prove_consistency, prove_inclusion, root_of
from maxrr.evidence.signing import PublicKey
from maxrr.evidence.tiles import WIDTH, Tiles
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

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The entries, each compared with its hash in the log.

        Parameters
        ----------
        start, stop : int
            From which entry, and before which one; to the last one unless told.

        Yields
        ------
        bytes
            One entry after the other.

        Raises
        ------
        EvidenceError
            An entry is missing, or is not the one that was appended.
        """
        stop = self.checkpoint.size if stop is None else stop
        if not 0 <= start <= stop <= self.checkpoint.size:
            raise EvidenceError(
                f"the log has {count(self.checkpoint.size, 'entry', 'entries')}: none from {start} to {stop}"
            )
        for bundle in range(start // WIDTH, -(-stop // WIDTH)):
            tiles = Tiles(self.folder, self.checkpoint.size)
            hashes = tiles.hashes(0, bundle)
            for index, entry in enumerate(tiles.entries(bundle), WIDTH * bundle):
                if start <= index < stop:
                    if leaf_hash(entry) != hashes[index % WIDTH]:
                        raise EvidenceError(f"entry {index} of the log is not the one that was appended")
                    yield entry

    def root_at(self, size: int) -> bytes:
        """The root that the log had at an earlier size.

        Parameters
        ----------
        size : int
            The number of entries it had.

        Returns
        -------
        bytes
            The root over the first entries.
        """
        self._require_size(size)
        return root_of(0, size, Tiles(self.folder, self.checkpoint.size).subtree)

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
        self._require_size(earlier)
        tiles = Tiles(self.folder, self.checkpoint.size)
        proof = prove_consistency(earlier, self.checkpoint.size, tiles.subtree)
        root = root_of(0, earlier, tiles.subtree)
        self._require(proof.verify(earlier, root, self.checkpoint.size, self.checkpoint.root))
        return proof

    def _require_size(self, size: int) -> None:
        if not 0 <= size <= self.checkpoint.size:
            raise EvidenceError(f"the log has {count(self.checkpoint.size, 'entry', 'entries')}, and never had {size}")

    def _require(self, holds: bool) -> None:
        if not holds:
            raise EvidenceError(f"the tiles in {self.folder} do not give the root of its checkpoint: check the log")


def read_checkpoint(folder: str | Path) -> bytes:
    """The bytes of a log's checkpoint file."""
    try:
        return read_regular(Path(folder) / CHECKPOINT, LARGEST_CHECKPOINT)
    except OSError as error:
        raise EvidenceError(f"{Path(folder) / CHECKPOINT} cannot be read: {error.strerror}") from error
