"""A flag for each of many rows, of which few are cleared at a time.

Flags never change. Those with some cleared share all else with the ones that they come from: they are kept in blocks,
and only blocks with rows that are cleared are copied. So a million rows cost no more than a thousand.
"""

from typing import Any

import numpy as np

from maxrr.svm.arrays import Bools, Ints

BLOCK = 1 << 11  # rows


class Flags:
    """Flags by row. To NumPy they are an array of booleans, which is made when it is first asked for.

    Parameters
    ----------
    flags : array of bool
        One for each row. They are copied.
    """

    _blocks: list[Bools]
    _rows: int
    _array: Bools | None
    count: int  # of flags that are set

    def __init__(self, flags: Bools) -> None:
        self._array = None
        self._blocks = [np.array(flags[first : first + BLOCK], dtype=bool) for first in range(0, len(flags), BLOCK)]
        self._rows, self.count = len(flags), int(np.count_nonzero(flags))

    @classmethod
    def all_set(cls, rows: int) -> "Flags":
        """Flags that are all set."""
        return cls(np.ones(rows, dtype=bool))

    @classmethod
    def of(cls, flags: "Bools | Flags") -> "Flags":
        """Flags of an array, or these."""
        return flags if isinstance(flags, Flags) else cls(flags)

    def without(self, rows: Ints) -> "Flags":
        """The same with those of these rows, each named once, cleared."""
        other = object.__new__(type(self))
        other._blocks, other._rows, other._array = self._blocks.copy(), self._rows, None
        gone, copied = 0, set()
        for row in rows.tolist():
            number, place = divmod(row, BLOCK)
            if number not in copied:
                copied.add(number)
                other._blocks[number] = other._blocks[number].copy()
            block = other._blocks[number]
            gone += bool(block[place])
            block[place] = False
        other.count = self.count - gone
        return other

    def array(self) -> Bools:
        """All of them, as an array that nobody may change."""
        if self._array is None:
            found = np.concatenate(self._blocks) if self._blocks else np.empty(0, dtype=bool)
            found.flags.writeable = False
            self._array = found
        return self._array

    def at(self, row: int) -> bool:
        """The flag of one row."""
        return bool(self._blocks[row // BLOCK][row % BLOCK])

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, chosen: Any) -> Any:
        if self._array is None and isinstance(chosen, np.ndarray) and chosen.dtype.kind == "i" and len(chosen) <= 16:
            return np.array([self.at(row) for row in chosen.tolist()], dtype=bool)
        return self.array()[chosen]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Bools:
        return np.array(self.array(), dtype=dtype) if copy else np.asarray(self.array(), dtype=dtype)

    def __and__(self, other: Bools) -> Bools:
        return self.array() & other

    def __or__(self, other: Bools) -> Bools:
        return self.array() | other

    def __invert__(self) -> Bools:
        return ~self.array()
