"""Proofs about a log of RFC 6962: that an entry is in it, and that it only grew. Anybody verifies them, offline."""

import hashlib
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from maxrr.errors import EvidenceError, WrongLog
from maxrr.evidence.exact_text import Bytes32, Plain
from maxrr.files import read_regular
from maxrr.plain_text import count

# The Merkle tree of an append-only log, hashed as in RFC 6962: what is committed to, and what was, stays visible.


EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf_hash(entry: bytes) -> bytes:
    """The hash of one entry.

    Parameters
    ----------
    entry : bytes
        The entry.

    Returns
    -------
    bytes
        SHA-256 of a zero byte and the entry.
    """
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two subtrees side by side: SHA-256 of a byte 1 and both."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def perfect_root(hashes: Sequence[bytes]) -> bytes:
    """The root over a number of hashes that is a power of two."""
    while len(hashes) > 1:
        hashes = [node_hash(hashes[i], hashes[i + 1]) for i in range(0, len(hashes), 2)]
    return hashes[0]


class Subtrees:
    """The roots of all perfect subtrees of a log, by height: all that appending and checking need.

    Parameters
    ----------
    leaves
        The hashes of the entries.
    """

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self.rows: list[list[bytes]] = [[]]
        self.extend(leaves)

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Append the hashes of entries."""
        for leaf in leaves:
            height, root = 0, leaf
            self.rows[0].append(leaf)
            while len(self.rows[height]) % 2 == 0:
                root = node_hash(self.rows[height][-2], root)
                height += 1
                if height == len(self.rows):
                    self.rows.append([])
                self.rows[height].append(root)

    def cut(self, size: int) -> None:
        """Go back to the log of this size."""
        for height, row in enumerate(self.rows):
            del row[size >> height :]

    def get(self, height: int, index: int) -> bytes:
        """The root of the `index`-th perfect subtree of a height."""
        return self.rows[height][index]

    @property
    def root(self) -> bytes:
        """The root of the whole log."""
        return root_of(0, len(self.rows[0]), self.get)


Subtree = Callable[[int, int], bytes]  # the root of the perfect subtree of a height, by its index


@dataclass(frozen=True)
class Inclusion(Plain):
    """Proof that an entry is in a log.

    Attributes
    ----------
    index : int
        Which entry, counted from 0.
    size : int
        The number of entries of the log.
    path : tuple of bytes
        The hashes beside the way from the entry to the root.
    """

    index: int
    size: int
    path: tuple[Bytes32, ...]

    def __post_init__(self) -> None:
        _require_sizes(self.index, self.size, self.path)
        if self.index == self.size:
            raise EvidenceError("the proof is of an entry after the last one")

    def verify(self, leaf: bytes, size: int, root: bytes) -> bool:
        """Whether the entry is in the log with this size and root.

        Parameters
        ----------
        leaf : bytes
            The entry's hash: `leaf_hash(entry)`.
        size : int
            The size on a checkpoint. The hashes alone would not tell a proof for another size.
        root : bytes
            The root on the same checkpoint.

        Returns
        -------
        bool
            Whether the hashes lead from the entry to the root.
        """
        if size != self.size:
            return False
        position, last, hashed = self.index, self.size - 1, leaf  # RFC 9162, section 2.1.3.2
        for beside in self.path:
            if last == 0:
                return False
            if position & 1 or position == last:
                hashed = node_hash(beside, hashed)
                while not position & 1 and position:
                    position, last = position >> 1, last >> 1
            else:
                hashed = node_hash(hashed, beside)
            position, last = position >> 1, last >> 1
        return last == 0 and hashed == root


@dataclass(frozen=True)
class Consistency(Plain):
    """Proof that a log only grew: the earlier one is the beginning of the later one.

    Attributes
    ----------
    earlier, later : int
        The number of entries of both.
    path : tuple of bytes
        The hashes that both roots follow from.
    """

    earlier: int
    later: int
    path: tuple[Bytes32, ...]

    def __post_init__(self) -> None:
        _require_sizes(self.earlier, self.later, self.path)

    def verify(self, earlier: int, earlier_root: bytes, later: int, later_root: bytes) -> bool:
        """Whether the later log begins with the whole earlier one.

        Parameters
        ----------
        earlier, earlier_root
            The size and root on the checkpoint of the earlier log.
        later, later_root
            The size and root on that of the later one.

        Returns
        -------
        bool
            Whether both roots follow from the hashes.
        """
        if (earlier, later) != (self.earlier, self.later):
            return False
        if self.earlier == 0:
            return not self.path and earlier_root == EMPTY_ROOT and (self.later > 0 or later_root == EMPTY_ROOT)
        if self.earlier == self.later:
            return not self.path and earlier_root == later_root
        path = self.path  # from here on RFC 9162, section 2.1.4.2
        if self.earlier & (self.earlier - 1) == 0:
            path = (earlier_root, *path)
        if not path:
            return False
        position, last = self.earlier - 1, self.later - 1
        while position & 1:
            position, last = position >> 1, last >> 1
        before = after = path[0]
        for beside in path[1:]:
            if last == 0:
                return False
            if position & 1 or position == last:
                before, after = node_hash(beside, before), node_hash(beside, after)
                while not position & 1 and position:
                    position, last = position >> 1, last >> 1
            else:
                after = node_hash(after, beside)
            position, last = position >> 1, last >> 1
        return last == 0 and before == earlier_root and after == later_root


def prove_inclusion(index: int, size: int, subtree: Subtree) -> Inclusion:
    """The proof that an entry is in a log of this size, from the roots of its perfect subtrees."""
    start, stop, path = 0, size, list[bytes]()
    while stop - start > 1:
        middle = start + _left_part(stop - start)
        if index < middle:
            path.append(root_of(middle, stop, subtree))
            stop = middle
        else:
            path.append(root_of(start, middle, subtree))
            start = middle
    return Inclusion(index, size, tuple(reversed(path)))


def prove_consistency(earlier: int, later: int, subtree: Subtree) -> Consistency:
    """The proof that a log only grew, from the roots of the later one's perfect subtrees."""
    start, stop, path = 0, later, list[bytes]()
    while 0 < earlier < stop:
        middle = start + _left_part(stop - start)
        if earlier <= middle:
            path.append(root_of(middle, stop, subtree))
            stop = middle
        else:
            path.append(root_of(start, middle, subtree))
            start = middle
    if start > 0:  # the verifier has the root of an earlier log that is one perfect subtree
        path.append(root_of(start, stop, subtree))
    return Consistency(earlier, later, tuple(reversed(path)))


