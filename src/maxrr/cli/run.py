"""Run one command: what a user can put right is a line on stderr, not a traceback."""

import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from maxrr.cli import show
from maxrr.cli.command import Command
from maxrr.cli.exits import FAILED, INTERRUPTED, Stop


def run(command: Command, values: Mapping[str, Any], *, debug: bool = False) -> None:
    """Call the command. Our own errors are ValueErrors and heads that cannot be solved, a file's or a disk's are
    OSErrors, and the memory may be too small; any other is a fault.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: show.warning(str(message))
            command(**values)
        sys.stdout.flush()
    except Stop as stop:
        if str(stop):
            show.error(str(stop))
        raise SystemExit(stop.code) from None
    except KeyboardInterrupt as interrupt:
        show.error(": ".join(filter(None, ["interrupted", str(interrupt)])))
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:  # `maxrr … | head` has read enough; Python would complain once more as it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(FAILED) from None
    except (ValueError, OSError, ArithmeticError, MemoryError) as error:
        if debug or not is_expected(error):
            raise
        show.error(in_words(error))
        raise SystemExit(FAILED) from None


def is_expected(error: Exception) -> bool:
    """Whether it is of a kind that a user can put right: a division by zero is not."""
    if not isinstance(error, ArithmeticError):
        return True
    from maxrr.svm import ConvergenceError

    return isinstance(error, ConvergenceError)


def in_words(error: Exception) -> str:
    """The message, without Python's trimmings.

    >>> in_words(FileNotFoundError(2, "No such file or directory", "cats.npz"))
    'cats.npz: No such file or directory'
    """
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return ": ".join(filter(None, ["there is not enough memory", str(error)]))
    return str(error) or repr(error)
