"""Regular files only: a pipe may never answer, and a device may never end."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file to read its bytes, without waiting for a pipe or a device.

    What is opened is what was checked: the file cannot be exchanged in between.

    Parameters
    ----------
    path
        The file. A link to a regular file is followed.

    Returns
    -------
    binary file
        Open for reading; the caller closes it.

    Raises
    ------
    OSError
        There is no file, it may not be read, or it is a folder, pipe, device or socket; the message names it.
    """
    try:
        descriptor = os.open(path, FLAGS)
    except ValueError:  # a NUL in the name
        raise OSError(errno.EINVAL, "Is no name that a file can have", str(path)) from None
    except OSError as error:
        if error.errno == errno.ENXIO:  # what opening a socket says
            raise OSError(errno.EINVAL, "Is a socket, not a file", str(path)) from None
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            kind = next((name for test, name in KINDS if test(mode)), "something else")
            number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(number, f"Is {kind}, not a file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: str | Path, most: int | None = None) -> bytes:
    """Read a regular file.

    Parameters
    ----------
    path
        The file, as in `open_regular`.
    most : int, optional
        The largest size in bytes that is accepted. No more than one byte beyond it is read.

    Returns
    -------
    bytes
        All of the file.

    Raises
    ------
    OSError
        The file cannot be opened (see `open_regular`), or is larger than `most` bytes.
    """
    with open_regular(path) as file:
        if most is None:
            return file.read()
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"Is larger than {most:,} bytes", str(path))
    return content
