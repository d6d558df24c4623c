"""The commitment as docs/specifications/evidence.md defines it, by recursion over the set: slow, and nothing else."""

import hmac
from collections.abc import Iterable
from functools import cache
from hashlib import sha256


def framed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def salt_of(secret: bytes, id_: int | str) -> bytes:
    return hmac.new(secret, framed(b"maxrr/commitment/v1/salt", name_of(id_)), "sha256").digest()


def name_of(id_: int | str) -> bytes:
    return f"int:{id_}".encode() if isinstance(id_, int) else b"str:" + id_.encode("utf-8", "surrogatepass")


def key_of(salt: bytes, id_: int | str) -> bytes:
    return sha256(framed(b"maxrr/commitment/v1/key", salt, name_of(id_))).digest()


def value_of(salt: bytes, record_hash: bytes) -> bytes:
    return sha256(framed(b"maxrr/commitment/v1/value", salt, record_hash)).digest()


def commitment_to(secret: bytes, records: Iterable[tuple[int | str, bytes]]) -> str:
    """The root over records, by their ids and hashes."""
    salted = [(salt_of(secret, id_), id_, record_hash) for id_, record_hash in records]
    return root_of({key_of(salt, id_): value_of(salt, record_hash) for salt, id_, record_hash in salted}).hex()


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
