"""Which rows may hold an id, a person or certain values: found in a few steps, however many rows there are.

An index has a print of 64 bits for each row, sorted, and the row. Prints are spread evenly and nearly always differ, so
that a search gives the rows that are wanted and hardly another; whoever asks compares what is in them. Rows that are
gone may still be found until they are erased: whoever asks knows who is there. So all states of a model with the same
rows share one index.

What is erased is overwritten with the print beside it, which keeps the order, and with no row.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.svm.problem import Flags

Ints = NDArray[np.int64]
Prints = Callable[[str, Ints], Ints]
"""Gives the prints of rows, for the index of a name."""

FACTOR = -7046029254386353131  # the golden ratio of 2^64, odd: no two numbers become the same, and neighbours part
NOBODY = -1  # in the place of a row that was erased
WIDTH = 1 << 64
MANY = 1000  # rows that are erased together: for more it is quicker to make indexes again


def prints_of(names: NDArray[Any]) -> Ints:
    """Prints of ids or subjects, which are integers or texts."""
    if names.dtype.kind == "U":
        return np.array([hash(name) for name in names.tolist()], dtype=np.int64)
    return names.astype(np.int64, copy=False) * FACTOR


def print_of(name: int | str) -> int:
    """The print of one of them.

    >>> print_of(7) == int(prints_of(np.array([7]))[0])
    True
    """
    if isinstance(name, str):
        return hash(name)
    return (name * FACTOR + WIDTH // 2) % WIDTH - WIDTH // 2


def prints_of_values(contents: NDArray[np.uint8]) -> Ints:
    """Prints of the values of records, from the hashes of these: their first eight bytes."""
    return np.ascontiguousarray(contents[:, :8]).view("<i8")[:, 0]


@dataclass(frozen=True, eq=False)
class Layer:
    """Prints in order, and for each its row. Both are overwritten in place when rows are erased."""

    prints: Ints
    rows: Ints

    @classmethod
    def of(cls, prints: Ints, rows: Ints) -> "Layer":
        order = np.argsort(prints, kind="stable")
        return cls(prints[order], rows[order])

    def rows_at(self, wanted: int) -> list[int]:
        """The rows with a print."""
        first, last = self.stretch(wanted)
        if first == last:
            return []
        found: list[int] = self.rows[first:last].tolist()
        return [row for row in found if row != NOBODY]

    def stretch(self, wanted: int) -> tuple[int, int]:
        """From where to where a print stands."""
        prints = self.prints
        first = int(prints.searchsorted(wanted))
        if first == len(prints) or prints[first] != wanted:
            return first, first
        if first + 1 == len(prints) or prints[first + 1] != wanted:
            return first, first + 1
        return first, int(prints.searchsorted(wanted, "right"))

    def erase(self, print_: int, gone: list[int]) -> None:
        """Overwrite what is known of rows with this print; nothing if they are not here."""
        first, last = self.stretch(print_)
        if first == last:
            return
        rows = self.rows[first:last]
        if len(rows) == 1:
            if rows[0] not in gone:
                return
            rows[0] = NOBODY
        for row in gone if len(rows) > 1 else ():
            rows[rows == row] = NOBODY
        if len(rows) == 1 or (rows == NOBODY).all():  # of nobody else: nothing is to remind of it
            beside = first - 1 if first > 0 else last
            self.prints[first:last] = self.prints[beside] if beside < len(self.prints) else 0

    def wipe(self) -> None:
        """Overwrite all of it."""
        self.prints[:] = self.rows[:] = 0


class Index:
    """Rows by print.

    Parameters
    ----------
    layers : tuple of Layer
        All rows are in one of them: those that were there at first, and those that were added.
    """

    def __init__(self, layers: tuple[Layer, ...]) -> None:
        self.layers = layers

    def rows_at(self, wanted: int) -> list[int]:
        """The rows that may hold what has this print."""
        found = self.layers[0].rows_at(wanted)
        for layer in self.layers[1:]:
            found += layer.rows_at(wanted)
        return found

    def pairs(self, wanted: Ints) -> tuple[Ints, Ints]:
        """For many prints: which of them, by place, may be in which row."""
        places, rows = [], []
        for layer in self.layers:
            first, last = (layer.prints.searchsorted(wanted, side) for side in ("left", "right"))
            counts = last - first
            each = np.repeat(np.arange(len(wanted)), counts)
            within = np.arange(len(each)) - np.repeat(np.cumsum(counts) - counts, counts)
            found = layer.rows[np.repeat(first, counts) + within]
            places.append(each[found != NOBODY])
            rows.append(found[found != NOBODY])
        return np.concatenate(places), np.concatenate(rows)

    def with_more(self, prints: Ints, first: int) -> "Index":
        """The same with rows from some row on. Layers that are not much larger than the new one become one with it."""
        layers, newest = list(self.layers), Layer.of(prints, np.arange(first, first + len(prints)))
        while layers and len(layers[-1].rows) < 2 * len(newest.rows):
            last = layers.pop()
            newest = Layer.of(np.concatenate([last.prints, newest.prints]), np.concatenate([last.rows, newest.rows]))
        return Index((*(Layer(layer.prints.copy(), layer.rows.copy()) for layer in layers), newest))

    def erase(self, rows_of: Mapping[int, list[int]]) -> None:
        """Overwrite what is known of rows, which are given by their prints."""
        for layer in self.layers:
            for print_, rows in rows_of.items():
                layer.erase(print_, rows)

    def wipe(self) -> None:
        """Overwrite all of it: it is no longer of use."""
        for layer in self.layers:
            layer.wipe()


class Indexes:
    """The indexes of the same rows, each made when it is first asked for, and which rows are still to be erased.

    Parameters
    ----------
    there : Flags
        The rows that are in use.
    """

    def __init__(self, there: Flags) -> None:
        self.there = there
        self.owed: set[int] = set()
        self.made: dict[str, Index] = {}

    def of(self, name: str, prints: Prints) -> Index:
        """An index by its name; `prints` gives the prints of rows, where it has to be made."""
        if name not in self.made:
            rows = np.flatnonzero(self.there)
            self.made[name] = Index((Layer.of(prints(name, rows), rows),))
        return self.made[name]

    def with_more(self, prints: Prints, there: Flags) -> "Indexes":
        """Indexes of their own for the same rows and more after these."""
        found, first = Indexes(there), len(self.there)
        found.owed = set(self.owed)
        new = np.arange(first, len(there))
        found.made = {name: index.with_more(prints(name, new), first) for name, index in self.made.items()}
        return found

    def erase_few(self, rows: list[int], print_of_row: Callable[[str, int], int]) -> None:
        """Overwrite what indexes know of rows, whose contents must still be there."""
        self.there = self.there.without(np.array(rows))
        for name, index in self.made.items():
            for row in rows:
                print_ = print_of_row(name, row)
                for layer in index.layers:
                    layer.erase(print_, [row])

    def erase(self, rows: Ints, prints: Prints) -> None:
        """Overwrite what indexes know of rows, whose contents must still be there. For many they are made again."""
        self.there = self.there.without(rows)
        if len(rows) > MANY:
            indexes, self.made = self.made, {}
            for index in indexes.values():
                index.wipe()
            return
        for name, index in self.made.items():
            rows_of: dict[int, list[int]] = {}
            for print_, row in zip(prints(name, rows).tolist(), rows.tolist(), strict=True):
                rows_of.setdefault(print_, []).append(row)
            index.erase(rows_of)
