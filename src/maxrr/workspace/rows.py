"""The table of records: one packed row for each, in a file in which rows can be erased in place.

A row holds all that the workspace knows of one record, so that forgetting it is overwriting one stretch of the file
with zeros. Hashes are kept for blocks of rows: an erasure computes those of the blocks it touches, and no others.

NumPy sees the table as records; it is read, checked and erased as bytes, without.
"""

from __future__ import annotations

import hmac
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from maxrr.files import open_regular, write_atomically
from maxrr.files.atomic import writable, write_at
from maxrr.files.strict_json import Constraint
from maxrr.workspace.errors import content_of, damaged

BLOCK = 256  # rows
WIDEST = 1 << 24  # features of a record are fewer
LARGE = 1 << 29  # bytes; a larger table is not read into memory
ALIVE, CORE = 1, 2  # what a record is: there; core
WAITING = 4  # added after the last fit, and core by its rule from the next fit on

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Table = NDArray[np.void]

IdType = Annotated[str, Constraint("a type of ids", re.compile("<i8|<U[1-9][0-9]{0,6}").fullmatch)]


@dataclass(frozen=True)
class Layout:
    """The NumPy types of a row's parts, and the number of features."""

    ids: IdType
    subjects: IdType | None
    features: Annotated[str, Constraint("a type of features", ("<f2", "<f4", "<f8").__contains__)]
    width: Annotated[int, Constraint("a number of features", range(1, WIDEST).__contains__)]
    weights: Annotated[str, Constraint("a type of weights", ("<f8",).__contains__)] | None = None

    @property
    def size(self) -> int:
        """Bytes of a row."""
        width = self.width * int(self.features[2:])
        weight = 0 if self.weights is None else 8
        return self.subject.stop + 32 + 32 + width + weight

    @property
    def subject(self) -> range:
        """Which bytes of a row are the subject id; empty where there is none."""
        first = 1 + 4 + bytes_of(self.ids)
        return range(first, first + (0 if self.subjects is None else bytes_of(self.subjects)))

    @property
    def row(self) -> np.dtype[Any]:
        """The NumPy type of a row. Its first byte says what the record is, and the next four are its label."""
        import numpy as np

        whose = [] if self.subjects is None else [("subject", self.subjects)]
        weight = [] if self.weights is None else [("weight", self.weights)]
        return np.dtype(
            [
                ("is", "u1"), ("label", "<i4"), ("id", self.ids), *whose, ("record", "u1", (32,)),
                ("content", "u1", (32,)), ("features", self.features, (self.width,)), *weight,
            ]
        )  # fmt: skip


def bytes_of(ids: str) -> int:
    """Return how many bytes an id of a type takes."""
    return 8 if ids == "<i8" else 4 * int(ids[2:])


