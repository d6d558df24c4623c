"""Arrays in a file by their names: npz, which nothing is unpickled from."""

import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.files.atomic import write_atomically

DAMAGE = (
    zipfile.BadZipFile, zlib.error, ValueError, LookupError, OSError, EOFError, RuntimeError,
    AttributeError, TypeError,  # a single array, which is no archive
)  # fmt: skip


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]], *, private: bool = False) -> None:
    """Write arrays; when this returns, they are on the disk."""
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    write_atomically(path, content.getvalue(), private=private)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of a file that `write_arrays` wrote.

    Raises
    ------
    ValueError
        The file is damaged; it names the file.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except DAMAGE as error:
        raise damaged(path, error) from error


def damaged(path: Path, why: object) -> ValueError:
    """Return the error for a damaged file whose content can be made again."""
    return ValueError(f"{path} is damaged ({why}): delete it, and what it holds is made again")
