"""A disk that can be watched and can fail: all that is done to the files below a folder, and how much of it has reached
the device.

It knows the calls of the system and nothing of the workspace: not which files there are, nor what is in them. Names
(files that are created, renamed, deleted) are taken to reach the device at once, contents only with a flush. What is
written through a map of a file is not seen, and so never reaches the device.
"""

import builtins
import errno
import io
import itertools
import os
import shutil
import signal
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

FLUSHES = ("fsync", "fdatasync")
NAMES = ("replace", "rename", "link", "symlink", "unlink", "remove", "rmdir", "mkdir")
WRITES = os.O_WRONLY | os.O_RDWR
NEEDING_SPACE = {"create", "write", "half", "mkdir"}
CHANGES = {"open", *NEEDING_SPACE, *NAMES, "truncate"}


class Disk:
    """Calls `touched(kind)` before each touch of the folder, which may raise what the system would.

    Kinds are "open" (of a file that is there, to write in it), "create", "write", "half" (in the middle of a write),
    "truncate", "flush", and the names of the calls that change names.
    """

    def __init__(self, folder, touched=lambda kind: None):
        self.folder, self.touched = Path(folder), touched
        self.busy = False  # who looks at the folder from `touched` is not watched
        self.kept = {path.stat().st_ino: path.read_bytes() for path in files_below(folder)}  # by the device
        self.pending = {}  # by file, what was done since its last flush: (place, bytes), or (length, None) for a cut

    # What there is

    def cached(self):
        """What every process sees, and finds when this one is killed: contents by path."""
        return {path: path.read_bytes() for path in files_below(self.folder)}

    def device(self):
        """What is left after a power cut that loses all that was not flushed."""
        return {path: self.kept.get(path.stat().st_ino, b"") for path in files_below(self.folder)}

    def torn(self, places):
        """What may be left after a power cut that catches one file half written: its name, how, and all contents.

        Of the bytes that were not flushed some reach the device, in any order: the rest is missing or zeros.
        """
        cached, device = self.cached(), self.device()
        for path, content in cached.items():
            number = path.stat().st_ino
            if not self.pending.get(number):
                continue
            kept = self.kept[number]
            changed = [at for at in range(len(content)) if kept[at : at + 1] != content[at : at + 1]]
            if not changed:
                continue
            first, stop = changed[0], changed[-1] + 1
            yield f"{path.name}, and no other file", {**device, path: content}
            for place in places(stop - first):
                at = first + place
                later = kept[:at].ljust(at, b"\0") + content[at:]
                halves = {"first half": content[:at] + kept[at:], "second half": later}
                if len(content) > len(kept):
                    halves["first half, then zeros"] = (content[:at] + kept[at:]).ljust(len(content), b"\0")
                for how, half in halves.items():
                    yield f"{path.name}, {how} at {place} of {stop - first}", {**cached, path: half}

    # Watching

    @contextmanager
    def watched(self):
        """While this lasts, the calls of this process go through here."""
        with ExitStack() as stack:

            def put(module, name, call):
                stack.enter_context(mock.patch.object(module, name, call))

            for name in FLUSHES:
                put(os, name, self.flushing(getattr(os, name)))
            for name in NAMES:
                put(os, name, self.naming(name, getattr(os, name)))
            put(os, "open", self.opening_descriptor(os.open))
            put(os, "write", self.writing(os.write))
            put(os, "pwrite", self.writing_at(os.pwrite))
            put(os, "ftruncate", self.cutting(os.ftruncate))
            put(os, "writev", lambda descriptor, parts: os.write(descriptor, b"".join(parts)))
            put(os, "pwritev", lambda descriptor, parts, *rest: os.pwrite(descriptor, b"".join(parts), rest[0]))
            for name in ("truncate", "sendfile", "copy_file_range", "posix_fallocate", "splice"):
                if hasattr(os, name):
                    put(os, name, unknown(name))  # none is used; who uses one teaches it here
            opened = self.opening(builtins.open)
            put(builtins, "open", opened)
            put(io, "open", opened)
            yield self

    def touch(self, kind):
        if not self.busy:
            self.busy = True
            try:
                self.touched(kind)
            finally:
                self.busy = False

    def is_below(self, path):
        return not isinstance(path, int) and self.folder in Path(os.path.abspath(os.fspath(path))).parents

    def folders(self):
        below = (path.stat().st_ino for path in self.folder.rglob("*") if path.is_dir())
        return {self.folder.stat().st_ino, *below}

    def note(self, number, change):
        self.pending.setdefault(number, []).append(change)

    def flushing(self, real):
        def flush(descriptor):
            number = os.fstat(descriptor).st_ino
            if self.busy or (number not in self.kept and number not in self.folders()):
                return real(descriptor)
            try:
                self.touch("flush")
            except OSError:
                self.pending.pop(number, None)  # the system says it once, and calls what it lost written
                raise
            if number in self.kept:
                self.kept[number] = applied(self.kept[number], self.pending.pop(number, ()))
            return real(descriptor)

        return flush

    def naming(self, name, real):
        def call(*args, **options):
            if any(self.is_below(each) for each in args if isinstance(each, (str, os.PathLike))):
                self.touch(name)
            return real(*args, **options)

        return call

    def opening_descriptor(self, real):
        def open_(path, flags, *args, **options):
            ours = not self.busy and self.is_below(path) and bool(flags & (WRITES | os.O_CREAT))
            new = ours and bool(flags & os.O_CREAT) and not os.path.lexists(path)
            if ours:
                self.touch("create" if new else "open")
            descriptor = real(path, flags, *args, **options)
            if ours:
                self.opened(descriptor, new, emptied=bool(flags & os.O_TRUNC))
            return descriptor

        return open_

    def opening(self, real):
        def open_(path, mode="r", *args, **options):
            if self.busy or not set(mode) & set("wxa+") or not self.is_below(path):
                return real(path, mode, *args, **options)
            new = not os.path.lexists(path)
            self.touch("create" if new else "open")
            self.busy = True  # an opener calls os.open
            try:
                file = real(path, mode, *args, **options)
            finally:
                self.busy = False
            self.opened(file.fileno(), new, emptied="w" in mode)
            return File(file, self)

        return open_

    def opened(self, descriptor, new, emptied):
        number = os.fstat(descriptor).st_ino
        if new:
            self.kept[number] = b""  # whichever file had this number is gone
            self.pending.pop(number, None)
        elif emptied:
            self.note(number, (0, None))

    def writing(self, real):
        def write(descriptor, content):
            found = os.fstat(descriptor)
            if self.busy or found.st_ino not in self.kept:
                return real(descriptor, content)
            at_end = bool(fcntl_flags(descriptor) & os.O_APPEND)
            return self.in_halves(
                found.st_ino, bytes(content),
                lambda: os.fstat(descriptor).st_size if at_end else os.lseek(descriptor, 0, os.SEEK_CUR),
                lambda half, at: real(descriptor, half),
            )  # fmt: skip

        return write

    def writing_at(self, real):
        def pwrite(descriptor, content, offset):
            number = os.fstat(descriptor).st_ino
            if self.busy or number not in self.kept:
                return real(descriptor, content, offset)
            places = iter((offset, offset + len(content) // 2))
            return self.in_halves(
                number, bytes(content), lambda: next(places), lambda half, at: real(descriptor, half, at)
            )

        return pwrite

    def in_halves(self, number, content, place, write):
        """Write one half and then the other."""
        middle = len(content) // 2
        for kind, half in (("write", content[:middle]), ("half", content[middle:])):
            self.touch(kind)
            at = place()
            write(half, at)
            self.note(number, (at, half))
        return len(content)

    def cutting(self, real):
        def ftruncate(descriptor, length):
            number = os.fstat(descriptor).st_ino
            if not self.busy and number in self.kept:
                self.touch("truncate")
                self.note(number, (length, None))
            return real(descriptor, length)

        return ftruncate


class File:
    """A file whose writes are watched."""

    def __init__(self, file, disk):
        self.file, self.disk = file, disk

    def write(self, content):
        number = os.fstat(self.file.fileno()).st_ino

        def write(half, at):
            self.file.write(half)
            self.file.flush()

        if isinstance(content, str):
            self.disk.touch("write")
            write(content, None)
            self.disk.note(number, (0, Path(self.file.name).read_bytes()))
            return len(content)
        at_end = bool(fcntl_flags(self.file.fileno()) & os.O_APPEND)
        place = (lambda: os.fstat(self.file.fileno()).st_size) if at_end else self.file.tell
        return self.disk.in_halves(number, bytes(content), place, write)

    def truncate(self, size=None):
        self.disk.touch("truncate")
        cut = self.file.truncate(size)
        self.disk.note(os.fstat(self.file.fileno()).st_ino, (cut, None))
        return cut

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


def fcntl_flags(descriptor):
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_GETFL)


def applied(content, changes):
    """The content of a file after some writes and cuts."""
    content = bytearray(content)
    for place, written in changes:
        if written is None:
            content[:] = content[:place].ljust(place, b"\0")
        else:
            content[:] = content.ljust(place, b"\0")
            content[place : place + len(written)] = written
    return bytes(content)


def unknown(name):
    def call(*_, **__):
        raise NotImplementedError(f"os.{name}: teach tests/workspace/disk.py")

    return call


def files_below(folder):
    """Every regular file below a folder."""
    return sorted(path for path in Path(folder).rglob("*") if path.is_file() and not path.is_symlink())


def put(contents, folder, to):
    """Make a folder with these contents of another."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(mode=0o700)
    for path, content in contents.items():
        place = to / path.relative_to(folder)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.write_bytes(content)
        place.chmod(0o600)
    return to


def fails(number, kinds, at, *, lasting=False):
    """Raise this error of the system at the n-th touch of these kinds, from 1, or from there on.

    `count()` says how many there were."""
    count = 0

    def touched(kind):
        nonlocal count
        if kind in kinds:
            count += 1
            if count == at or (lasting and count > at):
                raise OSError(number, os.strerror(number))

    touched.count = lambda: count
    return touched


def dies(at):
    """Kill this process at the n-th touch, from 1."""
    touches = itertools.count(1)

    def touched(_):
        if next(touches) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    return touched


def forked(work, watched):
    """Do this in another process, in a context; whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            with watched:
                work()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    ended = os.waitstatus_to_exitcode(status)
    assert ended in (0, -signal.SIGKILL), f"the child failed by itself ({ended})"
    return ended != 0


BROKEN, FULL, READ_ONLY = errno.EIO, errno.ENOSPC, errno.EROFS
