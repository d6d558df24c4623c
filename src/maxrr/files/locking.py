"""One process at a time in a folder, or several that only read it."""

import os
import time
import weakref
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PAUSE = 0.05  # seconds between two tries


class Lock:
    """A lock on a file, held until `release`, or until its owner is no more. The system lets go of it on kill, too.

    Parameters
    ----------
    path
        Created if it is not there.
    shared : bool
        Together with others that share it, too.
    wait : float
        Seconds to wait for those who hold it.
    of_process : bool
        Against other processes only: this one may lock it again, as after a failure whose traceback still holds the
        first lock.

    Raises
    ------
    BlockingIOError
        Somebody else held it all the time.
    """

    def __init__(
        self, path: str | Path, *, shared: bool = False, wait: float = 0.0, of_process: bool = False
    ) -> None:  # fmt: skip
        flags = os.O_RDONLY if shared and Path(path).exists() else os.O_RDWR | os.O_CREAT
        descriptor = os.open(path, flags, 0o600)
        self.release = weakref.finalize(self, os.close, descriptor)
        if fcntl is None:
            return
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        until = time.monotonic() + wait
        while True:
            try:
                (fcntl.lockf if of_process else fcntl.flock)(descriptor, kind | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= until:
                    self.release()
                    raise
            time.sleep(PAUSE)
