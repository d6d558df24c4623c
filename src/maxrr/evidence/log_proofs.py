"""The tree of a log, by RFC 6962, and the proof that an entry is in it, which anybody verifies offline."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from maxrr.errors import EvidenceError
from maxrr.evidence.exact_text import Bytes32, Plain

# The Merkle tree of an append-only log, hashed as in RFC 6962: what is committed to, and what was, stays visible.


EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf_hash(entry: bytes) -> bytes:
    """The hash of one entry.

    Parameters
    ----------
    entry : bytes
        The entry.

    Returns
    -------
    bytes
        SHA-256 of a zero byte and the entry.
    """
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two subtrees side by side: SHA-256 of a byte 1 and both."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Subtrees:
    """The roots of all perfect subtrees of a log, by height: all that appending, checking and proving need.

    Parameters
    ----------
    leaves
        The hashes of the entries.
    """

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self.rows: list[list[bytes]] = [[]]
        self.extend(leaves)

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Append the hashes of entries."""
        for leaf in leaves:
            height, root = 0, leaf
            self.rows[0].append(leaf)
            while len(self.rows[height]) % 2 == 0:
                root = node_hash(self.rows[height][-2], root)
                height += 1
                if height == len(self.rows):
                    self.rows.append([])
                self.rows[height].append(root)

    def cut(self, size: int) -> None:
        """Return to the log of an earlier size."""
        for height, row in enumerate(self.rows):
            del row[size >> height :]

    def root(self, start: int, stop: int) -> bytes:
        """The root over the leaves from `start` to before `stop`, a subtree that occurs in a log."""
        if start == stop:
            return EMPTY_ROOT
        parts = []
        while start < stop:
            height = (stop - start).bit_length() - 1
            parts.append(self.rows[height][start >> height])
            start += 1 << height
        root = parts.pop()
        while parts:
            root = node_hash(parts.pop(), root)
        return root

    def prove_inclusion(self, index: int, size: int) -> "Inclusion":
        """Prove that an entry is in the log of this size."""
        start, stop, path = 0, size, list[bytes]()
        while stop - start > 1:
            middle = start + (1 << (stop - start - 1).bit_length() - 1)  # the left part is the largest power of two
            if index < middle:
                path.append(self.root(middle, stop))
                stop = middle
            else:
                path.append(self.root(start, middle))
                start = middle
        return Inclusion(index, size, tuple(reversed(path)))


@dataclass(frozen=True)
class Inclusion(Plain):
    """Proof that an entry is in a log.

    Attributes
    ----------
    index : int
        Which entry, counted from 0.
    size : int
        The number of entries of the log.
    path : tuple of bytes
        The hashes beside the way from the entry to the root.
    """

    index: int
    size: int
    path: tuple[Bytes32, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.size < 1 << 63:
            raise EvidenceError("the proof's numbers are not those of a log")
        if len(self.path) > self.size.bit_length() + 1:
            raise EvidenceError("the proof has more hashes than a log of its size can need")

    def verify(self, leaf: bytes, size: int, root: bytes) -> bool:
        """Whether the entry is in the log with this size and root.

        Parameters
        ----------
        leaf : bytes
            The entry's hash: `leaf_hash(entry)`.
        size : int
            The size on a checkpoint. The hashes alone would not tell a proof for another size.
        root : bytes
            The root on the same checkpoint.

        Returns
        -------
        bool
            Whether the hashes lead from the entry to the root.
        """
        if size != self.size:
            return False
        position, last, hashed = self.index, self.size - 1, leaf  # RFC 9162, section 2.1.3.2
        for beside in self.path:
            if last == 0:
                return False
            if position & 1 or position == last:
                hashed = node_hash(beside, hashed)
                while not position & 1 and position:
                    position, last = position >> 1, last >> 1
            else:
                hashed = node_hash(hashed, beside)
            position, last = position >> 1, last >> 1
        return last == 0 and hashed == root
