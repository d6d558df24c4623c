"""The table of records: one packed row for each, in a file in which rows can be erased in place.

A row holds all that the workspace knows of one record, so that forgetting it is overwriting one stretch of the file
with zeros. Hashes are kept for blocks of rows: an erasure computes those of the blocks it touches, and no others.

NumPy sees the table as records; it is read, checked and erased as bytes, without.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxrr.files import write_atomically
from maxrr.files.erasing import IN_PLACE
from maxrr.workspace.errors import content_of, damaged

BLOCK = 256  # rows
ALIVE, HELD, CORE = 1, 2, 4  # what a record is: there; with features, which the heads were fitted on; core

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Table = NDArray[np.void]


@dataclass(frozen=True)
class Layout:
    """What a row is made of: NumPy's names for the types of ids, subject ids and features, and how many features."""

    ids: str
    subjects: str | None
    features: str
    width: int

    @property
    def size(self) -> int:
        """Bytes of a row."""
        types = [self.ids] if self.subjects is None else [self.ids, self.subjects]
        width = self.width * (4 if self.features == "<f4" else 8)
        return 1 + 4 + sum(8 if each == "<i8" else 4 * int(each[2:]) for each in types) + 32 + 32 + width

    @property
    def row(self) -> np.dtype[Any]:
        """A row as NumPy has it: what it is, in the first byte, and its label in the next four, are always there."""
        import numpy as np

        whose = [] if self.subjects is None else [("subject", self.subjects)]
        return np.dtype(
            [
                ("is", "u1"), ("label", "<i4"), ("id", self.ids), *whose, ("record", "u1", (32,)),
                ("content", "u1", (32,)), ("features", self.features, (self.width,)),
            ]
        )  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """A table in a file: its name, its layout, how many rows it has, their hashes, and which are to be zero.

    `erased` are the rows that the last request forgot. Whoever opens the file overwrites them before anything else:
    so it does not matter whether the process that forgot them came to that.
    """

    file: str
    layout: Layout
    count: int
    blocks: tuple[str, ...]
    erased: tuple[int, ...] = ()

    @classmethod
    def of(cls, file: str, layout: Layout, table: Table) -> Rows:
        """What a file will hold once this table is written to it."""
        blocks = (block_hash(table, block) for block in range(-(-len(table) // BLOCK)))
        return cls(file, layout, len(table), tuple(blocks))

    def write(self, folder: Path, table: Table) -> None:
        """Write the file whole. Its name is flushed by whoever commits it."""
        write_atomically(folder / self.file, table.tobytes(), private=True, flush_name=False)

    def append(self, folder: Path, table: Table) -> None:
        """Write the rows of a longer table that are not in the file yet. They count only once a commit says so."""
        with writable(folder / self.file) as descriptor:
            write_at(descriptor, self.count * self.layout.size, table[self.count :].tobytes())
            os.fsync(descriptor)

    def after(self, table: Table, erased: Ints) -> Rows:
        """What the file will hold once these rows are erased, and the new rows of a longer table are appended."""
        grown = range(self.count // BLOCK, -(-len(table) // BLOCK)) if len(table) > self.count else range(0)
        changed = sorted({int(row) // BLOCK for row in erased} | set(grown))
        known = dict(enumerate(self.blocks))
        known.update((block, block_hash(table, block, erased.tolist())) for block in changed)
        blocks = tuple(known[block] for block in sorted(known))
        return replace(self, count=len(table), blocks=blocks, erased=tuple(erased.tolist()))

    def erase(self, folder: Path) -> None:
        """Overwrite what must be zero, and drop what no commit counted; nothing if that was done already."""
        size = self.layout.size
        with writable(folder / self.file) as descriptor:
            changed = os.fstat(descriptor).st_size > self.count * size
            if changed:
                os.ftruncate(descriptor, self.count * size)
            for first, length in stretches(self.erased):
                if any(os.pread(descriptor, length * size, first * size)):
                    write_at(descriptor, first * size, bytes(length * size))
                    changed = True
            if changed:
                os.fsync(descriptor)

    def owes(self, folder: Path) -> bool:
        """Whether there is something to erase."""
        size = self.layout.size
        descriptor = os.open(folder / self.file, os.O_RDONLY)
        try:
            return os.fstat(descriptor).st_size > self.count * size or any(
                any(os.pread(descriptor, length * size, first * size)) for first, length in stretches(self.erased)
            )
        finally:
            os.close(descriptor)

    def read(self, folder: Path) -> bytearray:
        """The bytes of the table, if it is the one that was written."""
        path = folder / self.file
        size = self.layout.size
        content = content_of(path)
        if len(content) < self.count * size:
            raise damaged(path, f"it ends after {len(content):,} of {self.count * size:,} bytes")
        kept = bytearray(content[: self.count * size])
        clear(kept, size, self.erased)
        for number, digest in enumerate(self.blocks):
            first, last = number * BLOCK, min((number + 1) * BLOCK, self.count)
            if hashlib.sha256(kept[first * size : last * size]).hexdigest() != digest:
                raise damaged(path, f"rows {first:,} to {last - 1:,} are not those that were written")
        return kept


def block_hash(table: Table, block: int, erased: Iterable[int] = ()) -> str:
    """The hash of one block of a table, with zeros in the place of erased rows."""
    rows = bytearray(table[block * BLOCK : (block + 1) * BLOCK].tobytes())
    clear(rows, table.dtype.itemsize, (row % BLOCK for row in erased if row // BLOCK == block))
    return hashlib.sha256(rows).hexdigest()


def clear(content: bytearray, size: int, rows: Iterable[int]) -> None:
    """Overwrite some rows of a table with zeros."""
    for row in rows:
        content[row * size : (row + 1) * size] = bytes(size)


@contextmanager
def writable(path: Path) -> Iterator[int]:
    """A file to change in place. Errors name the file."""
    descriptor = os.open(path, IN_PLACE)
    try:
        yield descriptor
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(descriptor)


def write_at(descriptor: int, start: int, content: bytes) -> None:
    """Write all of the content: a single call may write less than it was given."""
    written = 0
    while written < len(content):
        written += os.pwrite(descriptor, content[written:], start + written)


def stretches(rows: Iterable[int]) -> list[tuple[int, int]]:
    """Rows that follow each other, as first row and length.

    >>> stretches([5, 3, 4, 9])
    [(3, 3), (9, 1)]
    """
    found: list[tuple[int, int]] = []
    for row in sorted(set(rows)):
        if found and found[-1][0] + found[-1][1] == row:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((row, 1))
    return found