def root_of(start: int, stop: int, subtree: Subtree) -> bytes:
    """The root over the leaves from `start` to before `stop`, a subtree that occurs in a log."""
    if start == stop:
        return EMPTY_ROOT
    parts = []
    while start < stop:
        height = (stop - start).bit_length() - 1
        parts.append(subtree(height, start >> height))
        start += 1 << height
    root = parts.pop()
    while parts:
        root = node_hash(parts.pop(), root)
    return root


def _left_part(count: int) -> int:
    """The largest power of two below a count."""
    return 1 << (count - 1).bit_length() - 1


def _require_sizes(small: int, large: int, path: tuple[bytes, ...]) -> None:
    if not 0 <= small <= large < 1 << 63:
        raise EvidenceError("the proof's numbers are not those of a log")
    if len(path) > large.bit_length() + 1:
        raise EvidenceError("the proof has more hashes than a log of its size can need")


# Where the hashes and entries of a log lie in files, as C2SP's tlog-tiles has it, and how they are read.


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
            raise WrongLog(f"{name} ends within its entry {len(entries)}")
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
                raise WrongLog(f"{name} has {len(data)} bytes instead of {HASH * whole}")
            found = [data[i : i + HASH] for i in range(0, HASH * width, HASH)]
            self._read[level, index] = found
        return found

    def entries(self, index: int) -> list[bytes]:
        """The entries in a bundle."""
        name, data, width, whole = self._file("entries", index, (2 + LONGEST_ENTRY) * WIDTH)
        found = unpack(data, name)
        if len(found) != whole:
            raise WrongLog(f"{name} has {count(len(found), 'entry', 'entries')} instead of {whole}")
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
        raise WrongLog(f"{tile_path(kind, index, width)} is missing")
