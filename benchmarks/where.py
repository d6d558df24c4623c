"""Where the seconds of a call go: which module of the solver is at work, looked at every few milliseconds.

On a graphics processor work is only started by the program, and its time shows where the program waits for a result.
"""

import sys
import threading
from collections import defaultdict
from pathlib import Path
from time import perf_counter
from types import FrameType

import maxrr.svm

FOLDER = str(Path(maxrr.svm.__path__[0]))
HELPERS = {"arrays"}  # count for whoever calls them
INTERVAL = 0.01


class Watch:
    """`with Watch() as watch: …`, and then `watch.shares()`."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.done = threading.Event()
        self.watched = threading.get_ident()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def __enter__(self) -> "Watch":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()

    def look(self) -> None:
        before = perf_counter()
        while not self.done.wait(INTERVAL):
            module = at_work(sys._current_frames().get(self.watched))
            now = perf_counter()
            self.seconds[module] += now - before
            before = now

    def shares(self, least: float = 0.02) -> dict[str, float]:
        """Parts of the time, the largest first; those below `least` are left out."""
        total = sum(self.seconds.values())
        largest_first = sorted(self.seconds.items(), key=lambda item: -item[1])
        return {name: round(spent / total, 3) for name, spent in largest_first if spent >= least * total}


def at_work(frame: FrameType | None) -> str:
    """The innermost module of the solver."""
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if str(file.parent).startswith(FOLDER) and file.stem not in HELPERS:
            return file.stem
        frame = frame.f_back
    return "elsewhere"
