"""The commitment to a set of records: a sparse Merkle tree, kept so that a change costs a few dozen hashes."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import groupby

from maxrr.evidence.buckets import packed, records_of, rows_of, subtree_hash
from maxrr.evidence.changes import Change
from maxrr.evidence.hashing import EMPTY, NODE, SIZE, check_size
from maxrr.evidence.views import View

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
        self._fill(rows, len(rows))

    def __len__(self) -> int:
        return self._records

    @property
    def state(self) -> int:
        """A number that is another one whenever a change was applied."""
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
        """What the tree would be without some records, and with others. The tree stays as it is.

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
        """Make a change.

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

    def _fill(self, rows: Iterable[bytes], records: int) -> None:
        """Build everything, from rows in order."""
        self._state, self._records = 0, records
        self._bits = bits = max((records - 1).bit_length() - 1, 0)  # between one and two records a bucket
        self._hashes, self._buckets = bytearray(2 * SIZE << bits), [b""] * (1 << bits)
        for number, group in groupby(_ascending(rows), self._number_of):
            inside = list(group)
            self._buckets[number] = b"".join(inside)
            self._keep((1 << bits) + number, subtree_hash(inside, bits))
        hashes = self._hashes
        for place in reversed(range(1, 1 << bits)):
            pair = hashes[2 * SIZE * place : 2 * SIZE * (place + 1)]
            left, right = bytes(pair[:SIZE]), bytes(pair[SIZE:])
            if left == EMPTY or right == EMPTY:
                self._keep(place, self._joined(place, left, right))
            else:  # as `_joined` would, without the call
                hashes[SIZE * place : SIZE * (place + 1)] = sha256(NODE + pair).digest()

    def _keep(self, place: int, found: bytes) -> None:
        self._hashes[SIZE * place : SIZE * (place + 1)] = found

    def _hash_at(self, place: int) -> bytes:
        start = SIZE * place
        return bytes(self._hashes[start : start + SIZE])

    def _bucket(self, number: int) -> bytes:
        return self._buckets[number]


def _ascending(rows: Iterable[bytes]) -> Iterator[bytes]:
    """The rows, if the keys ascend."""
    before = b""
    for row in rows:
        key = row[:SIZE]
        if key <= before:
            raise ValueError(f"the key {key.hex()} comes after {before.hex()}: keys ascend, and no two are the same")
        before = key
        yield row
