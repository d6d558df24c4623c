"""Arrays for worker processes, in shared memory.

A pipe takes an array in hundreds of small pieces, and a busy interpreter lets each of them wait. Where the system has
memory without a name (Linux), the array is written there once and only its address is sent; the memory is freed when
the process that made it ends, however it ends. Elsewhere the array itself is sent.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
