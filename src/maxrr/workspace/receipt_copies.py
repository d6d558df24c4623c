"""`receipts/000012.json`: a copy of each receipt, for people and other programs. The file of receipts is what counts.

They are not flushed: whoever opens the workspace to work in it makes those again that are missing or have another size,
and whoever asks for one gets what was compared.
"""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from maxrr.errors import WorkspaceError
from maxrr.workspace.errors import check_folder, content_of, damaged
from maxrr.workspace.names import RECEIPTS

UNSIGNED = b'{"unsigned":'  # how the line of a receipt begins that is not signed


def path_of(folder: Path, number: int) -> Path:
    """Where the copy of a receipt lies."""
    return folder / RECEIPTS / f"{number:06d}.json"


def sizes_in(folder: Path) -> dict[int, int]:
    """The sizes of what lies there, by the numbers of receipts, also of some that the present state does not know.

    Links and folders in their place are damage.
    """
    place = folder / RECEIPTS
    check_folder(place)
    found = {}
    with suppress(FileNotFoundError), os.scandir(place) as entries:
        for entry in entries:
            stem, _, suffix = entry.name.partition(".")
            if suffix == "json" and is_number(stem):
                if not entry.is_file(follow_symlinks=False):
                    raise damaged(place / entry.name, "it is not a file")
                found[int(stem)] = entry.stat(follow_symlinks=False).st_size
    return found


def write(folder: Path, first: int, lines: Iterable[bytes]) -> None:
    """Write the copies of receipts, from this number on."""
    place = folder / RECEIPTS
    place.mkdir(mode=0o700, exist_ok=True)
    for number, line in enumerate(lines, start=first):
        with open(f"{place}/{number:06d}.json", "wb", buffering=0) as file:
            file.write(copy_of(line))


def restore(folder: Path, sizes: Mapping[int, int], lines: bytes, ends: Iterable[int]) -> None:
    """Write those copies again that are missing or not as long as they were, going by the sizes of those there."""
    start = 0
    for number, stop in enumerate(ends, start=1):
        signed = not lines.startswith(UNSIGNED, start)
        size = stop - start - 1 if signed else len(copy_of(lines[start:stop]))
        if sizes.get(number) != size:
            write(folder, number, [lines[start:stop]])
        start = stop


def compared(folder: Path, number: int, line: bytes) -> Path:
    """Where the copy of a receipt lies, which is written again if it is not what it was."""
    path = path_of(folder, number)
    if not os.path.lexists(path) or content_of(path) != copy_of(line):
        write(folder, number, [line])
    return path


def check_places(folder: Path, first: int, lines: Iterable[bytes]) -> None:
    """Refuse to write over other receipts, of a later state: they would be lost."""
    check_folder(folder / RECEIPTS)
    for number, line in enumerate(lines, start=first):
        path = f"{folder}/{RECEIPTS}/{number:06d}.json"
        if os.path.lexists(path) and content_of(Path(path)) != copy_of(line):
            raise WorkspaceError(
                f"{path} is there already, of a later state than this, and would be lost: keep it somewhere else, and "
                "try again. Nothing was changed"
            )


def copy_of(line: bytes) -> bytes:
    """What is handed out for a line of the file of receipts: the envelope, or the text as it is."""
    if line.startswith(UNSIGNED):
        text: str = json.loads(line)["unsigned"]
        return text.encode()
    return line.removesuffix(b"\n")


def is_number(stem: str) -> bool:
    """Whether a receipt may be called so."""
    return len(stem) >= 6 and stem.isascii() and stem.isdigit() and len(stem) <= 18
