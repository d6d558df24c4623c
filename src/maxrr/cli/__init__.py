"""The `maxrr` command: one file a command, each importing what it needs when it runs."""

import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence

from maxrr.cli import (
    audit,
    bundle,
    data,
    demo,
    exits,
    export,
    fit,
    page,
    plan,
    predict,
    prove,
    receipt,
    replace,
    reproduce,
    status,
    study,
    unlearn,
)
from maxrr.cli.command import Group

__all__ = ["COMMANDS", "app"]

COMMANDS = Group(
    "Classifiers that forget records cheaply and exactly, and show that they did.\n\n"
    "A model lives in a workspace, a folder that `maxrr fit` makes. Try `maxrr demo` first.\n\n"
    "Exit codes:\n\n" + "\n".join(f"    {code:>3}  {meaning}" for code, meaning in exits.MEANING.items()),
    {
        "fit": fit.run,
        "plan": plan.run,
        "unlearn": unlearn.run,
        "replace": replace.run,
        "prove": prove.run,
        "bundle": bundle.run,
        "audit": audit.run,
        "page": page.run,
        "predict": predict.run,
        "status": status.run,
        "receipt": Group(
            "The answer to a request: in words, and checked.", {"show": receipt.present, "verify": receipt.verify}
        ),
        "export": export.run,
        "data": Group(
            "The data sets: which are known, where they lie, what is in them.",
            {"list": data.known, "get": data.get, "describe": data.describe},
        ),
        "demo": demo.run,
        "reproduce": reproduce.run,
        "study": study.run,
    },
)


def app(arguments: Sequence[str] | None = None) -> None:
    """The command line, with Typer where it is installed; the same commands and options without."""
    try:
        import typer  # noqa: F401
    except ImportError:
        from maxrr.cli.plain import main
    else:
        from maxrr.cli.fancy import main
    opened_streams()
    # A terminal that cannot show a sign shows a question mark, not an error.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    main(COMMANDS, arguments, f"maxrr {importlib.import_module('maxrr').__version__}")


class Closed(io.TextIOBase):
    """In place of an output that the caller has closed: what is written to it does not arrive, and that is an error."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "the output is closed", "stdout")


def opened_streams() -> None:
    """Python has None for streams that were closed by the caller, as by `>&-`."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 (for as long as the process)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = Closed()
