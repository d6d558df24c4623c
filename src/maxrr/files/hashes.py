"""The SHA-256 of a file."""

import hashlib
from pathlib import Path


def sha256_of(path: str | Path) -> str:
    """The SHA-256 of a file's bytes.

    Parameters
    ----------
    path
        The file. It is read in blocks, so that it need not fit in memory.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
