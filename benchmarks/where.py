"""Where the seconds of a call go: which modules of the solver are at work, looked at every few milliseconds.

Threads that only wait for others do not count. On a graphics processor work is only started by the program, and its
time shows where the program waits for a result.
"""

import concurrent.futures
import queue
import sys
import threading
from collections import defaultdict
from pathlib import Path
from time import perf_counter
from types import FrameType

import maxrr.svm

FOLDER = str(Path(maxrr.svm.__path__[0]))
HELPERS = {"arrays"}  # count for whoever calls them
WAITING = (threading.__file__, queue.__file__, str(Path(concurrent.futures.__file__).parent))
INTERVAL = 0.01


class Watch:
    """`with Watch() as watch: …`, and then `watch.shares()`."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.done = threading.Event()
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
            found = [module for frame in sys._current_frames().values() if (module := at_work(frame))]
            now = perf_counter()
            for module in found:
                self.seconds[module] += (now - before) / len(found)
            before = now

    def shares(self, least: float = 0.02) -> dict[str, float]:
        """Parts of the time, the largest first; those below `least` are left out."""
        total = sum(self.seconds.values())
        largest_first = sorted(self.seconds.items(), key=lambda item: -item[1])
        return {name: round(spent / total, 3) for name, spent in largest_first if spent >= least * total}


def at_work(frame: FrameType | None) -> str | None:
    """The innermost module of the solver in a thread; None if it has none, or waits."""
    if frame is None or frame.f_code.co_filename.startswith(WAITING):
        return None
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if str(file.parent).startswith(FOLDER) and file.stem not in HELPERS:
            return file.stem
        frame = frame.f_back
    return None
