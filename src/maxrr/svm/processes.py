"""Worker processes that do not run the calling script again."""

import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def without_the_script() -> Iterator[None]:
    """Processes that start meanwhile do not import the calling script, as Python would have them do.

    They need nothing of it, and one without `if __name__ == "__main__":` would start processes without end.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def end_with_the_parent() -> None:
    """Called in a worker: it would wait for work for ever after its parent was killed, with what it holds in memory."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
