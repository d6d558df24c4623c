"""Memory for large arrays in files without a name: the system writes it to the disk where memory is short."""

import math
import mmap
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import blocks

LARGE = 1 << 29  # bytes; less is simply memory


def take(inputs: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Some rows as an array of their own. Many rows of a memory map are never in memory at once."""
    if not isinstance(inputs, np.memmap) and not is_scratch(inputs):
        some: NDArray[Any] = inputs[rows]
        return some
    places = np.flatnonzero(rows) if rows.dtype == bool else rows
    taken = scratch((len(places), *inputs.shape[1:]), inputs.dtype)
    for start, block in blocks(taken):
        block[:] = inputs[places[start : start + len(block)]]
    return taken


def is_scratch(array: NDArray[Any]) -> bool:
    """Whether an array lies in a file without a name."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    base: object = array.base
    return isinstance(base.obj if isinstance(base, memoryview) else base, mmap.mmap)


def scratch(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of zeros: in memory, or a large one in a file that has no name and is gone when the array is.

    The file is in the folder for temporary files ($TMPDIR), which should be on a disk.
    """
    size = math.prod(shape) * dtype.itemsize
    if size <= LARGE:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(prefix="maxrr-") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)  # now, and not as a crash in the middle of writing
        else:
            file.truncate(size)
        return np.frombuffer(mmap.mmap(file.fileno(), size), dtype).reshape(shape)
