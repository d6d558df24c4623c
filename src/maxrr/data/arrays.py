""".npy and .npz files. What a header promises is compared with the size of the file before memory is taken for it."""

import io
import math
import mmap
import os
import tempfile
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import LONGEST_IDENTIFIER, blocks
from maxrr.errors import DataError
from maxrr.files import open_regular

CHUNK = 1 << 20
LARGEST_HEADER = 10_000  # bytes, as NumPy has it; one of numbers or strings has about a hundred
# Numbers that were measured shrink to a half or a tenth. What shrinks more, and fills the memory, was made to do so.
EXPANSION = 200
SMALL = 256 << 20  # bytes; up to here it does not matter


def read_npy(path: Path) -> NDArray[Any]:
    """The array in an .npy file of numbers or strings.

    Raises
    ------
    DataError
        It is damaged, holds Python objects, or its header promises more or less than there is.
    """
    with open_regular(path) as file:
        try:
            return _array(file, os.fstat(file.fileno()).st_size)
        except Exception as error:  # a damaged file fails in NumPy, ast or struct, as it happens
            raise _unreadable(path, ".npy", error) from None


def map_npy(path: Path) -> NDArray[Any]:
    """The array in an .npy file of numbers, as a memory map: nothing of it is read before it is needed.

    Raises
    ------
    DataError
        It is damaged, holds something else, or its header promises more or less than there is.
    """
    with open_regular(path) as file:
        try:
            shape, in_columns, dtype, start = _header(file)
            if dtype.kind not in "biuf" or not shape or min(shape) < 1:
                raise DataError(f"its header promises {dtype} of shape {shape}, and not numbers")
            promised, size = start + math.prod(shape) * dtype.itemsize, os.fstat(file.fileno()).st_size
            if promised != size:
                raise DataError(f"its header promises {promised:,} bytes, and there are {size:,}")
            found = np.memmap(file, dtype, "r", start, shape, "F" if in_columns else "C")
            found.filename = os.path.abspath(path)  # as NumPy notes it of a file that it has opened itself
            return found
        except Exception as error:
            raise _unreadable(path, ".npy", error) from None


def names_in(path: Path) -> list[str]:
    """What the arrays in an .npz file are called."""
    return list(_opened(path, lambda _, members, __: members))


def read_npz(path: Path, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """The arrays of these names in an .npz file. Others are not looked at.

    Raises
    ------
    DataError
        It is damaged, holds Python objects, one name twice, headers that promise more or less than there is, or a
        small file that would fill the memory.
    """

    def read(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], size: int) -> dict[str, NDArray[Any]]:
        wanted = {name: member for name, member in members.items() if name in names}
        whole = sum(member.file_size for member in wanted.values())
        if whole > max(SMALL, EXPANSION * size):
            raise DataError(f"its {size:,} bytes would unpack to {whole:,}: write it with np.savez, unpacked")
        found = {}
        for name, member in wanted.items():
            with archive.open(member) as stream:
                found[name] = _array(stream, member.file_size)
                if stream.read(1):  # also looks at the checksum
                    raise DataError(f"{name} goes on after its end")
        return found

    return dict(_opened(path, read))


def _opened(path: Path, then: Any) -> Any:
    """What `then` makes of an archive, its members by the names of their arrays, and its size."""
    with open_regular(path) as file:
        if not zipfile.is_zipfile(file):
            raise DataError(f"{path}: is not an .npz archive, or is truncated")
        try:
            with zipfile.ZipFile(file) as archive:
                return then(archive, _members(archive), os.fstat(file.fileno()).st_size)
        except Exception as error:  # a damaged file fails in zipfile, zlib, struct or NumPy, as it happens
            raise _unreadable(path, ".npz", error) from None


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name in members:
            raise DataError(f"it holds {name!r} twice")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
            raise DataError(f"{name!r} is packed in a way that NumPy does not use")
        members[name] = member
    return members


def _array(stream: IO[bytes], size: int) -> NDArray[Any]:
    """An array from the .npy format, which must fill `size` bytes."""
    shape, in_columns, dtype, start = _header(stream)
    if dtype.hasobject:
        raise DataError("holds Python objects, which are not read: store numbers and strings")
    if dtype.kind == "U" and dtype.itemsize > 4 * LONGEST_IDENTIFIER:
        raise DataError(f"it has strings of more than {LONGEST_IDENTIFIER:,} characters")
    if min(shape, default=0) < 0 or not dtype.itemsize:
        raise DataError(f"its header promises {dtype} of shape {shape}")
    promised = start + math.prod(shape) * dtype.itemsize
    if promised != size:
        raise DataError(f"its header promises {promised:,} bytes, and there are {size:,}")
    array = np.empty(shape[::-1] if in_columns else shape, dtype)
    if array.size:
        room, done = array.reshape(-1).view(np.uint8), 0
        while done < len(room):
            piece = stream.read(min(CHUNK, len(room) - done))
            if not piece:
                raise DataError(f"it is truncated: {done:,} bytes of {len(room):,}")
            room[done : done + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
            done += len(piece)
    return array.T if in_columns else array


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether columns come first, type, and where the numbers start."""
    first = stream.read(8)
    if len(first) < 8 or not first.startswith(np.lib.format.MAGIC_PREFIX) or first[6] not in (1, 2):
        raise DataError("it is not in the .npy format")
    width = 2 if first[6] == 1 else 4
    length = stream.read(width)
    if int.from_bytes(length, "little") > LARGEST_HEADER:
        raise DataError("its header is too large")
    text = stream.read(int.from_bytes(length, "little"))
    read = np.lib.format.read_array_header_1_0 if first[6] == 1 else np.lib.format.read_array_header_2_0
    shape, in_columns, dtype = read(io.BytesIO(length + text))
    return shape, in_columns, dtype, len(first) + width + len(text)


def _unreadable(path: Path, kind: str, error: Exception) -> DataError:
    if isinstance(error, DataError) and "Python objects" in str(error):
        return DataError(f"{path}: {error}")
    return DataError(f"{path}: cannot be read as {kind}: {str(error) or type(error).__name__}")


# Memory for large arrays in files without a name: the system writes it to the disk where memory is short.


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
