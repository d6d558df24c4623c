"""Where the hashes and entries of a log lie in files, as C2SP's tlog-tiles has it, and how they are read."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from maxrr.errors import EvidenceError
from maxrr.evidence.append_tree import perfect_root
from maxrr.files import read_regular
from maxrr.plain_text import count

HEIGHT = 8
WIDTH = 1 << HEIGHT  # hashes in a full tile, entries in a full bundle
HASH = 32  # bytes
LONGEST_ENTRY = (1 << 16) - 1
Kind = int | Literal["entries"]  # the level of a tile of hashes, or a bundle of entries


def tile_path(kind: Kind, index: int, width: int = WIDTH) -> str:
    """Where a tile lies in the log's folder.

    >>> tile_path(0, 1234067), tile_path("entries", 5, 17)
    ('tile/0/x001/x234/067', 'tile/entries/005.p/17')
    """
    name = f"{index % 1000:03d}"
    while index := index // 1000:
        name = f"x{index % 1000:03d}/{name}"
    return f"tile/{kind}/{name}" if width == WIDTH else f"tile/{kind}/{name}.p/{width}"


def levels(size: int) -> int:
    """How many levels of tiles a log of this size has."""
    return -(-size.bit_length() // HEIGHT)


def edge_of(kind: Kind, size: int) -> int:
    """The index of the tile that the next hash or entry of a log of this size goes to."""
    return size >> HEIGHT * (1 if kind == "entries" else kind + 1)


def width_of(kind: Kind, index: int, size: int) -> int:
    """How many hashes or entries of a log of this size are in a tile: 0 for one that it does not have."""
    level = 0 if kind == "entries" else kind
    return max(0, min(WIDTH, (size >> HEIGHT * level) - WIDTH * index))


def pack(entries: Sequence[bytes]) -> bytes:
    """A bundle of entries: each after its length as two bytes, the higher first."""
    return b"".join(struct.pack(">H", len(entry)) + entry for entry in entries)


def unpack(bundle: bytes, name: str) -> list[bytes]:
    """The entries of a bundle; `name` is what an error calls it."""
    entries, start = list[bytes](), 0
    while start < len(bundle):
        length = int.from_bytes(bundle[start : start + 2])
        start += 2 + length
        if start > len(bundle):
            raise EvidenceError(f"{name} ends within its entry {len(entries)}")
        entries.append(bundle[start - length : start])
    return entries


class Tiles:
    """The tiles in a folder, as a log of a certain size has them. Each is read once.

    Parameters
    ----------
    folder
        The log's folder.
    size : int
        The number of entries, by a checkpoint.
    exact : bool
        Whether each tile must lie where a log of this size has it. Otherwise a full tile does instead of a partial one,
        which is removed when it is full.
    """

    def __init__(self, folder: str | Path, size: int, *, exact: bool = False) -> None:
        self.folder, self.size, self.exact = Path(folder), size, exact
        self._read = dict[tuple[int, int], list[bytes]]()

    def hashes(self, level: int, index: int) -> list[bytes]:
        """The hashes in a tile."""
        if (found := self._read.get((level, index))) is None:
            name, data, width, whole = self._file(level, index, HASH * WIDTH)
            if len(data) != HASH * whole:
                raise EvidenceError(f"{name} has {len(data)} bytes instead of {HASH * whole}")
            found = [data[i : i + HASH] for i in range(0, HASH * width, HASH)]
            self._read[level, index] = found
        return found

    def entries(self, index: int) -> list[bytes]:
        """The entries in a bundle."""
        name, data, width, whole = self._file("entries", index, (2 + LONGEST_ENTRY) * WIDTH)
        found = unpack(data, name)
        if len(found) != whole:
            raise EvidenceError(f"{name} has {count(len(found), 'entry', 'entries')} instead of {whole}")
        return found[:width]

    def subtree(self, height: int, index: int) -> bytes:
        """The root of the `index`-th perfect subtree of a height."""
        level, rest = divmod(height, HEIGHT)
        tile, start = divmod(index << rest, WIDTH)
        return perfect_root(self.hashes(level, tile)[start : start + (1 << rest)])

    def _file(self, kind: Kind, index: int, most: int) -> tuple[str, bytes, int, int]:
        """The name and bytes of a tile, how many of its hashes or entries are this log's, and how many it must have."""
        width = width_of(kind, index, self.size)
        for whole in dict.fromkeys([width] if self.exact else [width, WIDTH]):
            name = tile_path(kind, index, whole)
            try:
                return name, read_regular(self.folder / name, most), width, whole
            except FileNotFoundError:
                continue
            except OSError as error:
                raise EvidenceError(f"{name} cannot be read: {error.strerror}") from error
        raise EvidenceError(f"{tile_path(kind, index, width)} is missing")
