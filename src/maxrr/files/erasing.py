"""Overwrite a file before it is deleted: deleting alone leaves its bytes on the device."""

import os
import stat
from pathlib import Path

CHUNK = 1 << 20
IN_PLACE = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def overwrite(path: str | Path) -> None:
    """Fill a regular file with zeros, and wait until these have reached the disk.

    Parameters
    ----------
    path
        The file. One that does not exist, a folder, a link or a device is left alone.

    Raises
    ------
    OSError
        The file cannot be written; the message names it.
    """
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return
        descriptor = os.open(path, IN_PLACE)
    except FileNotFoundError:
        return
    try:
        size, start = os.fstat(descriptor).st_size, 0
        while start < size:
            start += os.pwrite(descriptor, bytes(min(CHUNK, size - start)), start)
        os.fsync(descriptor)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(descriptor)
