"""Locks: one process at a time works in a folder."""

import errno
import fcntl
import os
import stat
import time
import weakref
from contextlib import suppress
from pathlib import Path

PAUSE = 0.05  # seconds between two tries
PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK  # no link is followed, no pipe waited for


class Lock:
    """A lock on a file, held until `release()` is called, this object is collected, or the process ends or is killed.

    A forked process does not hold the locks of its parent.

    Parameters
    ----------
    path
        The file that is locked. It is created if it does not exist.
    wait : float
        Seconds to wait for those who hold it.
    of_process : bool
        Whether only other processes are kept out: this one may then lock the file again, as after a failure whose
        traceback still holds the first lock.

    Raises
    ------
    BlockingIOError
        Somebody else held the lock all the time.
    OSError
        The path is not a regular file.
    """

    def __init__(self, path: str | Path, *, wait: float = 0.0, of_process: bool = False) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | PLAIN, 0o600)
        self.path, self.descriptor = path, descriptor
        self.release = weakref.finalize(self, let_go, descriptor, of_process)
        HELD.add(self)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            self.release()
            raise OSError(errno.EINVAL, "Is not a file", str(path))
        until = time.monotonic() + wait
        while True:
            try:
                (fcntl.lockf if of_process else fcntl.flock)(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= until:
                    self.release()
                    raise
            time.sleep(PAUSE)


def is_named(path: str | Path, opened: os.stat_result) -> bool:
    """Whether a file that was opened still has its name: no other was put in its place, and nobody deleted it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(opened, os.stat(path))
    return False


HELD = weakref.WeakSet[Lock]()


def let_go(descriptor: int, of_process: bool) -> None:
    """Release the lock at once, even if a child process has inherited the descriptor."""
    if not of_process:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def forget_after_fork() -> None:
    """Close the parent's locks in a forked child, which would otherwise hold them for as long as it lives."""
    for lock in list(HELD):
        if (inherited := lock.release.detach()) is not None:
            os.close(inherited[2][0])


os.register_at_fork(after_in_child=forget_after_fork)
