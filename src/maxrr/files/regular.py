"""Files that are files: no pipe that never answers, no device that never ends."""

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
    """Open a regular file to read bytes, at once: what is opened is what was checked, and nothing is waited for.

    Raises
    ------
    OSError
        There is none, it may not be read, or it is a folder, pipe, device or socket; the message names it.
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
    """The bytes of a regular file, of `most` bytes at most if given.

    Raises
    ------
    OSError
        As `open_regular`, and for a file that is larger: no more than `most` bytes and one are read to see it.
    """
    with open_regular(path) as file:
        if most is None:
            return file.read()
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"Is larger than {most:,} bytes", str(path))
    return content
