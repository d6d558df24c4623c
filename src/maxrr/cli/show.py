"""What commands print: sentences, tables, errors, progress.

On a terminal they are drawn with Rich. Everywhere else, in a pipe or a log too, they are plain
text that `grep` and `cut` can read. What comes from files, such as a class or the reason on a receipt, cannot draw: no
character that steers a terminal, or turns the direction of writing, reaches it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from maxrr import plain_text
from maxrr.plain_text import STEERING
from maxrr.progress import Line, Progress

if TYPE_CHECKING:
    from rich import progress as rich_progress
    from rich.console import Console

IN_LINES = re.compile(STEERING.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))
IN_JSON = re.compile(STEERING.pattern.replace("\x00-\x1f", ""))  # which writes the others out itself


class Bad(str):
    """A cell that must not be missed."""

    __slots__ = ()


def tame(text: str, steering: re.Pattern[str] = STEERING) -> str:
    """Write out characters that steer a terminal; a `Bad` cell stays one."""
    found = plain_text.tame(text, steering)
    return Bad(found) if isinstance(text, Bad) else found


def say(text: str) -> None:
    """Print a sentence on stdout."""
    if console := rich_console(sys.stdout):
        console.print(tame(text), markup=False)
    else:
        print(tame(text))


def error(text: str) -> None:
    """Print on stderr what went wrong."""
    note("Error", "red", text)


def warning(text: str) -> None:
    """Print a warning on stderr."""
    note("Warning", "yellow", text)


def note(kind: str, colour: str, text: str) -> None:
    """Print a sentence on stderr, after a word that says what it is."""
    if console := rich_console(sys.stderr):
        console.print(f"[bold {colour}]{kind}:[/]", end=" ")
        console.print(tame(text, IN_LINES), markup=False)
    else:
        print(f"{kind}: {tame(text, IN_LINES)}", file=sys.stderr)


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
    """Print a table on stdout; the columns under `numbers` are aligned at their right."""
    rows = [[tame(cell) for cell in row] for row in rows]
    console = rich_console(sys.stdout)
    if not console:
        print(plain_table(headings, rows, numbers, caption))
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, caption=caption or None, caption_justify="left", pad_edge=False)
    for heading in headings:
        drawn.add_column(heading, justify="right" if heading in numbers else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell, style="bold red" if isinstance(cell, Bad) else "") for cell in row))
    console.print(drawn)


def plain_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[str] = (), caption: str = ""
) -> str:
    """Write a table as lines of text.

    >>> print(plain_table(["class", "records"], [["cat", "5"], ["dog", "12"]], numbers=["records"]))
    class  records
    -----  -------
    cat          5
    dog         12
    """
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lines = []
    for row in (headings, ["-" * width for width in widths], *rows):
        cells = zip(headings, row, widths, strict=True)
        lines.append("  ".join(f"{cell:{'>' if name in numbers else '<'}{width}}" for name, cell, width in cells))
    return "\n".join([line.rstrip() for line in lines] + ([caption] if caption else []))


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """Print facts on stdout, each under its name."""
    pairs = [(tame(name), tame(value)) for name, value in pairs]
    console = rich_console(sys.stdout)
    if not console:
        print(plain_text.facts(pairs))
        return
    from rich.table import Table
    from rich.text import Text

    drawn = Table.grid(padding=(0, 2))
    for name, value in pairs:
        drawn.add_row(Text(name, style="bold"), Text(value, style="bold red" if isinstance(value, Bad) else ""))
    console.print(drawn)


_running: list[Progress] = []  # how far long work is, while it is drawn


def report(what: str, done: int, total: int, **numbers: float) -> None:
    """Show how far long work is, inside a block of `progress`."""
    if _running:
        _running[-1](what, done, total, **numbers)


@contextmanager
def progress() -> Iterator[Progress]:
    """Draw on stderr what is reported, for as long as the block lasts."""
    with drawn() as drawing:
        _running.append(drawing)
        try:
            yield report
        finally:
            _running.pop()


@contextmanager
def drawn() -> Iterator[Progress]:
    """Draw progress as bars on a terminal, and as lines elsewhere."""
    console = rich_console(sys.stderr)
    if not console:
        with closing(Line(sys.stderr)) as line:
            yield line
        return
    from rich import progress as rich_progress

    columns = (
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TextColumn("{task.fields[numbers]}", markup=False),
        rich_progress.TimeRemainingColumn(elapsed_when_finished=True),
    )
    with rich_progress.Progress(*columns, console=console) as bars:
        yield Bars(bars)


class Bars:
    """A Rich bar for each thing that is done."""

    def __init__(self, bars: rich_progress.Progress) -> None:
        self.bars = bars
        self.running: dict[str, rich_progress.TaskID] = {}

    def __call__(self, what: str, done: int, total: int, **numbers: float) -> None:
        if what not in self.running:
            self.running[what] = self.bars.add_task(what, total=total, completed=done, numbers="")
        shown = ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())
        self.bars.update(self.running[what], completed=done, total=total, numbers=shown)
        if done >= total:
            del self.running[what]


def rich_console(stream: TextIO) -> Console | None:
    """Return Rich's console for a terminal; None for any other stream."""
    if not stream.isatty():
        return None
    from rich.console import Console

    return Console(file=stream, highlight=False, emoji=False)  # a class may be called ":bug:"
