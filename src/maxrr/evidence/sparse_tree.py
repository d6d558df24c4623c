"""The commitment to a set of records: a sparse Merkle tree, kept so that a change costs a few dozen hashes, and short
evidence that a record is in it, or absent: checked with nothing but the root.
"""

import hmac
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby, pairwise

from maxrr.errors import EvidenceError
from maxrr.evidence.exact_text import Bytes32, Plain
from maxrr.files.strict_json import framed

# How records and subtrees of a commitment are hashed, and how keys are read bit by bit: the rule, and why it is this
# one, is in docs/specifications/evidence.md.

SIZE = 32  # bytes of a key, a value and a hash
DEEPEST = 8 * SIZE  # two keys that differ in the last bit only part here
EMPTY = bytes(SIZE)  # a subtree without records
LEAF, NODE = b"\x00", b"\x01"


def leaf_hash(key: bytes, value: bytes) -> bytes:
    """The hash of a subtree with one record, however deep it starts."""
    return sha256(LEAF + key + value).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of a subtree with several records, from those of its halves."""
    return sha256(NODE + left + right).digest()


def bit(key: bytes, depth: int) -> int:
    """Whether a key goes left (0) or right (1) below this depth: its bits, the most significant first.

    >>> [bit(b"\\xa0", depth) for depth in range(4)]
    [1, 0, 1, 0]
    """
    return key[depth >> 3] >> (7 - (depth & 7)) & 1


def shared_bits(one: bytes, other: bytes) -> int:
    """How many bits two keys of the same length have in common before they first differ.

    >>> shared_bits(b"\\xa0", b"\\xb0")
    3
    """
    return 8 * len(one) - (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_length()


def check_size(what: str, given: object) -> None:
    """Refuse a key, value or hash that is not 32 bytes."""
    if not isinstance(given, bytes) or len(given) != SIZE:
        found = f"{len(given)} bytes" if isinstance(given, bytes) else type(given).__name__
        raise ValueError(f"{what} is {SIZE} bytes, and this is {found}")


# Short evidence that a record is in a commitment, or that it is absent. The hashes beside the way from the root to
# where the record stands, or would stand, are its siblings. Of each statement about a commitment there is one proof.


@dataclass(frozen=True, slots=True)
class Presence(Plain):
    """A proof that a record is in a commitment, with a certain value.

    Attributes
    ----------
    siblings : tuple of bytes
        The hashes beside the way to the record, from the root down.
    """

    siblings: tuple[Bytes32, ...]

    def __post_init__(self) -> None:
        _check_siblings(self.siblings, DEEPEST)

    def verify(self, root: bytes, key: bytes, value: bytes) -> bool:
        """Whether this proves that the record with this key and value is in the commitment with this root."""
        check_size("a root", root)
        check_size("a key", key)
        check_size("a value", value)
        return _root_above(leaf_hash(key, value), key, self.siblings) == root


@dataclass(frozen=True, slots=True)
class Leaf:
    """A record at the end of a way."""

    key: Bytes32
    value: Bytes32


@dataclass(frozen=True, slots=True)
class Absence(Plain):
    """A proof that no record with a certain key is in a commitment.

    Attributes
    ----------
    siblings : tuple of bytes
        The hashes beside the way to where the record would stand, from the root down.
    other : Leaf or None
        The record that stands at the end of the way; None if there is none.
    """

    siblings: tuple[Bytes32, ...]
    other: Leaf | None

    def __post_init__(self) -> None:
        # Beside an empty place stand several records, which part further down; so do the keys of two records.
        _check_siblings(self.siblings, DEEPEST - 1)

    def verify(self, root: bytes, key: bytes) -> bool:
        """Whether this proves that the commitment with this root has no record with this key."""
        check_size("a root", root)
        check_size("a key", key)
        if self.other is None:
            return _root_above(EMPTY, key, self.siblings) == root
        shared = shared_bits(key, self.other.key)
        if not len(self.siblings) <= shared < DEEPEST:
            return False  # the other one does not stand in this place, or is the record itself
        return _root_above(leaf_hash(self.other.key, self.other.value), key, self.siblings) == root


def _root_above(place: bytes, key: bytes, siblings: tuple[bytes, ...]) -> bytes:
    """Compute the root of a tree with this hash in the place of a key, beside these siblings."""
    for depth in reversed(range(len(siblings))):
        beside = siblings[depth]
        place = node_hash(beside, place) if bit(key, depth) else node_hash(place, beside)
    return place


def _check_siblings(siblings: tuple[bytes, ...], most: int) -> None:
    if len(siblings) > most:
        raise EvidenceError(f"a proof of this kind has at most {most} siblings, and this one has {len(siblings)}")
    if siblings and siblings[-1] == EMPTY:
        raise EvidenceError("the last sibling is empty: what stands beside it would stand further up")


# Where a record stands in a commitment, and as what: its key and its value, under a salt of its own.
#
# Whoever has the salt of a record can look it up; whoever has not learns nothing about it from keys and values, not
# even by trying out ids and records. All salts come from one secret, which stays with the operator.


LEAST = 32  # bytes of a secret


_LENGTH = SIZE.to_bytes(8, "little")  # before a salt and before a hash
_SALT = framed(b"maxrr/commitment/v1/salt")  # how what is hashed begins
_KEY = framed(b"maxrr/commitment/v1/key") + _LENGTH
_VALUE = framed(b"maxrr/commitment/v1/value") + _LENGTH


def salt_of(secret: bytes, identifier: bytes) -> bytes:
    """The salt of a record: HMAC-SHA-256 of its id under the secret.

    Parameters
    ----------
    secret : bytes
        At least 32 bytes that nobody can guess. Who has it can find out which ids are in a commitment.
    identifier : bytes
        The record id as bytes, no two ids as the same.

    Returns
    -------
    bytes
        32 bytes. They may be given to whoever may know that this record is, or was, in the commitment.

    Raises
    ------
    ValueError
        The secret is shorter.
    """
    if len(secret) < LEAST:
        raise ValueError(f"a secret of {len(secret)} bytes can be guessed: it needs {LEAST}")
    return hmac.digest(secret, _SALT + len(identifier).to_bytes(8, "little") + identifier, "sha256")


def key_of(salt: bytes, identifier: bytes) -> bytes:
    """Where a record stands in a commitment.

    Parameters
    ----------
    salt : bytes
        The record's salt.
    identifier : bytes
        The record id, as for the salt.

    Returns
    -------
    bytes
        Its key: 32 bytes.

    Raises
    ------
    ValueError
        The salt is not 32 bytes.

    Examples
    --------
    >>> key_of(bytes(32), b"int:7").hex()[:16]
    '2b57686743db6d93'
    """
    check_size("a salt", salt)
    return sha256(_KEY + salt + len(identifier).to_bytes(8, "little") + identifier).digest()


def value_of(salt: bytes, record_hash: bytes) -> bytes:
    """What a commitment says of a record.

    It is salted as well: a proof that a record is absent may show the key and the value of a neighbour, and the bare
    hash of a record can be found by trying out records.

    Parameters
    ----------
    salt : bytes
        The record's salt.
    record_hash : bytes
        SHA-256 of the record.

    Returns
    -------
    bytes
        Its value: 32 bytes.

    Raises
    ------
    ValueError
        The salt or the hash is not 32 bytes.
    """
    check_size("a salt", salt)
    check_size("the hash of a record", record_hash)
    return sha256(_VALUE + salt + _LENGTH + record_hash).digest()


# A few records that stand next to each other in a commitment: rows of key and value, in order of the keys.


ROW = 2 * SIZE  # bytes: a key and its value


def packed(records: Mapping[bytes, bytes]) -> bytes:
    """Join records into one string of rows."""
    return b"".join(key + records[key] for key in sorted(records))


def rows_of(bucket: bytes) -> list[bytes]:
    """Split a string into rows."""
    return [bucket[start : start + ROW] for start in range(0, len(bucket), ROW)]


def records_of(rows: Iterable[bytes]) -> dict[bytes, bytes]:
    """Map each row's key to its value."""
    return {row[:SIZE]: row[SIZE:] for row in rows}


