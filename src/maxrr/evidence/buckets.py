"""A few records that stand next to each other in a commitment: rows of key and value, in order of the keys."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from hashlib import sha256

from maxrr.evidence.hashing import EMPTY, LEAF, NODE, SIZE

ROW = 2 * SIZE  # bytes: a key and its value


def packed(records: Mapping[bytes, bytes]) -> bytes:
    """The records as one string of rows."""
    return b"".join(key + records[key] for key in sorted(records))


def rows_of(bucket: bytes) -> list[bytes]:
    """The rows in such a string."""
    return [bucket[start : start + ROW] for start in range(0, len(bucket), ROW)]


def records_of(rows: Iterable[bytes]) -> dict[bytes, bytes]:
    """Value by key."""
    return {row[:SIZE]: row[SIZE:] for row in rows}


def subtree_hash(rows: list[bytes], depth: int) -> bytes:
    """The hash of the subtree of these rows, whose keys are the same up to this depth."""
    if len(rows) < 2:
        return sha256(LEAF + rows[0]).digest() if rows else EMPTY
    left, right = halves(rows, depth)
    return sha256(NODE + subtree_hash(left, depth + 1) + subtree_hash(right, depth + 1)).digest()


def halves(rows: list[bytes], depth: int) -> tuple[list[bytes], list[bytes]]:
    """The rows that go left and those that go right below this depth."""
    at, mask = depth >> 3, 128 >> (depth & 7)
    if rows[0][at] & mask:
        return [], rows
    if not rows[-1][at] & mask:
        return rows, []
    cut = bisect_left(rows, mask, key=lambda row: row[at] & mask) if len(rows) > 2 else 1
    return rows[:cut], rows[cut:]
