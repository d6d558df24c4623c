"""How long work tells how far it is, and a plain line that shows it.

Functions that take long have a parameter `progress` and call it as they go; with None they say nothing. The caller
decides what is drawn, and with which library: `Line` needs nothing but a terminal or a log file.
"""

import math
import shutil
import sys
import time
import typing


class Progress(typing.Protocol):
    """A function that long work calls to tell how far it is."""

    def __call__(self, what: str, done: int, total: int, **numbers: float) -> None:
        """Take note of how far the work is.

        Parameters
        ----------
        what
            What is being done, in a few words. Several kinds of work may follow each other.
        done
            How much of it is done.
        total
            How much there is in all; `done` equal to `total` says that this work is finished.
        **numbers
            Numbers worth showing, such as `loss` and `accuracy`.
        """


class Line:
    """Progress as one line: how far the work is, its numbers, and how long it will take.

    On a terminal and in a notebook the line is written over ten times a second. In a log file, a new line is written
    every ten seconds.

    Parameters
    ----------
    stream : text file, optional
        Where to write; standard error by default.

    Examples
    --------
    >>> line = Line(sys.stdout)
    >>> line("training", 1, 1, loss=0.25)
    training: 1/1 (100 %), loss 0.25, 0:00 in all
    """

    def __init__(self, stream: typing.TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.live = self.stream.isatty() or "ipykernel" in sys.modules  # notebooks write over a line, too
        self.pause = 0.1 if self.live else 10.0  # seconds between lines
        self.what: str | None = None
        self.shown = 0.0
        self.widest = 0
        self.begun = dict[str, tuple[float, int]]()  # by what is done: when it began, and how much was done then

    def __call__(self, what: str, done: int, total: int, **numbers: float) -> None:
        """Show how far the work is, as `Progress.__call__` takes it, if it is time for another line."""
        now = time.monotonic()
        if what != self.what:
            self.close()
            self.what, self.shown = what, -math.inf
        started, first = self.begun.setdefault(what, (now, done))
        finished = done >= total
        if not finished and now - self.shown < self.pause:
            return
        self.shown = now
        text = _describe(what, done, total, numbers, now - started, first)
        if self.live:
            bar = "=" * (10 * done // total if total else 10)
            # A line that wraps could not be written over; spaces wipe out what a longer one left behind.
            text = f"[{bar:<10}] {text}"[: shutil.get_terminal_size().columns - 1]
            self.stream.write("\r" + text.ljust(self.widest))
            self.widest = max(self.widest, len(text))
        else:
            self.stream.write(text + "\n")
        self.stream.flush()
        if finished:
            self.close()
            del self.begun[what]

    def close(self) -> None:
        """End the line, whether the work is finished or not, so that what is written next starts on a new one."""
        if self.live and self.widest:
            self.stream.write("\n")
            self.stream.flush()
        self.what, self.widest = None, 0


def shown(verbose: bool | None) -> Line | None:
    """Return a `Line` where progress is wanted; for None, where somebody looks on: at a terminal or in a notebook."""
    line = Line()
    return line if (line.live if verbose is None else verbose) else None


def _describe(what: str, done: int, total: int, numbers: dict[str, float], elapsed: float, first: int) -> str:
    """The line in words. `first` was done before anything was seen, and says nothing about speed."""
    parts = [f"{what}: {done:,}/{total:,} ({100 * done // total if total else 100} %)"]
    parts += [f"{name} {value:.4g}" for name, value in numbers.items()]
    if done >= total:
        parts.append(f"{_clock(elapsed)} in all")
    elif done > first and elapsed > 0.0:
        parts.append(f"{_clock(elapsed * (total - done) / (done - first))} left")
    return ", ".join(parts)


def _clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any.

    >>> _clock(75), _clock(3675)
    ('1:15', '1:01:15')
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
