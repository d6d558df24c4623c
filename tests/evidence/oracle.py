"""The commitment as docs/evidence.md defines it, by recursion over the set: slow, and nothing else."""

from functools import cache
from hashlib import sha256


@cache
def bits_of(key: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in key)


def root_of(records: dict[bytes, bytes], depth: int = 0) -> bytes:
    """The hash of the subtree of these records, whose keys are the same up to this depth."""
    if not records:
        return b"\0" * 32
    if len(records) == 1:
        [(key, value)] = records.items()
        return sha256(b"\x00" + key + value).digest()
    return sha256(b"\x01" + b"".join(root_of(side(records, depth, bit), depth + 1) for bit in "01")).digest()


def side(records: dict[bytes, bytes], depth: int, bit: str) -> dict[bytes, bytes]:
    return {key: value for key, value in records.items() if bits_of(key)[depth] == bit}


def siblings_of(records: dict[bytes, bytes], key: bytes) -> list[bytes]:
    """The hashes beside the way to a key, down to where at most one record is left."""
    found: list[bytes] = []
    while len(records) > 1:
        depth = len(found)
        own, others = bits_of(key)[depth], "10"[int(bits_of(key)[depth])]
        found.append(root_of(side(records, depth, others), depth + 1))
        records = side(records, depth, own)
    return found
