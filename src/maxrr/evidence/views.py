"""Reading a commitment: who is in it, with proofs. The same for a tree and for a change that is not yet applied.

The places on the upper levels of a tree are numbered as in a heap: the root is 1, and 2i and 2i + 1 are below i. Each
has a hash that is kept. Below the last of these levels stand buckets, whose inner hashes are computed when needed.
"""

from abc import ABC, abstractmethod
from hashlib import sha256

from maxrr.evidence.buckets import ROW, halves, rows_of, subtree_hash
from maxrr.evidence.hashing import EMPTY, NODE, SIZE, bit, check_size
from maxrr.evidence.proofs import Absence, Presence


class View(ABC):
    """A set of records under one root."""

    _bits: int  # of a key, which say in which bucket it is
    _state: int  # how many changes were applied

    @abstractmethod
    def _hash_at(self, place: int) -> bytes:
        """The hash of the subtree at a place."""

    @abstractmethod
    def _bucket(self, number: int) -> bytes:
        """The rows below a place on the last level."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def root(self) -> bytes:
        """The commitment: 32 bytes that depend on the set of records alone."""
        return self._hash_at(1)

    def get(self, key: bytes) -> bytes | None:
        """Look a record up.

        Parameters
        ----------
        key : bytes
            Its key.

        Returns
        -------
        bytes or None
            Its value, or None if it is not there.
        """
        check_size("a key", key)
        rows = rows_of(self._bucket(self._number_of(key)))
        return next((row[SIZE:] for row in rows if row.startswith(key)), None)

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def presence(self, key: bytes) -> Presence:
        """Prove that a record is there.

        Parameters
        ----------
        key : bytes
            Its key.

        Returns
        -------
        Presence
            The proof, for `root` and the value that `get` gives.

        Raises
        ------
        KeyError
            It is not there.
        """
        siblings, row = self._way_to(key)
        if row is None or not row.startswith(key):
            raise KeyError(f"no record has the key {key.hex()}, so that nobody can prove that it is there")
        return Presence(siblings)

    def absence(self, key: bytes) -> Absence:
        """Prove that a record is not there.

        Parameters
        ----------
        key : bytes
            Its key.

        Returns
        -------
        Absence
            The proof, for `root`.

        Raises
        ------
        KeyError
            It is there.
        """
        siblings, row = self._way_to(key)
        if row is None:
            return Absence(siblings)
        if row.startswith(key):
            raise KeyError(f"a record has the key {key.hex()}, so that nobody can prove its absence")
        return Absence(siblings, (row[:SIZE], row[SIZE:]))

    def _number_of(self, key: bytes) -> int:
        return int.from_bytes(key[:8], "big") >> (64 - self._bits)

    def _several(self, place: int) -> bool:
        """Whether more than one record is below a place. If not, its hash is that of one of its halves, passed up."""
        if place >> self._bits:
            return len(self._bucket(place - (1 << self._bits))) > ROW
        return self._hash_at(place) not in (self._hash_at(2 * place), self._hash_at(2 * place + 1))

    def _joined(self, place: int, left: bytes, right: bytes) -> bytes:
        """The hash at a place, from those of its halves."""
        if left == EMPTY and not self._several(2 * place + 1):
            return right
        if right == EMPTY and not self._several(2 * place):
            return left
        return sha256(NODE + left + right).digest()

    def _way_to(self, key: bytes) -> tuple[tuple[bytes, ...], bytes | None]:
        """The siblings on the way to a key, and the row at its end, which may be another key's."""
        check_size("a key", key)
        siblings: list[bytes] = []
        place, buckets = 1, 1 << self._bits
        while place < buckets and self._several(place):
            place = 2 * place + bit(key, len(siblings))
            siblings.append(self._hash_at(place ^ 1))
        while place < buckets:  # the way ends above the buckets: at the only record below, if there is one
            place = 2 * place + (self._hash_at(2 * place) == EMPTY)
        rows = rows_of(self._bucket(place - buckets))
        while len(rows) > 1:
            depth = len(siblings)
            sides = halves(rows, depth)
            rows, beside = sides[bit(key, depth)], sides[1 - bit(key, depth)]
            siblings.append(subtree_hash(beside, depth + 1))
        return tuple(siblings), rows[0] if rows else None
