"""A file appears whole or not at all, whatever happens while it is written."""

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

FULL = (errno.ENOSPC, errno.EDQUOT)


def write_atomically(
    path: str | Path, data: bytes | Callable[[BinaryIO], None], *, private: bool = False, new: bool = False,
    flush_name: bool = True, flush: bool = True,
) -> None:  # fmt: skip
    """Write a file so that it appears whole or not at all; replace what was at `path` in one step.

    The bytes go to a hidden file beside `path`, reach the disk, and then take its name. On any failure, Ctrl-C
    included, that file is removed and `path` is as it was. Only a process that is killed outright leaves it behind, for
    `remove_unfinished` to find.

    Parameters
    ----------
    path
        The file. Its folder exists already.
    data
        The bytes, or a function that writes them into the binary file that it is called with.
    private : bool
        Whether only the owner may read the file (mode 600).
    new : bool
        Whether the file must be a new one: what is at `path` already is an error (FileExistsError), and stays.
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
    if not new and path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "Is there already, and is not a file: nothing was written", str(path))
    temporary = path.parent / f"{_beginning(path)}{secrets.token_hex(4)}.tmp"
    try:
        with open(temporary, "xb", opener=for_owner if private else None) as file:
            if callable(data):
                data(file)
            else:
                file.write(data)
            file.flush()
            if flush:
                os.fsync(file.fileno())
        (_take_new_name if new else os.replace)(temporary, path)
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


def remove_unfinished(path: str | Path) -> None:
    """Remove what killed processes left of writing a file. Call it where nobody else writes this file.

    Parameters
    ----------
    path
        The file, as `write_atomically` was given it. It stays.
    """
    for left in Path(path).parent.glob(f"{_beginning(Path(path))}????????.tmp"):
        left.unlink(missing_ok=True)


def _beginning(path: Path) -> str:
    """Return how the hidden files begin that are to become this one."""
    return f".maxrr-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]}"


def _take_new_name(temporary: Path, path: Path) -> None:
    """Rename a file, unless the name is taken: by a link, which two processes cannot both make."""
    try:
        os.link(temporary, path)
    except OSError:  # the name is taken, or the file system has no hard links: all that is left then is to look first
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.rename(temporary, path)
    else:
        os.unlink(temporary)


def for_owner(path: str, flags: int) -> int:
    """Open a file that others cannot read."""
    return os.open(path, flags, 0o600)


def flush_folder(folder: str | Path) -> None:
    """Make sure that files which were created, renamed or deleted in a folder stay so after a power cut.

    Parameters
    ----------
    folder
        The folder whose names are to reach the disk.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Overwrite a file before it is deleted: deleting alone leaves its bytes on the device.


CHUNK = 1 << 20
IN_PLACE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK


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
    with suppress(FileNotFoundError):
        if stat.S_ISREG(os.lstat(path).st_mode):
            with writable(path) as descriptor:
                size, start = os.fstat(descriptor).st_size, 0
                while start < size:
                    start += os.pwrite(descriptor, bytes(min(CHUNK, size - start)), start)
                os.fsync(descriptor)


# Regular files only: a pipe may never answer, and a device may never end.


FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


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
    descriptor = os.open(path, FLAGS)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    what = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
    raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, f"Is {what}, not a file", str(path))


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


@contextmanager
def writable(path: str | Path) -> Iterator[int]:
    """Open a file to change it in place; errors name the file."""
    descriptor = os.open(path, IN_PLACE)
    try:
        yield descriptor
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(descriptor)


def write_at(descriptor: int, start: int, content: bytes) -> None:
    """Write all of the content: a single call may write less than it was given."""
    written = 0
    while written < len(content):
        written += os.pwrite(descriptor, content[written:], start + written)
