"""A commitment as it will be after a change: known, and provable, before anything is changed."""

from collections.abc import Mapping
from hashlib import sha256

from maxrr.evidence.buckets import ROW, rows_of, subtree_hash
from maxrr.evidence.hashing import EMPTY, NODE
from maxrr.evidence.views import View


class Change(View):
    """The records of a tree after a change. `Tree.change` makes it, and `Tree.apply` makes it so.

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
        kept = tree._hash_at
        places = list(hashes)
        for place in places:  # it grows: the places of each level come after all those of the level below
            above = place >> 1
            if above and above not in hashes:
                found, beside = hashes[place], hashes.get(place ^ 1) or kept(place ^ 1)
                if found == EMPTY or beside == EMPTY:
                    left, right = (beside, found) if place & 1 else (found, beside)
                    hashes[above] = self._joined(above, left, right)
                else:  # as `_joined` would, without the call
                    hashes[above] = sha256(NODE + beside + found if place & 1 else NODE + found + beside).digest()
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
        """Refuse to be asked about, or applied to, anything but the state of the tree that the change was made for.

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
        """As `Tree.get`."""
        self.check_current(self._tree)
        return super().get(key)
