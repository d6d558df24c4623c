"""Worker processes that do not run the calling script again."""

import sys
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
