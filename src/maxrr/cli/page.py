"""`maxrr page`: draw the page of an audit again, from its JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from maxrr.cli import show
from maxrr.cli.exits import FAILED, USAGE, Stop
from maxrr.cli.pages import is_ours


def run(
    file: Annotated[Path, Argument(metavar="FILE", help="The JSON of an audit.")],
    out: Annotated[Path | None, Option(help="The page to write, FILE.html; beside the JSON if not given.")] = None,
) -> None:
    """Draw the page of an audit again, from the JSON that was written beside it. Nothing is measured.

    Examples:

        maxrr page audit-1.json
        maxrr page audit-1.json --out again.html
    """
    from maxrr.audit import AuditReport
    from maxrr.files import read_regular, write_atomically
    from maxrr.report import audit_page

    page = file.with_suffix(".html") if out is None else out
    if page.suffix != ".html":
        raise Stop(USAGE, f"--out names a page, such as {page.with_suffix('.html')}")
    if page.exists() and not is_ours(page):
        raise Stop(FAILED, f"{page} is there already, and not a page of ours: name another with --out")
    try:
        report = AuditReport.from_json(read_regular(file).decode())
    except (OSError, ValueError, RecursionError) as error:
        raise Stop(FAILED, f"{file} cannot be read: {error}") from None
    write_atomically(page, audit_page(report).encode())
    show.say(f"Wrote {show.near(page)}.")
