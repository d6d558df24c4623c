"""What commands print: sentences, tables, errors, progress.

It is plain text that `grep` and `cut` can read, with colours for what must not be missed on a terminal. What comes from
files, such as a class or the reason on a receipt, cannot draw: no character that steers a terminal, or turns the
direction of writing, reaches it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from json import dumps
from pathlib import Path
from typing import Any, TextIO

from maxrr import plain_text
from maxrr.plain_text import STEERING
from maxrr.progress import Line, Progress

RED, YELLOW, BOLD = 31, 33, 1
IN_LINES = re.compile(STEERING.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))
IN_JSON = re.compile(STEERING.pattern.replace("\x00-\x1f", ""))  # which writes the others out itself


class Bad(str):
    """A cell that must not be missed."""

    __slots__ = ()


def tame(text: str, steering: re.Pattern[str] = STEERING) -> str:
    """Write out characters that steer a terminal; a `Bad` cell stays one."""
    found = plain_text.tame(text, steering)
    return Bad(found) if isinstance(text, Bad) else found


def coloured(text: str, colour: int, stream: TextIO) -> str:
    """Write a text in a bold colour where the stream is a terminal that may have colours."""
    wanted = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"\x1b[{BOLD};{colour}m{text}\x1b[0m" if wanted else text


def say(text: str) -> None:
    """Print a sentence on stdout."""
    print(tame(text))


def error(text: str) -> None:
    """Print on stderr what went wrong."""
    print(f"{coloured('Error:', RED, sys.stderr)} {tame(text, IN_LINES)}", file=sys.stderr)


def warning(text: str) -> None:
    """Print a warning on stderr."""
    print(f"{coloured('Warning:', YELLOW, sys.stderr)} {tame(text, IN_LINES)}", file=sys.stderr)


def json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    json_text(dumps(value, indent=2, ensure_ascii=False))


def json_text(text: str) -> None:
    """Print JSON text on stdout, with characters that steer a terminal escaped: they occur in its strings only."""
    print(IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def near(path: str | Path) -> str:
    """Return a path as it can be typed here: without the current folder in front."""
    return str(Path(path).relative_to(Path.cwd()) if Path(path).is_relative_to(Path.cwd()) else path)


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Collection[str] = (), caption: str = ""
) -> None:
    """Print a table on stdout; the columns under `numbers` are aligned at their right.

    >>> table(["class", "records"], [["cat", "5"], ["dog", "12"]], numbers=["records"])
    class  records
    -----  -------
    cat          5
    dog         12
    """
    rows = [[tame(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    if sys.stdout.isatty():
        print()
    for row in (headings, ["-" * width for width in widths], *rows):
        cells = list(zip(headings, row, widths, strict=True))
        line = "  ".join(of_width(cell, -width if name in numbers else width) for name, cell, width in cells)
        print(line.rstrip())
    if caption:
        print(caption)


def of_width(cell: str, width: int) -> str:
    """Fill a cell with spaces: up to a width, or in front of it where that is negative."""
    filled = cell.rjust(-width) if width < 0 else cell.ljust(width)
    return coloured(filled, RED, sys.stdout) if isinstance(cell, Bad) else filled


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """Print facts on stdout, each under its name."""
    width = max(len(tame(name)) for name, _ in pairs)
    for name, value in pairs:
        print(f"{tame(name):<{width}}  {of_width(tame(value), 0)}")


_running: list[Progress] = []  # how far long work is, while it is drawn


def report(what: str, done: int, total: int, **numbers: float) -> None:
    """Show how far long work is, inside a block of `progress`."""
    if _running:
        _running[-1](what, done, total, **numbers)


@contextmanager
def progress() -> Iterator[Progress]:
    """Show on stderr what is reported, for as long as the block lasts."""
    with closing(Line(sys.stderr)) as line:
        _running.append(line)
        try:
            yield report
        finally:
            _running.pop()
