"""Ask before what cannot be undone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from maxrr.cli.exits import FAILED, USAGE, Stop
from maxrr.cli.requests import tell

if TYPE_CHECKING:
    from maxrr.unlearning import Plan


def confirm(plan: Plan, question: str, *, yes: bool, json: bool) -> None:
    """Show the plan, and go on if somebody at the terminal says so. Programs, which cannot be asked, say --yes."""
    if yes:
        return
    if json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Stop(USAGE, "this cannot be undone, and nobody can be asked to confirm it here: say --yes")
    tell(plan)
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Stop(FAILED, "not confirmed: nothing was changed")
