"""How commands end: what a user can put right is a line on stderr and an exit code, not a traceback."""

import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any, NoReturn, TextIO

from typer import BadParameter
from typer.core import TyperCommand, TyperGroup, TyperOption

from maxrr.cli import show
from maxrr.errors import MaxRRError, Refused, Stale

DONE, FAILED, USAGE, REFUSED, REFUTED, UNDECIDED, AFTERWARDS, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130

BY_STATUS = {
    FAILED: "failed",
    USAGE: "usage",
    REFUSED: "refused",
    REFUTED: "refuted",
    UNDECIDED: "undecided",
    AFTERWARDS: "done-but",
}
"""What programs call an end that no error of `maxrr.errors` has brought."""


class Stop(Exception):
    """The end of a command: with an exit status, and a line on stderr if there is something to say."""

    def __init__(self, status: int, message: str = "", code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code or BY_STATUS[status]


SERVICE = {"fastapi", "httptools", "psycopg", "sqlalchemy", "starlette", "uvicorn"}  # the extra `maxrr[service]`
LEFT_OUT = {"numpy", "safetensors", "scipy", "sklearn", "threadpoolctl", "torch"}
"""What is not there where maxrr was installed to check evidence alone (docs/specifications/evidence.md)."""


class Command(TyperCommand):
    """A command whose options do not take one another for values, as they would where a shell variable is empty."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = [each for each in self.params if isinstance(each, TyperOption)]
        names = {name: not each.is_flag for each in options for name in each.opts}
        for name, value in pairwise(args):
            if names.get(name) and (value in names or value.startswith("--")):
                raise BadParameter(f"{value} comes next: a variable in its place may be empty", ctx, param_hint=name)
        return super().parse_args(ctx, args)


class Commands(TyperGroup):
    """The group of all commands, in which whatever a command raises ends."""

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Run the command that the arguments name, and exit. `python -m maxrr` calls itself maxrr, too."""
        prepare_streams()
        given = settings.get("args", *arguments[:1])
        self.as_json = "--json" in (sys.argv if given is None else given)
        return super().main(*arguments, **{"prog_name": "maxrr", **settings})

    def invoke(self, ctx: Any) -> Any:
        with reported(debug=ctx.params["debug"], json=self.as_json):
            return super().invoke(ctx)


@contextmanager
def reported(*, debug: bool = False, json: bool = False) -> Iterator[None]:
    """Turn errors into lines and exit codes, for programs into JSON on stdout as well.

    Our own errors are MaxRRErrors or, where a value is wrong, ValueErrors; a file's or a disk's are OSErrors, and the
    memory may be too small; any other is a fault.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: show.warning(str(message))
            yield
        sys.stdout.flush()
    except Stop as stop:
        ended(stop.status, str(stop), stop.code, json)
    except KeyboardInterrupt as interrupt:
        ended(INTERRUPTED, ": ".join(filter(None, ["interrupted", str(interrupt)])), "interrupted", json)
    except BrokenPipeError:  # `maxrr … | head` has read enough
        silence(sys.stdout)
        raise SystemExit(FAILED) from None
    except ModuleNotFoundError as error:
        if error.name == "ray" and not debug:
            ended(FAILED, str(error), "not-installed", json)
        missing = (error.name or "").partition(".")[0]
        if debug or missing not in LEFT_OUT | SERVICE:
            raise
        words = f"this command needs {error.name}, which is not installed: pip install maxrr"
        words += "[service]" if missing in SERVICE else ""
        ended(FAILED, words, "not-installed", json)
    except (MaxRRError, ValueError, OSError, MemoryError) as error:
        if debug:
            raise
        ended(REFUSED if isinstance(error, Refused | Stale) else FAILED, in_words(error), code_of(error), json)
    except Exception as error:
        if json and getattr(error, "exit_code", DONE) == USAGE:  # of Typer, which prints it
            show.json({"error": BY_STATUS[USAGE], "message": error.format_message()})  # type: ignore[attr-defined]
        raise


def code_of(error: Exception) -> str:
    """Return what programs call the error."""
    if isinstance(error, MaxRRError):
        return error.code
    if isinstance(error, OSError):
        return "file-missing" if isinstance(error, FileNotFoundError) else "disk"
    return "no-memory" if isinstance(error, MemoryError) else "wrong-value"


def ended(status: int, words: str, code: str, json: bool = False) -> NoReturn:
    """Exit with this status, also where nothing can be written any more."""
    try:
        if words:
            show.error(words if status == INTERRUPTED else f"{words} [{code}]")
        if words and json:
            show.json({"error": code, "message": words})
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:
        silence(sys.stdout)
    raise SystemExit(status) from None


def silence(stream: TextIO) -> None:
    """Send what is still to be written nowhere: Python would complain once more as it exits, with its own code."""
    with suppress(OSError, ValueError):  # not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def in_words(error: Exception) -> str:
    """Return the message of an error, without Python's trimmings.

    >>> in_words(FileNotFoundError(2, "No such file or directory", "cats.npz"))
    'cats.npz: No such file or directory'
    """
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return ": ".join(filter(None, ["there is not enough memory", str(error)]))
    notes = [note for note in getattr(error, "__notes__", ()) if "\n" not in note]  # others are tracebacks
    return "; ".join([str(error) or repr(error), *notes])


def prepare_streams() -> None:
    """Put a null device in the place of streams that the caller has closed. What a terminal cannot show is a `?`."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: SIM115 (for as long as the process)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
