"""What is wrong with a workspace's files."""

import errno
from pathlib import Path
from typing import BinaryIO

from maxrr.errors import Damaged, WorkspaceVersion
from maxrr.errors import WorkspaceError as WorkspaceError
from maxrr.files import open_regular
from maxrr.version import __version__

NO_FILE = (errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENOTDIR, errno.ENXIO)


def damaged(path: Path, why: str) -> Damaged:
    """Return the error for a file that cannot be relied on."""
    return Damaged(
        f"{path} is damaged: {why}. Nothing was changed. Fit again into another folder, from the records without those "
        "forgotten here, or restore the whole folder from a copy: it brings back what was forgotten since it was made, "
        "which then has to be forgotten again"
    )


def unfamiliar(path: Path, why: str) -> WorkspaceVersion:
    """Return the error for a file that is as it was written, and that this version of maxrr does not write like that.

    A file whose hash or HMAC holds says what its writer meant: only another version, or whoever has the key and changed
    it, means what this one does not understand.
    """
    return WorkspaceVersion(
        f"another version of maxrr than this one ({__version__}) wrote {path}: {why}. Use that version, or "
        "fit again into another folder, from the records without those forgotten here. Nothing was changed or deleted"
    )


def content_of(path: Path) -> bytes:
    """Read one of a workspace's files."""
    with open_file(path) as file:
        return file.read()


def open_file(path: Path) -> BinaryIO:
    """Open one of a workspace's files for reading. A link, a folder or a pipe in its place is damage."""
    try:
        if path.is_symlink():
            raise damaged(path, "it is a link to somewhere else")
        return open_regular(path)
    except FileNotFoundError:
        raise damaged(path, "it is missing") from None
    except OSError as error:
        if error.errno in NO_FILE:
            raise damaged(path, f"it cannot be read ({error.strerror})") from None
        raise


def check_folder(path: Path) -> None:
    """Refuse a link or a file in the place of a folder."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise damaged(path, "it is a link to somewhere else" if path.is_symlink() else "it is not a folder")
