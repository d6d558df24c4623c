"""One process at a time in a folder, or several that only read it."""

import errno
import os
import stat
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
PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # no link is followed, no pipe waited for


class Lock:
    """A lock on a file, held until `release`, or until its owner is no more. The system lets go of it on kill, too.

    A process that was forked has none of the locks of the one that it was forked from.

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
    OSError
        It is no file.
    """

    def __init__(
        self, path: str | Path, *, shared: bool = False, wait: float = 0.0, of_process: bool = False
    ) -> None:  # fmt: skip
        flags = os.O_RDONLY if shared and Path(path).exists() else os.O_RDWR | os.O_CREAT
        descriptor = os.open(path, flags | PLAIN, 0o600)
        self.release = weakref.finalize(self, let_go, descriptor, of_process)
        HELD.add(self)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            self.release()
            raise OSError(errno.EINVAL, "Is not a file", str(path))
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


HELD = weakref.WeakSet[Lock]()


def let_go(descriptor: int, of_process: bool) -> None:
    """Let others have it at once, whoever inherited the descriptor."""
    if fcntl is not None and not of_process:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def forget_after_fork() -> None:
    """The system would keep a lock for as long as a child lives that knows nothing of it. The parent still has it."""
    for lock in list(HELD):
        if (inherited := lock.release.detach()) is not None:
            os.close(inherited[2][0])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_after_fork)


def enter(path: str | Path, turnstile: str | Path, *, shared: bool = False, wait: float = 0.0) -> Lock:
    """A lock for which those who want it alone go before those who come later to share it.

    Who waits to have it alone holds the turnstile, a second file, which the others have to pass. Otherwise it might
    be shared by one after the other for ever.

    Raises
    ------
    BlockingIOError
        Somebody else held it, or stood in the turnstile, all the time.
    """
    until = time.monotonic() + wait
    waiting: Lock | None = None
    try:
        while True:
            try:
                if shared:
                    Lock(turnstile, shared=True).release()
                elif waiting is None:
                    waiting = Lock(turnstile)
                return Lock(path, shared=shared)
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise
            time.sleep(PAUSE)
    finally:
        if waiting is not None:
            waiting.release()
