"""Proofs about a log of RFC 6962: that an entry is in it, and that it only grew. Anybody verifies them, offline."""

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
        """Go back to the log of this size."""
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
        """The proof that an entry is in the log of this size."""
        start, stop, path = 0, size, list[bytes]()
        while stop - start > 1:
            middle = start + _left_part(stop - start)
            if index < middle:
                path.append(self.root(middle, stop))
                stop = middle
            else:
                path.append(self.root(start, middle))
                start = middle
        return Inclusion(index, size, tuple(reversed(path)))

    def prove_consistency(self, earlier: int, later: int) -> "Consistency":
        """The proof that the log only grew from one size to another."""
        start, stop, path = 0, later, list[bytes]()
        while 0 < earlier < stop:
            middle = start + _left_part(stop - start)
            if earlier <= middle:
                path.append(self.root(middle, stop))
                stop = middle
            else:
                path.append(self.root(start, middle))
                start = middle
        if start > 0:  # the verifier has the root of an earlier log that is one perfect subtree
            path.append(self.root(start, stop))
        return Consistency(earlier, later, tuple(reversed(path)))


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
        _require_sizes(self.index, self.size, self.path)
        if self.index == self.size:
            raise EvidenceError("the proof is of an entry after the last one")

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


@dataclass(frozen=True)
class Consistency(Plain):
    """Proof that a log only grew: the earlier one is the beginning of the later one.

    Attributes
    ----------
    earlier, later : int
        The number of entries of both.
    path : tuple of bytes
        The hashes that both roots follow from.
    """

    earlier: int
    later: int
    path: tuple[Bytes32, ...]

    def __post_init__(self) -> None:
        _require_sizes(self.earlier, self.later, self.path)

    def verify(self, earlier: int, earlier_root: bytes, later: int, later_root: bytes) -> bool:
        """Whether the later log begins with the whole earlier one.

        Parameters
        ----------
        earlier, earlier_root
            The size and root on the checkpoint of the earlier log.
        later, later_root
            The size and root on that of the later one.

        Returns
        -------
        bool
            Whether both roots follow from the hashes.
        """
        if (earlier, later) != (self.earlier, self.later):
            return False
        if self.earlier == 0:
            return not self.path and earlier_root == EMPTY_ROOT and (self.later > 0 or later_root == EMPTY_ROOT)
        if self.earlier == self.later:
            return not self.path and earlier_root == later_root
        path = self.path  # from here on RFC 9162, section 2.1.4.2
        if self.earlier & (self.earlier - 1) == 0:
            path = (earlier_root, *path)
        if not path:
            return False
        position, last = self.earlier - 1, self.later - 1
        while position & 1:
            position, last = position >> 1, last >> 1
        before = after = path[0]
        for beside in path[1:]:
            if last == 0:
                return False
            if position & 1 or position == last:
                before, after = node_hash(beside, before), node_hash(beside, after)
                while not position & 1 and position:
                    position, last = position >> 1, last >> 1
            else:
                after = node_hash(after, beside)
            position, last = position >> 1, last >> 1
        return last == 0 and before == earlier_root and after == later_root


def _left_part(count: int) -> int:
    """The largest power of two below a count."""
    return 1 << (count - 1).bit_length() - 1


def _require_sizes(small: int, large: int, path: tuple[bytes, ...]) -> None:
    if not 0 <= small <= large < 1 << 63:
        raise EvidenceError("the proof's numbers are not those of a log")
    if len(path) > large.bit_length() + 1:
        raise EvidenceError("the proof has more hashes than a log of its size can need")
