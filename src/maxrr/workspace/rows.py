"""The table of records: one packed row for each, in a file in which rows can be erased in place.

A row holds all that the workspace knows of one record, so that forgetting it is overwriting one stretch of the file
with zeros. Hashes are kept for blocks of rows: an erasure computes those of the blocks it touches, and no others.

NumPy sees the table as records; it is read, checked and erased as bytes, without.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from maxrr.files import open_regular, write_atomically
from maxrr.files.atomic import IN_PLACE
from maxrr.workspace.errors import content_of, damaged

BLOCK = 256  # rows
LARGE = 1 << 29  # bytes; a larger table is not read into memory
ALIVE, CORE = 1, 2  # what a record is: there; core
LATE, WAITING = 4, 8  # added after the last fit; and core by the rule, from the next fit on

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Table = NDArray[np.void]


@dataclass(frozen=True)
class Layout:
    """What a row is made of: NumPy's names for the types of its parts, and how many features."""

    ids: str
    subjects: str | None
    features: str
    width: int
    weights: str | None = None

    @property
    def size(self) -> int:
        """Bytes of a row."""
        types = [self.ids] if self.subjects is None else [self.ids, self.subjects]
        width = self.width * int(self.features[2:])
        weight = 0 if self.weights is None else 8
        return 1 + 4 + sum(8 if each == "<i8" else 4 * int(each[2:]) for each in types) + 32 + 32 + width + weight

    @property
    def row(self) -> np.dtype[Any]:
        """A row as NumPy has it: what it is, in the first byte, and its label in the next four, are always there."""
        import numpy as np

        whose = [] if self.subjects is None else [("subject", self.subjects)]
        weight = [] if self.weights is None else [("weight", self.weights)]
        return np.dtype(
            [
                ("is", "u1"), ("label", "<i4"), ("id", self.ids), *whose, ("record", "u1", (32,)),
                ("content", "u1", (32,)), ("features", self.features, (self.width,)), *weight,
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
    blocks: list[str]
    erased: tuple[int, ...] = ()

    @classmethod
    def of(cls, file: str, layout: Layout, table: Table) -> Rows:
        """What a file will hold once this table is written to it."""
        blocks = (block_hash(table, block) for block in range(-(-len(table) // BLOCK)))
        return cls(file, layout, len(table), list(blocks))

    def write(self, folder: Path, table: Table) -> None:
        """Write the file whole. Its name is flushed by whoever commits it."""

        def write_blocks(file: BinaryIO) -> None:
            for first in range(0, len(table), BLOCK):
                file.write(table[first : first + BLOCK].tobytes())

        write_atomically(folder / self.file, write_blocks, private=True, flush_name=False)

    def append(self, folder: Path, table: Table) -> None:
        """Write the rows of a longer table that are not in the file yet. They count only once a commit says so."""
        with writable(folder / self.file) as descriptor:
            write_at(descriptor, self.count * self.layout.size, table[self.count :].tobytes())
            os.fsync(descriptor)

    def changed(self, table: Table, erased: Ints) -> dict[int, str]:
        """The hashes of the blocks in which rows are erased, or new rows of a longer table stand, once that is done."""
        by_block: dict[int, list[int]] = {}
        for row in erased.tolist():
            by_block.setdefault(row // BLOCK, []).append(row)
        grown = range(self.count // BLOCK, -(-len(table) // BLOCK)) if len(table) > self.count else range(0)
        return {block: block_hash(table, block, by_block.get(block, ())) for block in sorted({*by_block, *grown})}

    def after(self, table: Table, erased: Ints) -> Rows:
        """What the file will hold once these rows are erased, and the new rows of a longer table are appended."""
        known = dict(enumerate(self.blocks)) | self.changed(table, erased)
        blocks = [known[block] for block in sorted(known)]
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

    def content(self, folder: Path, *, may_map: bool = True) -> bytearray | mmap.mmap:
        """The bytes of the table, not checked yet: a copy, or of a large one a private map.

        What others erase in the file is erased in a map, too: who keeps it beside them needs a copy.
        """
        return copied_or_mapped(folder / self.file, self.count * self.layout.size, may_map)

    def check(self, folder: Path, content: bytearray | mmap.mmap, erased: Iterable[int] = ()) -> None:
        """Overwrite what must be zero, also in rows that were `erased` before, and refuse what was not written."""
        size = self.layout.size
        clear(content, size, {*self.erased, *erased})
        for number, digest in enumerate(self.blocks):
            first, last = number * BLOCK, min((number + 1) * BLOCK, self.count)
            if hashlib.sha256(content[first * size : last * size]).hexdigest() != digest:
                raise damaged(folder / self.file, f"rows {first:,} to {last - 1:,} are not those that were written")


def copied_or_mapped(path: Path, size: int, may_map: bool) -> bytearray | mmap.mmap:
    """The first bytes of a file, which can be changed here without changing the file."""
    if may_map and size > LARGE and not path.is_symlink() and path.is_file() and path.stat().st_size >= size:
        with open_regular(path) as file:
            return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    content = content_of(path)
    if len(content) < size:
        raise damaged(path, f"it ends after {len(content):,} of {size:,} bytes")
    return bytearray(content[:size])


def block_hash(table: Table, block: int, erased: Iterable[int] = ()) -> str:
    """The hash of one block of a table, with zeros in the place of those of its rows that are erased."""
    rows = bytearray(table[block * BLOCK : (block + 1) * BLOCK].tobytes())
    clear(rows, table.dtype.itemsize, (row % BLOCK for row in erased))
    return hashlib.sha256(rows).hexdigest()


def clear(content: bytearray | mmap.mmap, size: int, rows: Iterable[int]) -> None:
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
