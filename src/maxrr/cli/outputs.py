"""What an output may replace: one rule for every command that writes where its user says.

An output is a new file, or takes the place of an earlier one of the very kind that the command writes. It never goes
into a folder that maxrr keeps for itself, nor in the place of a link.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from maxrr.errors import FileExists, FolderTaken

MARKS = {"history-*.bin": b"maxrr history", "model.json": b'"maxrr serving"'}
"""How files begin that only folders of ours have."""


def check(file: Path, kind: str, is_one: Callable[[Path], object]) -> None:
    """Refuse, before any work, to write over anything but a file of this kind, of which `is_one` is true or fails."""
    check_apart(file)
    if not os.path.lexists(file):
        return
    with suppress(Exception):  # whatever is wrong with a file, it is not of the kind then
        if file.is_file() and not file.is_symlink() and is_one(file) is not False:
            return
    raise FileExists(f"{file} is there already, and is not {kind}: name another file")


def check_apart(place: Path) -> None:
    """Refuse a place in a workspace or in an export: others may copy, replace or publish these as they are."""
    for each in (place.parent.resolve() / place.name).parents:
        if each.is_file():
            raise FileExists(f"{each} is a file, so that {place} cannot be in it: name another place")
        for pattern, said in MARKS.items():
            if any(said in beginning(file) for file in each.glob(pattern) if file.is_file()):
                raise FolderTaken(f"{place} is in a workspace or an export, which has its own files: write elsewhere")


def beginning(file: Path) -> bytes:
    with open(file, "rb") as opened:
        return opened.read(64)


def is_page(file: Path, title: str) -> bool:
    """Whether a file is a page of this library with a title that begins so."""
    from maxrr.files import read_regular
    from maxrr.report.page import is_report

    text = read_regular(file).decode()
    return is_report(text) and f"<title>{title}" in text