def subtree_hash(rows: list[bytes], depth: int) -> bytes:
    """The hash of the subtree of these rows, whose keys are the same up to this depth."""
    if len(rows) < 2:
        return sha256(LEAF + rows[0]).digest() if rows else EMPTY
    left, right = halves(rows, depth)
    return sha256(NODE + subtree_hash(left, depth + 1) + subtree_hash(right, depth + 1)).digest()


def halves(rows: list[bytes], depth: int) -> tuple[list[bytes], list[bytes]]:
    """The rows that go left and those that go right below this depth."""
    at, mask = depth >> 3, 128 >> (depth & 7)
    if rows[0][at] & mask:
        return [], rows
    if not rows[-1][at] & mask:
        return rows, []
    cut = bisect_left(rows, mask, key=lambda row: row[at] & mask) if len(rows) > 2 else 1
    return rows[:cut], rows[cut:]


# Reading a commitment: who is in it, with proofs. The same for a tree and for a change that is not yet applied.
#
# The places on the upper levels of a tree are numbered as in a heap: the root is 1, and 2i and 2i + 1 are below i. Each
# has a hash that is kept. Below the last of these levels stand buckets, whose inner hashes are computed when needed.


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
            return Absence(siblings, None)
        if row.startswith(key):
            raise KeyError(f"a record has the key {key.hex()}, so that nobody can prove its absence")
        return Absence(siblings, Leaf(row[:SIZE], row[SIZE:]))

    def _number_of(self, key: bytes) -> int:
        return int.from_bytes(key[:8], "big") >> (64 - self._bits)

    def _several(self, place: int) -> bool:
        """Whether more than one record is below a place. The hash of a place with one record is that of the half which
        has it.
        """
        if place >> self._bits:
            return len(self._bucket(place - (1 << self._bits))) > ROW
        return self._hash_at(place) not in (self._hash_at(2 * place), self._hash_at(2 * place + 1))

    def _joined(self, place: int, left: bytes, right: bytes) -> bytes:
        """Compute the hash at a place from the hashes of its halves."""
        if left == EMPTY and not self._several(2 * place + 1):
            return right
        if right == EMPTY and not self._several(2 * place):
            return left
        return sha256(NODE + left + right).digest()

    def _way_to(self, key: bytes) -> tuple[tuple[bytes, ...], bytes | None]:
        """Return the siblings on the way to a key, and the row at its end, which may have another key."""
        check_size("a key", key)
        siblings: list[bytes] = []
        place, buckets, here = 1, 1 << self._bits, self.root
        while place < buckets:
            below = self._hash_at(2 * place), self._hash_at(2 * place + 1)
            if here in below:  # passed up from the only record there
                break
            side = bit(key, len(siblings))
            place, here = 2 * place + side, below[side]
            siblings.append(below[1 - side])
        while place < buckets:  # the way ends above the buckets: at the only record below, if there is one
            place = 2 * place + (self._hash_at(2 * place) == EMPTY)
        rows = rows_of(self._bucket(place - buckets))
        while len(rows) > 1:
            depth = len(siblings)
            sides = halves(rows, depth)
            rows, beside = sides[bit(key, depth)], sides[1 - bit(key, depth)]
            siblings.append(subtree_hash(beside, depth + 1))
        return tuple(siblings), rows[0] if rows else None


