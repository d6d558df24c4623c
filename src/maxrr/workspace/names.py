"""The names of a workspace's files, and whose a folder is. Each name carries the workspace's token.

history-<token>.bin, rows-<token>-<state>.bin, heads-<token>-<start of its hash>.safetensors, …
Nothing is deleted but files with the token of the folder's history in their names, and temporary files that only we
name so.
"""

import os
import re
import secrets
import stat
import warnings
from pathlib import Path

from maxrr.errors import FolderTaken, NotAWorkspace, OtherWorkspace, UnsafeMode, WorkspaceError
from maxrr.workspace.errors import damaged
from maxrr.workspace.history import History, is_begun

PARTS = EXTRACTOR, HEADS, SECRETS = "extractor.safetensors", "heads.safetensors", "secrets.json"
HISTORY, ROWS, RANKING, LOCK = "history.bin", "rows.bin", "ranking", ".lock"  # beside them: `maxrr.evidence.log.LOG`
LEARNED = {ROWS, EXTRACTOR, HEADS, RANKING}  # whose bytes say something about records
UNFINISHED = ".unfinished-backup"  # in a folder that is becoming a backup
TEMPORARY = re.compile(r"\.maxrr-[0-9a-f]{16}\.tmp")  # as `write_atomically` calls them
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def name_of(part: str, token: str, which: str | int) -> str:
    """Name the file of a part. `which` is the number of the state, or the start of the content's hash.

    >>> name_of("rows.bin", "0123456789abcdef", 12), name_of("ranking", "0123456789abcdef", 0)
    ('rows-0123456789abcdef-12.bin', 'ranking-0123456789abcdef-0')
    """
    stem, dot, suffix = part.partition(".")
    return f"{stem}-{token}-{which}{dot}{suffix}"


def history_name(token: str) -> str:
    """The name of the history of a workspace."""
    return f"history-{token}.bin"


def origin_of(token: str, last_loss: str = "") -> str:
    """The name of the log of a workspace, under which its checkpoints are signed.

    With `last_loss`, when the loss of a newer copy was last accepted, another log began.
    """
    return f"maxrr.dev/workspace/{token}" + (f"/{last_loss}" if last_loss else "")


def part_of(name: str, token: str) -> str | None:
    """Return the part that a file holds by its name; None for a file that is not the workspace's.

    >>> part_of("rows-0123456789abcdef-12.bin", "0123456789abcdef"), part_of("rows-12.bin", "0123456789abcdef")
    ('rows.bin', None)
    """
    if token not in name:
        return None
    if name == history_name(token):
        return HISTORY
    for part in (*PARTS, ROWS, RANKING):
        which = "[0-9a-f]{16}" if part in PARTS else "0|[1-9][0-9]{0,17}"
        stem, dot, suffix = part.partition(".")
        if re.fullmatch(rf"{stem}-{token}-({which}){re.escape(dot + suffix)}", name, re.ASCII):
            return part
    return None


# Whose folder it is


def find_history(folder: Path) -> tuple[Path, str] | None:
    """Find the history in a folder, and the token of the workspace; None where there is no history."""
    found = []
    if folder.is_dir():
        names = ((path, re.fullmatch(r"history-([0-9a-f]{16})\.bin", path.name)) for path in folder.iterdir())
        found = sorted((path, match[1]) for path, match in names if match)
    if len(found) > 1:
        raise OtherWorkspace(
            f"{folder} holds the histories of {len(found)} workspaces, such as {found[0][0].name} and "
            f"{found[1][0].name}: move the files of all but one elsewhere. Nothing was changed"
        )
    return found[0] if found else None


def history_of(folder: Path) -> tuple[Path, str]:
    """Find the history in a folder, and the token of the workspace; refuse a folder without one."""
    found = find_history(folder)
    if found is None:
        raise missing(folder)
    return found


def missing(folder: Path) -> WorkspaceError:
    """Return the error for a folder without a history: it never was a workspace, or has lost its history."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if UNFINISHED in names:
        return NotAWorkspace(f"{folder} is a backup that did not come to its end: make it again in the same place")
    for name in sorted(names):
        token = re.fullmatch(r"(?:rows|heads|secrets)-([0-9a-f]{16})-[0-9a-f]+\.[a-z]+", name)
        if token is not None:
            path = folder / history_name(token[1])
            return damaged(path, f"it is missing, and with it what {name} belongs to, and all receipts")
    return NotAWorkspace(f"{folder} is not a workspace: there is no history-….bin in it. Make one with fit")


def check_new(folder: Path) -> str | None:
    """Refuse a folder that holds anything but an interrupted first fit; return the token of that fit."""
    found = find_history(folder)
    if found is not None and is_begun(found[0]):
        raise FolderTaken(f"there is a workspace in {folder} already: open it, and fit it again")
    if not folder.is_dir():
        return None  # to be made, or the system says why not
    token = None if found is None else found[1]
    others = [path.name for path in folder.iterdir() if not is_ours(path, token)]
    if others:
        raise FolderTaken(f"{folder} holds others, such as {min(others)}: name a new or empty one. Nothing was changed")
    return token


def is_ours(path: Path, token: str | None) -> bool:
    """Whether an interrupted first fit may have left this file."""
    if path.name == LOCK:
        return not path.is_symlink() and path.is_file() and path.stat().st_size == 0
    return bool(TEMPORARY.fullmatch(path.name)) or (token is not None and part_of(path.name, token) is not None)


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can use, or make one that is there private."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid == os.getuid() and folder.stat().st_mode & OTHERS:
        folder.chmod(0o700)


def claim(folder: Path) -> str:
    """Write a history without frames into a new folder, or go on with one that is there; return the token."""
    token = check_new(folder)
    if token is None:
        token = secrets.token_hex(8)
        History.create(folder / history_name(token), token)
    return token


def check_private(folder: Path) -> None:
    """Refuse a folder in which others could put something, and warn of one that somebody else owns."""
    found = folder.stat()
    if found.st_mode & OTHERS_WRITE:
        raise UnsafeMode(
            f"others can write to {folder} (its mode is {stat.S_IMODE(found.st_mode):03o}), and so change what is in "
            f"it: make it yours with chmod go-w {folder}. Nothing was changed"
        )
    if found.st_uid != os.geteuid():
        warnings.warn(f"{folder} belongs to another user, who can change what is in it", stacklevel=5)
