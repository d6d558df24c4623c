"""Logs for tests, and a Merkle tree of RFC 6962 written from its recursive definition."""

import hashlib

from maxrr.evidence import SigningKey
from maxrr.evidence.log import LogWriter

ORIGIN = "example.com/maxrr"
KEY = SigningKey.generate()


def tree_hash(entries):
    """MTH of RFC 6962, section 2.1, word for word."""
    if not entries:
        return hashlib.sha256().digest()
    if len(entries) == 1:
        return hashlib.sha256(b"\x00" + entries[0]).digest()
    k = 1
    while 2 * k < len(entries):
        k *= 2
    return hashlib.sha256(b"\x01" + tree_hash(entries[:k]) + tree_hash(entries[k:])).digest()


def digits(start, stop):
    """The entries of Go's log."""
    return [b"%d" % i for i in range(start, stop)]


def numbers(start, stop):
    """Entries of ours."""
    return [b"%032d" % i for i in range(start, stop)]


def log_of(folder, *sizes, key=KEY):
    """A log of the numbers from 0, appended in batches that end at these sizes."""
    writer = LogWriter.create(folder, ORIGIN, key)
    for size in sizes:
        writer.append(numbers(writer.checkpoint.size, size))
    return writer


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def flipped(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
