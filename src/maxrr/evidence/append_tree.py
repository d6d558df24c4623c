"""The Merkle tree of an append-only log, hashed as in RFC 6962: what is committed to, and what was, stays visible."""

import hashlib
from collections.abc import Iterable, Sequence

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


def perfect_root(hashes: Sequence[bytes]) -> bytes:
    """The root over a number of hashes that is a power of two."""
    while len(hashes) > 1:
        hashes = [node_hash(hashes[i], hashes[i + 1]) for i in range(0, len(hashes), 2)]
    return hashes[0]


class Frontier:
    """The perfect subtrees of a tree, from the largest on the left to the smallest: all that appending needs to know.

    Parameters
    ----------
    subtrees
        The height and root of each, as another frontier has them; none for an empty tree.
    """

    def __init__(self, subtrees: Iterable[tuple[int, bytes]] = ()) -> None:
        self.subtrees = list(subtrees)

    @property
    def size(self) -> int:
        """The number of leaves."""
        return sum(1 << height for height, _ in self.subtrees)

    @property
    def root(self) -> bytes:
        """The root of the whole tree."""
        if not self.subtrees:
            return EMPTY_ROOT
        _, root = self.subtrees[-1]
        for _, left in reversed(self.subtrees[:-1]):
            root = node_hash(left, root)
        return root

    def push(self, leaf: bytes) -> list[tuple[int, bytes]]:
        """Append a leaf hash. Returns height and root of every perfect subtree that ends with it, the leaf first."""
        complete = [(height := 0, root := leaf)]
        while self.subtrees and self.subtrees[-1][0] == height:
            _, left = self.subtrees.pop()
            complete.append((height := height + 1, root := node_hash(left, root)))
        self.subtrees.append((height, root))
        return complete
