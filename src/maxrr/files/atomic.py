"""A file appears whole or not at all, whatever happens while it is written."""

import errno
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

FULL = (errno.ENOSPC, errno.EDQUOT)


def write_atomically(
    path: str | Path, data: bytes | Callable[[BinaryIO], None], *, private: bool = False, flush_name: bool = True,
    flush: bool = True,
) -> None:  # fmt: skip
    """Write a file so that it appears whole or not at all; replace what was at `path` in one step.

    The bytes go to a hidden file beside `path`, reach the disk, and then take its name. On any failure, Ctrl-C
    included, that file is removed and `path` is as it was. Only a process that is killed outright leaves it behind.

    Parameters
    ----------
    path
        The file. Its folder exists already.
    data
        The bytes, or a function that writes them into the binary file that it is called with.
    private : bool
        Whether only the owner may read the file (mode 600).
    flush_name : bool
        Whether the file's name reaches the disk as well before this returns. Turn it off to write several files, and
        call `flush_folder` once for all of them.
    flush : bool
        Whether anything reaches the disk before this returns. Turn it off for what a power cut may cost.

    Raises
    ------
    OSError
        The file cannot be written. When the disk is full, the message names `path` and says so.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "a.txt", b"whole")
    ...     (Path(folder) / "a.txt").read_text()
    'whole'
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "Is there already, and is not a file: nothing was written", str(path))
    temporary = path.parent / f".maxrr-{secrets.token_hex(8)}.tmp"  # short: `path` may have the longest name allowed
    try:
        with open(temporary, "xb", opener=for_owner if private else None) as file:
            if callable(data):
                data(file)
            else:
                file.write(data)
            file.flush()
            if flush:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno in FULL:
            advice = "No space left on the disk: nothing was kept; make room and try again"
            raise OSError(error.errno, advice, str(path)) from None
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(temporary)):
            error.filename = str(path)  # the name that the caller knows
        raise
    if flush and flush_name:
        flush_folder(path.parent)


def for_owner(path: str, flags: int) -> int:
    """Open a file that others cannot read."""
    return os.open(path, flags, 0o600)


def flush_folder(folder: str | Path) -> None:
    """Make sure that files which were created, renamed or deleted in a folder stay so after a power cut.

    Parameters
    ----------
    folder
        The folder whose names are to reach the disk. On Windows nothing is done.
    """
    if os.name == "nt":  # where folders cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