@dataclass(frozen=True)
class Rows:
    """The file of rows: its name, layout and length, the hashes of its blocks, and which rows are erased.

    Hashes are HMACs under the workspace's `key`: those of blocks with rows that are gone stay in the history. `erased`
    are all rows that were forgotten since the file was written. Whoever opens the file overwrites those that are not
    zero: it does not matter whether the process that forgot them came to that, or who has put them back.
    """

    file: str
    layout: Layout
    count: int
    blocks: list[str]
    key: bytes = field(repr=False)
    erased: set[int] = field(default_factory=set)

    def write(self, folder: Path, table: Table) -> None:
        """Write the whole file. The caller flushes its name."""

        def write_blocks(file: BinaryIO) -> None:
            for first in range(0, len(table), BLOCK):
                file.write(table[first : first + BLOCK].tobytes())

        write_atomically(folder / self.file, write_blocks, private=True, flush_name=False)

    def append(self, folder: Path, table: Table) -> None:
        """Write and flush rows that the file lacks. They count only once a commit says so."""
        with writable(folder / self.file) as descriptor:
            write_at(descriptor, self.count * self.layout.size, table[self.count :].tobytes())
            os.fsync(descriptor)

    def changed(self, table: Table, erased: Ints) -> dict[str, str]:
        """Return the new hashes of the blocks in which rows were erased or appended."""
        by_block: dict[int, list[int]] = {}
        for row in erased.tolist():
            by_block.setdefault(row // BLOCK, []).append(row)
        grown = range(self.count // BLOCK, -(-len(table) // BLOCK)) if len(table) > self.count else range(0)
        found = {}
        for block in sorted({*by_block, *grown}):
            content = bytearray(table[block * BLOCK : (block + 1) * BLOCK].tobytes())
            clear(content, self.layout.size, (row % BLOCK for row in by_block.get(block, ())))
            found[str(block)] = self.hash_of(content)
        return found

    def hash_of(self, block: bytes | bytearray) -> str:
        return hmac.digest(self.key, b"maxrr rows" + block, "sha256").hex()

    def change(self, blocks: Mapping[str, str], erased: Iterable[int]) -> None:
        """Take over the erased rows and the new hashes of a commit."""
        self.erased.update(erased)
        for block, digest in blocks.items():
            if int(block) == len(self.blocks):
                self.blocks.append(digest)
            else:
                self.blocks[int(block)] = digest

    def erase(self, folder: Path, rows: Iterable[int]) -> None:
        """Overwrite rows with zeros, and cut off rows that no commit counted."""
        size = self.layout.size
        with writable(folder / self.file) as descriptor:
            os.ftruncate(descriptor, self.count * size)
            for row in sorted(set(rows)):
                write_at(descriptor, row * size, bytes(size))
            os.fsync(descriptor)

    def is_longer(self, folder: Path) -> bool:
        """Whether the file has more rows than were committed."""
        return os.stat(folder / self.file).st_size > self.count * self.layout.size

    def not_erased(self, content: bytearray | mmap.mmap) -> list[int]:
        """Return the rows that were erased, and are not zero in the content of the file."""
        size = self.layout.size
        nothing = bytes(size)
        return [row for row in sorted(self.erased) if content[row * size : (row + 1) * size] != nothing]

    def content(self, folder: Path, *, may_map: bool = True) -> bytearray | mmap.mmap:
        """Return the bytes of the rows, not checked yet: a copy, or a private map of a large file.

        What others erase in the file is erased in a map, too: who keeps it beside them needs a copy.
        """
        path, size = folder / self.file, self.count * self.layout.size
        if may_map and size > LARGE and not path.is_symlink() and path.is_file() and path.stat().st_size >= size:
            with open_regular(path) as file:
                return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        content = content_of(path)
        if len(content) < size:
            raise damaged(path, f"it ends after {len(content):,} of {size:,} bytes")
        return bytearray(content[:size])

    def kinds_and_people(self, content: bytearray | mmap.mmap) -> Iterator[tuple[int, bytes]]:
        """Yield what each record is, and the bytes of its subject id, from the content of the file."""
        whose = self.layout.subject
        for first in range(0, self.count * self.layout.size, self.layout.size):
            yield content[first], bytes(content[first + whose.start : first + whose.stop])

    def check(self, folder: Path, content: bytearray | mmap.mmap) -> None:
        """Zero the erased rows in the content of the file, and refuse blocks that were not written so."""
        size = self.layout.size
        clear(content, size, self.erased)
        for number, digest in enumerate(self.blocks):
            first, last = number * BLOCK, min((number + 1) * BLOCK, self.count)
            if self.hash_of(content[first * size : last * size]) != digest:
                raise damaged(folder / self.file, f"rows {first:,} to {last - 1:,} are not those that were written")


def clear(content: bytearray | mmap.mmap, size: int, rows: Iterable[int]) -> None:
    """Overwrite some rows of a table with zeros."""
    for row in rows:
        content[row * size : (row + 1) * size] = bytes(size)