# A commitment as it will be after a change: known, and provable, before anything is changed.


class Change(View):
    """The records of a tree after a change that `Tree.change` computed and `Tree.apply` carries out.

    It can be asked until a change of its tree is applied, this one or another; then ask the tree. Its root stays.

    Parameters
    ----------
    tree : Tree
        The tree that is to be changed.
    buckets : mapping from int to bytes
        What will be in those of its buckets that change.

    Attributes
    ----------
    hashes : dict from int to bytes
        The hashes above these buckets, by their places.
    """

    def __init__(self, tree: View, buckets: Mapping[int, bytes]) -> None:
        self._tree, self._state, self._bits = tree, tree._state, tree._bits
        self._records = len(tree)
        self.buckets = buckets
        self.hashes = hashes = dict[int, bytes]()
        for number, bucket in buckets.items():
            rows = rows_of(bucket)
            self._records += len(rows) - len(tree._bucket(number)) // ROW
            hashes[(1 << self._bits) + number] = subtree_hash(rows, self._bits)
        places = list(hashes)
        for place in places:  # it grows: the places of each level come after all those of the level below
            above = place >> 1
            if above and above not in hashes:
                found, beside = hashes[place], self._hash_at(place ^ 1)
                hashes[above] = self._joined(above, *((beside, found) if place & 1 else (found, beside)))
                places.append(above)
        self._root = self._hash_at(1)

    def __len__(self) -> int:
        return self._records

    @property
    def root(self) -> bytes:
        """The commitment after the change."""
        return self._root

    def is_current(self) -> bool:
        """Whether its tree is still as it was when the change was computed.

        Returns
        -------
        bool
            False as soon as a change was applied, this one or another.
        """
        return self._tree._state == self._state

    def check_current(self, tree: View) -> None:
        """Refuse a tree other than the one, in the state, that the change was computed for.

        Parameters
        ----------
        tree : Tree
            The tree as it is now.

        Raises
        ------
        ValueError
            It is another one, or in another state.
        """
        if tree is not self._tree or not self.is_current():
            raise ValueError("the change is one of another state of the tree: compute it again for the present one")

    def _hash_at(self, place: int) -> bytes:
        return self.hashes.get(place) or self._tree._hash_at(place)

    def _bucket(self, number: int) -> bytes:
        return self.buckets[number] if number in self.buckets else self._tree._bucket(number)

    def _way_to(self, key: bytes) -> tuple[tuple[bytes, ...], bytes | None]:
        self.check_current(self._tree)
        return super()._way_to(key)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, as `Tree.get` does."""
        self.check_current(self._tree)
        return super().get(key)


FULL = 8  # records a bucket on average, from which on there are more buckets


class Tree(View):
    """A set of records, each a key with a value, and the hashes above them.

    One thread may work with a tree at a time. Roots and proofs are values: they stay what they are, whatever becomes of
    the tree.

    Parameters
    ----------
    records : iterable of pairs of bytes, optional
        Key and value of each record, 32 bytes each, in any order.

    Raises
    ------
    ValueError
        A key or a value is not 32 bytes, or two records have the same key.

    Examples
    --------
    >>> tree = Tree([(bytes(31) + b"a", bytes(32)), (bytes(31) + b"b", bytes(32))])
    >>> change = tree.change(remove=[bytes(31) + b"a"])
    >>> change.absence(bytes(31) + b"a").verify(change.root, bytes(31) + b"a")
    True
    >>> tree.apply(change)
    >>> len(tree), tree.root == change.root
    (1, True)
    """

    _records: int
    _hashes: bytearray  # by place, from 0, where nothing stands
    _buckets: list[bytes]

    def __init__(self, records: Iterable[tuple[bytes, bytes]] = ()) -> None:
        rows = []
        for key, value in records:
            check_size("a key", key)
            check_size("a value", value)
            rows.append(key + value)
        rows.sort()
        for row, following in pairwise(rows):
            if row[:SIZE] == following[:SIZE]:
                raise ValueError(f"two records have the key {row[:SIZE].hex()}")
        self._state, self._records = 0, len(rows)
        self._bits = bits = max((len(rows) - 1).bit_length() - 1, 0)  # between one and two records a bucket
        self._hashes, self._buckets = bytearray(2 * SIZE << bits), [b""] * (1 << bits)
        for number, group in groupby(rows, self._number_of):
            inside = list(group)
            self._buckets[number] = b"".join(inside)
            self._keep((1 << bits) + number, subtree_hash(inside, bits))
        for place in reversed(range(1, 1 << bits)):
            self._keep(place, self._joined(place, self._hash_at(2 * place), self._hash_at(2 * place + 1)))

    def __len__(self) -> int:
        return self._records

    @property
    def state(self) -> int:
        """A number that every applied change makes another."""
        return self._state

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All records.

        Yields
        ------
        tuple of two bytes
            Key and value of each, in ascending order of the keys.
        """
        for bucket in self._buckets:
            yield from records_of(rows_of(bucket)).items()

    def change(self, remove: Collection[bytes] = (), put: Mapping[bytes, bytes] | None = None) -> Change:
        """Compute the tree without some records and with others. This tree stays as it is.

        Parameters
        ----------
        remove : collection of bytes
            The keys of records that go.
        put : mapping from bytes to bytes
            The values, by their keys, of records that come or take the place of those with the same key.

        Returns
        -------
        Change
            The new root, proofs of who is in it and who is not, and what `apply` needs.

        Raises
        ------
        ValueError
            A record to be removed is not there or is to be put as well, or something is not 32 bytes.
        """
        touched: dict[int, dict[bytes, bytes]] = {}

        def around(key: bytes) -> dict[bytes, bytes]:
            check_size("a key", key)
            number = self._number_of(key)
            if number not in touched:
                touched[number] = records_of(rows_of(self._buckets[number]))
            return touched[number]

        put = put or {}
        for key in set(remove):
            if around(key).pop(key, None) is None or key in put:
                raise ValueError(f"the record with the key {key.hex()} is not there, or is to be removed and put")
        for key, value in put.items():
            check_size("a value", value)
            around(key)[key] = value
        return Change(self, {number: packed(records) for number, records in touched.items()})

    def apply(self, change: Change) -> None:
        """Change the tree.

        Parameters
        ----------
        change : Change
            A change of this tree as it is now.

        Raises
        ------
        ValueError
            The change was computed for another tree, or before another change was made. Nothing was done.

        Notes
        -----
        If it is interrupted, the tree is in a `state` of its own, and of no use: build another.
        """
        change.check_current(self)
        self._state += 1  # until it is done, this is no state that anybody knows
        hashes = self._hashes
        for place, found in change.hashes.items():
            hashes[SIZE * place : SIZE * (place + 1)] = found
        for number, bucket in change.buckets.items():
            self._buckets[number] = bucket
        self._records = len(change)
        if self._records > FULL << self._bits:
            grown = Tree(self.items())
            self._bits, self._hashes, self._buckets = grown._bits, grown._hashes, grown._buckets
        self._state += 1

    def _keep(self, place: int, found: bytes) -> None:
        self._hashes[SIZE * place : SIZE * (place + 1)] = found

    def _hash_at(self, place: int) -> bytes:
        start = SIZE * place
        return bytes(self._hashes[start : start + SIZE])

    def _bucket(self, number: int) -> bytes:
        return self._buckets[number]
