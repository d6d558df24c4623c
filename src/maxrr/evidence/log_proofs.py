"""Proofs about a log of RFC 6962: that an entry is in it, and that it only grew. Anybody verifies them, offline."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from maxrr.errors import EvidenceError
from maxrr.evidence.append_tree import EMPTY_ROOT, node_hash
from maxrr.evidence.exact_text import exactly, from_base64, to_base64

Subtree = Callable[[int, int], bytes]  # the root of the perfect subtree of a height, by its index


@dataclass(frozen=True)
class Inclusion:
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
    path: tuple[bytes, ...]

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

    def to_object(self) -> dict[str, Any]:
        """The proof as an object that JSON can say.

        Returns
        -------
        dict
            Its fields; hashes in Base64.
        """
        return {"index": self.index, "size": self.size, "path": [to_base64(one) for one in self.path]}

    @classmethod
    def from_object(cls, said: Any) -> Self:
        """Read a proof strictly.

        Parameters
        ----------
        said
            What `to_object` gave.

        Returns
        -------
        Inclusion
            The proof; it is not verified yet.

        Raises
        ------
        EvidenceError
            It is not of this form.
        """
        said = exactly(said, ("index", "size", "path"), "the inclusion proof")
        return cls(said["index"], said["size"], _path(said["path"]))


@dataclass(frozen=True)
class Consistency:
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
    path: tuple[bytes, ...]

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

    def to_object(self) -> dict[str, Any]:
        """As `Inclusion.to_object`."""
        return {"earlier": self.earlier, "later": self.later, "path": [to_base64(one) for one in self.path]}

    @classmethod
    def from_object(cls, said: Any) -> Self:
        """As `Inclusion.from_object`."""
        said = exactly(said, ("earlier", "later", "path"), "the consistency proof")
        return cls(said["earlier"], said["later"], _path(said["path"]))


def prove_inclusion(index: int, size: int, subtree: Subtree) -> Inclusion:
    """The proof that an entry is in a log of this size, from the roots of its perfect subtrees."""
    start, stop, path = 0, size, list[bytes]()
    while stop - start > 1:
        middle = start + _left_part(stop - start)
        if index < middle:
            path.append(root_of(middle, stop, subtree))
            stop = middle
        else:
            path.append(root_of(start, middle, subtree))
            start = middle
    return Inclusion(index, size, tuple(reversed(path)))


def prove_consistency(earlier: int, later: int, subtree: Subtree) -> Consistency:
    """The proof that a log only grew, from the roots of the later one's perfect subtrees."""
    start, stop, path = 0, later, list[bytes]()
    while 0 < earlier < stop:
        middle = start + _left_part(stop - start)
        if earlier <= middle:
            path.append(root_of(middle, stop, subtree))
            stop = middle
        else:
            path.append(root_of(start, middle, subtree))
            start = middle
    if start > 0:  # the verifier has the root of an earlier log that is one perfect subtree
        path.append(root_of(start, stop, subtree))
    return Consistency(earlier, later, tuple(reversed(path)))


def root_of(start: int, stop: int, subtree: Subtree) -> bytes:
    """The root over the leaves from `start` to before `stop`, a subtree that occurs in a log."""
    if start == stop:
        return EMPTY_ROOT
    parts = []
    while start < stop:
        height = (stop - start).bit_length() - 1
        parts.append(subtree(height, start >> height))
        start += 1 << height
    root = parts.pop()
    while parts:
        root = node_hash(parts.pop(), root)
    return root


def _left_part(count: int) -> int:
    """The largest power of two below a count."""
    return 1 << (count - 1).bit_length() - 1


def _require_sizes(small: Any, large: Any, path: tuple[bytes, ...]) -> None:
    if type(small) is not int or type(large) is not int or not 0 <= small <= large < 1 << 63:
        raise EvidenceError("the proof's numbers are not those of a log")
    if len(path) > large.bit_length() + 1:
        raise EvidenceError("the proof has more hashes than a log of its size can need")


def _path(said: Any) -> tuple[bytes, ...]:
    if not isinstance(said, list):
        raise EvidenceError("the proof's path is not a list")
    return tuple(from_base64(one, "a hash of the proof", length=32) for one in said)
