"""Arrays for worker processes, in shared memory.

A pipe takes an array in hundreds of small pieces, and a busy interpreter lets each of them wait. Where the system has
memory without a name (Linux), the array is written there once and only its address is sent; the memory is freed when
the process that made it ends, however it ends. Elsewhere the array itself is sent.
"""

import hashlib
import mmap
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.errors import EngineError


@dataclass(frozen=True)
class Parcel:
    """An array on its way to another process of the same user."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sender: int
    descriptor: int
    content: NDArray[Any] | None  # where there is no such memory

    @classmethod
    def of(cls, array: NDArray[Any]) -> "Parcel":
        """A parcel with this array. Close it when the other process has opened it."""
        if not hasattr(os, "memfd_create") or array.size == 0:
            return cls(array.shape, array.dtype, os.getpid(), -1, array)
        descriptor = os.memfd_create("maxrr")
        try:
            with open(descriptor, "wb", closefd=False) as memory:
                memory.write(np.ascontiguousarray(array).data)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(array.shape, array.dtype, os.getpid(), descriptor, None)

    def opened(self) -> NDArray[Any]:
        """The array, in the process that it was sent to."""
        if self.content is not None:
            return self.content
        return np.asarray(np.memmap(f"/proc/{self.sender}/fd/{self.descriptor}", self.dtype, "r", shape=self.shape))

    def close(self) -> None:
        """Let go of the memory, in the process that made it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)


def pack(value: Any) -> Any:
    """A value ready to be sent: arrays as parcels, also those in a tuple."""
    if type(value) is tuple:
        packed: tuple[Any, ...] = ()
        try:
            for part in value:
                packed += (pack(part),)
        except BaseException:
            close(packed)
            raise
        return packed
    return Parcel.of(value) if isinstance(value, np.ndarray) and not value.dtype.hasobject else value


def unpack(packed: Any) -> Any:
    """What was packed, in the process that it was sent to."""
    if type(packed) is tuple:
        return tuple(map(unpack, packed))
    return packed.opened() if isinstance(packed, Parcel) else packed


def close(packed: Any) -> None:
    """Let go of the memory of what was packed."""
    if type(packed) is tuple:
        for part in packed:
            close(part)
    elif isinstance(packed, Parcel):
        packed.close()


# Memory-mapped arrays for other processes: where they lie is sent, and the other process opens the file.


PAGE = 4096  # bytes
PAGES = 64  # that are compared, spread over the file
ADVICE = "put it where all nodes see it under one path, on a shared file system, or load it into memory first"


@dataclass(frozen=True)
class Mapped:
    """An array in a file.

    Attributes
    ----------
    path
        The file.
    size
        How many bytes it has.
    first, count
        The stretch of it that is compared, in bytes.
    digest
        What `digest_of` says of that.
    dtype, offset, shape, strides
        Where the array is in the file.
    """

    path: str
    size: int
    first: int
    count: int
    digest: str
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def opened(self) -> NDArray[Any]:
        """The array, as a memory map that can only be read.

        Returns
        -------
        ndarray

        Raises
        ------
        EngineError
            The file is not there, or is another.
        """
        where = f"node {platform.node()}"
        try:
            content = np.memmap(self.path, np.uint8, "r")
        except (OSError, ValueError) as error:  # the latter of an empty file
            raise EngineError(f"{self.path}: cannot be opened on {where} ({error}): {ADVICE}") from error
        if len(content) != self.size or digest_of(content[self.first : self.first + self.count]) != self.digest:
            raise EngineError(f"{self.path}: has another content on {where} than where the work began: {ADVICE}")
        there = np.ndarray(self.shape, self.dtype, content, self.offset, self.strides)
        return there.view(np.memmap)  # as which it is known not to be in memory


def by_path(array: Any) -> Any:
    """What to send for an array, or for what else is given.

    Parameters
    ----------
    array
        A memory map of a file, or a view of one, or anything else.

    Returns
    -------
    Mapped, or what was given
        Where the array is in its file. What lies in no file, in one that has lost its name or got another content
        since, or differs from it because it is a private copy, is sent itself.
    """
    root = root_of(array)
    if root is None or root.filename is None or root.mode == "c" or not array.size:
        return array
    if root.mode != "r":
        root.flush()
    path = os.path.abspath(root.filename)
    within = root.offset % mmap.ALLOCATIONGRANULARITY
    digest = digest_of(np.frombuffer(root.base, np.uint8, root.nbytes, within))
    address = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    try:
        found = Mapped(
            path, Path(path).stat().st_size, root.offset, root.nbytes, digest, array.dtype, root.offset + address,
            array.shape, array.strides,
        )  # fmt: skip
        found.opened()
    except (OSError, EngineError):
        return array
    return found


def opened(sent: Any) -> Any:
    """The array that was sent, in the process that it was sent to.

    Parameters
    ----------
    sent
        What `by_path` gave.

    Returns
    -------
    ndarray, or what was given

    Raises
    ------
    EngineError
        Its file is not here, or is another.
    """
    return sent.opened() if isinstance(sent, Mapped) else sent


def root_of(array: Any) -> Any:
    """The memory map that an array is a view of; None where it is none."""
    while isinstance(array, np.ndarray) and isinstance(array.base, np.ndarray):
        array = array.base
    return array if isinstance(array, np.memmap) and isinstance(getattr(array, "base", None), mmap.mmap) else None


def digest_of(content: NDArray[np.uint8]) -> str:
    """A hash of some pages of these bytes, spread from the first to the last; of all of them where they are few."""
    digest = hashlib.sha256(len(content).to_bytes(8, "big"))
    for start in np.linspace(0, max(0, len(content) - PAGE), PAGES).astype(np.int64).tolist():
        digest.update(content[start : start + PAGE].tobytes())
    return digest.hexdigest()
