"""A set of record ids from which few leave at a time, as the ids of records that were added since the last fit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.svm.problem import Flags

Ids = NDArray[Any]


class IdSet:
    """Ids that never change: one with fewer shares the array. To NumPy it is the array of its ids, sorted.

    Parameters
    ----------
    ids : array
        The ids, each once, in any order.
    """

    def __init__(self, ids: Ids) -> None:
        self._sorted = np.sort(ids)
        self._there = Flags.all_set(len(ids))

    def __len__(self) -> int:
        return self._there.count

    def array(self) -> Ids:
        """The ids, sorted."""
        return self._sorted[self._there.array()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Ids:
        return np.asarray(self.array(), dtype=dtype)

    def tolist(self) -> list[Any]:
        """The ids, sorted, as Python has them."""
        found: list[Any] = self.array().tolist()
        return found

    def places(self, ids: Ids) -> NDArray[np.int64]:
        """Where those of these ids stand that are in the set."""
        known = self._sorted
        if not len(self) or ids.dtype.kind != known.dtype.kind:
            return np.empty(0, dtype=np.int64)
        at = np.minimum(known.searchsorted(ids), len(known) - 1)
        found: NDArray[np.int64] = at[known[at] == ids]
        there: NDArray[np.bool_] = self._there[found]
        return found[there]

    def without(self, ids: Ids) -> "IdSet":
        """The same without these."""
        places = self.places(ids)
        if not len(places):
            return self
        return self._of(self._sorted, self._there.without(places))

    def with_more(self, ids: Ids) -> "IdSet":
        """The same with these as well."""
        return IdSet(np.union1d(self.array(), ids)) if len(ids) else self

    def erase(self, ids: Ids) -> None:
        """Overwrite these ids in the array, which other sets share, with the one before each: it stays sorted.

        Of equal ids the first is the one that may be there.
        """
        known = self._sorted
        least = "" if known.dtype.kind == "U" else np.iinfo(np.int64).min
        for id_ in ids:
            first, last = (int(known.searchsorted(id_, side)) for side in ("left", "right"))
            known[first:last] = known[first - 1] if first > 0 else least

    @classmethod
    def _of(cls, known: Ids, there: Flags) -> "IdSet":
        found = object.__new__(cls)
        found._sorted, found._there = known, there
        return found
