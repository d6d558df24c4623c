"""Files that only grow. What they hold up to a committed length never changes; what lies beyond was never committed.

The hash of a file goes on from the one before, so that nothing is read or hashed twice.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from maxrr.files import write_atomically
from maxrr.workspace.errors import content_of, damaged
from maxrr.workspace.rows import writable, write_at


@dataclass(frozen=True)
class Extent:
    """How far a file goes, and the SHA-256 of that."""

    length: int
    sha256: str


class Growing:
    """A file up to a length. Values: what is appended gives another one."""

    def __init__(self, path: Path, content: bytes = b"") -> None:
        self.path, self.length = path, len(content)
        self._hash = hashlib.sha256(content)

    @classmethod
    def read(cls, path: Path, extent: Extent) -> tuple["Growing", bytes]:
        """The file as it was committed, and its content."""
        content = content_of(path)
        if len(content) < extent.length:
            raise damaged(path, f"it ends after {len(content):,} of {extent.length:,} bytes")
        content = content[: extent.length]
        found = cls(path, content)
        if found.extent != extent:
            raise damaged(path, "its content does not have the hash that was committed")
        return found, content

    @property
    def extent(self) -> Extent:
        """How far it goes."""
        return Extent(self.length, self._hash.hexdigest())

    @classmethod
    def created(cls, path: Path, content: bytes) -> "Growing":
        """A new file. Its name is flushed by whoever commits it."""
        write_atomically(path, content, private=True, flush_name=False)
        return cls(path, content)

    def append(self, content: bytes) -> "Growing":
        """Write more to the disk, which counts once a commit says so; gives the file as it is then."""
        if content:
            with writable(self.path) as descriptor:
                write_at(descriptor, self.length, content)
                os.fsync(descriptor)
        longer = Growing.__new__(Growing)
        longer.path, longer.length, longer._hash = self.path, self.length + len(content), self._hash.copy()
        longer._hash.update(content)
        return longer

    def cut(self) -> None:
        """Drop what no commit counted."""
        with writable(self.path) as descriptor:
            if os.fstat(descriptor).st_size > self.length:
                os.ftruncate(descriptor, self.length)
                os.fsync(descriptor)

    def part(self, start: int, stop: int) -> bytes:
        """Some of its bytes, read from the disk."""
        with open(self.path, "rb") as file:
            file.seek(start)
            return file.read(stop - start)
