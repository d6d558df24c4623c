"""Whose folder it is. `.maxrr` is written into a new one first: which names are ours, and whether it was ever used.

Nothing is deleted but files with the token of that marker in their names, and temporary files that only we name so.
"""

import json
import os
import re
import secrets
import stat
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

from maxrr.errors import WorkspaceError
from maxrr.files import write_atomically
from maxrr.workspace.errors import content_of, damaged
from maxrr.workspace.names import LOCK, MARKER, ROOT, TEMPORARY, TURNSTILE, part_of

FORMAT = "maxrr folder"
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class Marker:
    """What says that a folder is ours: the token in the names of its files, and whether a state was committed."""

    token: str
    committed: bool

    def write(self, folder: Path) -> None:
        content = json.dumps({"format": FORMAT, **asdict(self)}).encode()
        write_atomically(folder / MARKER, content, private=True)

    @classmethod
    def read(cls, folder: Path) -> "Marker | None":
        """None if there is none."""
        path = folder / MARKER
        if not path.is_symlink() and not path.exists():
            return None
        try:
            body = json.loads(content_of(path).decode())
            if body.keys() != {"format", "token", "committed"} or body["format"] != FORMAT:
                raise ValueError("it is of something else")
            token, committed = body["token"], body["committed"]
            if not isinstance(committed, bool) or not re.fullmatch("[0-9a-f]{16}", token):
                raise ValueError("its token cannot be right")
        except WorkspaceError:
            raise
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise damaged(path, f"it does not describe a workspace ({error})") from None
        return cls(token, committed)


def was_workspace(folder: Path) -> bool:
    """Whether something was ever committed in a folder."""
    try:
        found = Marker.read(folder)
    except (WorkspaceError, OSError):
        return True  # something was there, and must not be written over
    return found is not None and found.committed


def check_new(folder: Path) -> Marker | None:
    """Refuse a folder that holds anything but an interrupted first fit, of which this is the marker."""
    if (folder / ROOT).is_symlink() or (folder / ROOT).exists():
        raise WorkspaceError(f"there is a workspace in {folder} already: open it, and fit it again")
    if not folder.is_dir():
        return None  # to be made, or the system says why not
    found = Marker.read(folder)
    if found is not None and found.committed:
        raise damaged(
            folder / ROOT,
            "it is missing, and without it nobody can tell which of the records, key, tombstones and receipts here "
            "belong together",
        )
    others = [path.name for path in folder.iterdir() if not is_ours(path, found)]
    if others:
        raise WorkspaceError(
            f"{folder} holds other files, such as {min(others)}: name one that is new or empty. Nothing was changed"
        )
    return found


def is_ours(path: Path, marker: Marker | None) -> bool:
    """Whether a first fit that did not come to its end may have left this."""
    if path.name in (LOCK, TURNSTILE):
        return not path.is_symlink() and path.is_file() and path.stat().st_size == 0
    if TEMPORARY.fullmatch(path.name):
        return True
    return marker is not None and (path.name == MARKER or part_of(path.name, marker.token) is not None)


def make_private(folder: Path) -> None:
    """A folder for us alone: a new one, or one that is taken over, which holds nothing of others."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name != "nt" and folder.stat().st_uid == os.getuid() and folder.stat().st_mode & OTHERS:
        folder.chmod(0o700)


def claim(folder: Path) -> Marker:
    """Make a folder ours, or go on in one that is."""
    found = check_new(folder)
    if found is None:
        found = Marker(secrets.token_hex(8), committed=False)
        found.write(folder)
    return found


def check_private(folder: Path) -> None:
    """Refuse a folder in which others could put something, and warn of one that somebody else owns."""
    if os.name == "nt":
        return
    found = folder.stat()
    if found.st_mode & OTHERS_WRITE:
        raise WorkspaceError(
            f"others can write to {folder} (its mode is {stat.S_IMODE(found.st_mode):03o}), and so change what is in "
            f"it: make it yours with chmod go-w {folder}. Nothing was changed"
        )
    if found.st_uid != os.geteuid():
        warnings.warn(f"{folder} belongs to another user, who can change what is in it", stacklevel=5)
