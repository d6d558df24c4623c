"""Pages that commands write: what was there before is written over only if it was one of them."""

from __future__ import annotations

from pathlib import Path


def is_ours(page: Path) -> bool:
    """Whether there is a page of ours. A pipe, a folder or what may not be read is none."""
    from maxrr.files import read_regular
    from maxrr.report import is_report

    try:
        return is_report(read_regular(page).decode("utf-8", errors="replace"))
    except OSError:
        return False
