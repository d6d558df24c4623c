""".npy and .npz files as NumPy reads them, without Python objects, and memory for large arrays."""

import math
import mmap
import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import blocks
from maxrr.errors import UnreadableFile
from maxrr.files import open_regular


def read_npy(path: Path) -> NDArray[Any]:
    """The array in an .npy file of numbers or strings."""
    with _opened(path, ".npy") as array:
        return np.asarray(array)


def map_npy(path: Path) -> NDArray[Any]:
    """The array in an .npy file of numbers, as a memory map: nothing of it is read before it is needed."""
    with _readable(path, ".npy"):
        found = np.lib.format.open_memmap(path, mode="r")
        if found.dtype.kind not in "biuf" or not found.size:
            raise ValueError(f"it holds {found.dtype} of shape {found.shape}, and not numbers")
        return np.asanyarray(found)


def names_in(path: Path) -> list[str]:
    """What the arrays in an .npz file are called."""
    with _opened(path, ".npz") as archive:
        return list(archive.files)


def read_npz(path: Path, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """The arrays of these names in an .npz file. Others are not looked at."""
    with _opened(path, ".npz") as archive:
        found = {name: archive[name] for name in archive.files if name in names}
        for name, array in found.items():
            if not isinstance(array, np.ndarray):  # NumPy gives the bytes of a file that is none of its own
                raise ValueError(f"{name} is no array")
        return found


@contextmanager
def _opened(path: Path, kind: str) -> Iterator[Any]:
    """Open a file with NumPy; whatever fails becomes a `DataError` that names the file."""
    with open_regular(path) as file, _readable(path, kind):
        found = np.load(file, allow_pickle=False)
        if isinstance(found, np.ndarray) == (kind == ".npz"):
            raise ValueError("it is of another kind")
        yield found


@contextmanager
def _readable(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a damaged file fails in NumPy, zipfile, zlib, ast or struct, as it happens
        raise UnreadableFile(f"{path}: cannot be read as {kind}: {str(error) or type(error).__name__}") from None


# Memory for large arrays in files without a name: the system writes it to the disk where memory is short.


LARGE = 1 << 29  # bytes; less is simply memory


def take(inputs: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Copy some rows. Many rows of a memory map are never in memory at once."""
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
