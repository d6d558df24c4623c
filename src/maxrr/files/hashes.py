"""What is in a file, in 64 letters."""

import hashlib
from pathlib import Path


def sha256_of(path: str | Path) -> str:
    """The SHA-256 of a file's bytes in hexadecimal, read in blocks: the file need not fit in memory."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
