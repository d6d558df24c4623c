"""Something happens at the n-th touch of the disk: the process is killed, the disk is full, Ctrl-C.

Every call that changes files is a point, and so is the middle of every write, with one half written and the other not.
"""

import builtins
import errno
import os
import signal
from contextlib import ExitStack, contextmanager
from unittest import mock

from maxrr.workspace import older_copies

CALLS = ("fsync", "replace", "rename", "link", "unlink", "rmdir", "mkdir", "ftruncate")
NEEDING_SPACE = {"open", "half", "write", "mkdir", "append", "append half"}


class Points:
    """Counts the touches of the disk, and acts at one of them (`at`, from 1), or from there on (`lasting`)."""

    def __init__(self, at, act, only=None, lasting=False):
        self.at, self.act, self.only, self.lasting = at, act, only, lasting
        self.count = 0

    def reach(self, what, path):
        if self.only is not None and what not in self.only:
            return
        self.count += 1
        if self.count == self.at or (self.lasting and self.count > self.at > 0):
            self.act(path)

    @contextmanager
    def patched(self):
        """While this lasts, the calls go through here."""
        with ExitStack() as stack:
            for name in CALLS:
                stack.enter_context(mock.patch.object(os, name, self.wrapped(name)))
            stack.enter_context(mock.patch.object(os, "pwrite", self.overwriting()))
            stack.enter_context(mock.patch.object(builtins, "open", self.opening()))
            stack.enter_context(mock.patch.object(older_copies, "keep"))  # elsewhere, and never a failure
            yield self

    def wrapped(self, name):
        real = getattr(os, name)

        def call(*args, **options):
            self.reach(name, args[0] if isinstance(args[0], int) else os.fspath(args[0]))
            return real(*args, **options)

        return call

    def overwriting(self):
        real = os.pwrite

        def pwrite(descriptor, content, offset):
            kind = "append" if offset >= os.fstat(descriptor).st_size else "overwrite"
            self.reach(kind, descriptor)
            written = real(descriptor, content[: len(content) // 2], offset)
            self.reach(f"{kind} half", descriptor)
            return written + real(descriptor, content[written:], offset + written)

        return pwrite

    def opening(self):
        real = builtins.open

        def open_(path, mode="r", *args, **options):
            if not set(mode) & set("wxa+"):
                return real(path, mode, *args, **options)
            self.reach("open", os.fspath(path))
            return Written(real(path, mode, *args, **options), self)

        return open_


class Written:
    """A file whose writes come in two halves."""

    def __init__(self, file, points):
        self.file, self.points = file, points

    def write(self, content):
        self.points.reach("write", None)
        self.file.write(content[: len(content) // 2])
        self.file.flush()
        self.points.reach("half", None)
        self.file.write(content[len(content) // 2 :])
        self.file.flush()
        return len(content)

    def truncate(self, size=None):
        self.points.reach("truncate", None)
        return self.file.truncate(size)

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


def die(path):
    """As if the power were cut for this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def full(path):
    raise failed(errno.ENOSPC, path)


def read_only(path):
    raise failed(errno.EROFS, path)


def broken(path):
    raise failed(errno.EIO, path)


def failed(number, path):
    """As the system says it: calls that are given a descriptor know no name."""
    return OSError(number, os.strerror(number), *([] if path is None or isinstance(path, int) else [path]))


def interrupt(path):
    raise KeyboardInterrupt
