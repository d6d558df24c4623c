"""The SHA-256 of a file, and of what a JSON object says."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


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


def json_digest(body: Mapping[str, Any]) -> str:
    """The SHA-256 of what a JSON object says, however its text is spaced and ordered.

    >>> json_digest({"a": 1, "b": 2}) == json_digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
