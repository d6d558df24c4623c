"""The IDX format, in which MNIST and its relatives are published: a magic number, sizes, then the bytes."""

import gzip
import hashlib
import math
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from maxrr.errors import DataError

CHUNK = 1 << 20
LARGEST = 1 << 26  # bytes: no published file has more, and a small forged one might unpack to any number
BYTES = 0x08  # the format's code for elements of one unsigned byte


def read(path: Path, dimensions: int, sha256: str | None = None) -> NDArray[np.uint8]:
    """The array in a file: one ending in .gz is unpacked into memory, a raw one is memory-mapped (copy on write).

    What is hashed is the content after unpacking, so that a copy from anywhere is checked against the same number.
    That takes 0.04 s for 47 MB on a recent processor, 0.2 s on others, and is done at every read.

    Raises
    ------
    DataError
        Not an IDX file of bytes with that many dimensions, too short, too long, damaged, or of another content.
    """
    try:
        with _opened(path) as file:
            header = file.read(4 + 4 * dimensions)
            shape = _shape(path, header, dimensions)
            size = math.prod(shape)
            if size > LARGEST:
                raise DataError(f"{path}: its header promises {size:,} bytes, more than any file of this kind has")
            content = _at_most(file, size + 1) if path.suffix == ".gz" else None
        there = path.stat().st_size - len(header) if content is None else len(content)
        if there != size:
            wrong = f"is truncated: {there:,} bytes of data" if there < size else "goes on after its end"
            raise DataError(f"{path}: {wrong}, where its header promises {size:,}")
        if content is None and size:
            array: NDArray[np.uint8] = np.memmap(path, dtype=np.uint8, mode="c", offset=len(header), shape=shape)
        else:
            array = np.frombuffer(content or bytearray(), dtype=np.uint8).reshape(shape)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None
    digest = hashlib.sha256(header)
    digest.update(array.data)
    if sha256 is not None and digest.hexdigest() != sha256:
        found = digest.hexdigest()
        raise DataError(f"{path}: has another content than published: sha256 {found}, expected {sha256}; replace it")
    return array


def content_sha256(path: Path) -> str:
    """The SHA-256 of what is in the file, after unpacking if it ends in .gz."""
    try:
        with _opened(path) as file:
            digest, size = hashlib.sha256(), 0
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
                if size > 2 * LARGEST:
                    raise DataError(f"{path}: unpacks to more bytes than any file of this kind has")
            return digest.hexdigest()
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else open(path, "rb")


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return DataError(f"{path}: cannot be read: {reason}")


def _shape(path: Path, header: bytes, dimensions: int) -> tuple[int, ...]:
    magic = bytes([0, 0, BYTES, dimensions])
    if not header.startswith(magic[: len(header)]):
        raise DataError(f"{path}: is not the IDX file expected: starts with {header[:4].hex()}, not {magic.hex()}")
    if len(header) < 4 + 4 * dimensions:
        raise DataError(f"{path}: is truncated: {len(header)} bytes, and the header alone has {4 + 4 * dimensions}")
    return tuple(int.from_bytes(header[start : start + 4], "big") for start in range(4, len(header), 4))


def _at_most(file: BinaryIO, size: int) -> bytearray:
    """What is left of the file, or about the first `size` bytes of it: a small file may unpack to a huge one."""
    content = bytearray()
    while len(content) < size and (chunk := file.read(CHUNK)):
        content += chunk
    return content
