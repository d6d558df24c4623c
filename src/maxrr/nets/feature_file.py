"""A file of features that the workers of an engine write together, each a stretch of records in its place.

It lies beside the file that was asked for, and takes its name when it is whole. A journal says which stretches are on
the disk, with a hash of some pages of each: work that was interrupted, or killed, goes on from there.
"""

import errno
import json
import os
import platform
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxrr.errors import EngineError
from maxrr.files import Lock, flush_folder, write_atomically
from maxrr.files.atomic import FULL
from maxrr.parallel import Engine
from maxrr.parallel.engine import ends_all
from maxrr.parallel.parcels import digest_of
from maxrr.progress import Progress

R = TypeVar("R")
Stretch = tuple[int, int]
"""The number of a first row, and of the one after the last."""
Rows = Callable[[Stretch, Any], NDArray[Any]]
"""An importable function from a stretch, and what all have in common, to the features."""

SHARED_FOLDER = "workers write into this file themselves: choose a folder that all nodes see, on a shared file system"


@dataclass(frozen=True)
class Layout:
    """Where the rows are in the file."""

    path: str
    dtype: str
    count: int
    width: int

    @property
    def header(self) -> bytes:
        """What stands before the numbers in an .npy file."""
        content = BytesIO()
        about = {"descr": self.dtype, "fortran_order": False, "shape": (self.count, self.width)}
        np.lib.format.write_array_header_1_0(content, about)
        return content.getvalue()

    def place(self, row: int) -> int:
        """Where a row begins; the file ends where one more would."""
        return len(self.header) + row * self.width * np.dtype(self.dtype).itemsize

    def make(self) -> None:
        """A file of the right size, which is on the disk when this returns."""
        with open(self.path, "r+b") as file:
            file.truncate(0)
            file.write(self.header)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, self.place(self.count))  # now, and not when the last is written
            else:
                file.truncate(self.place(self.count))
            file.flush()
            os.fsync(file.fileno())

    def fits(self, path: Path) -> bool:
        """Whether a file has the right size."""
        return path.exists() and path.stat().st_size == self.place(self.count)

    def digest(self, path: Path, stretch: Stretch) -> str:
        """What `digest_of` says of a stretch in such a file."""
        first, last = map(self.place, stretch)
        return digest_of(np.memmap(path, np.uint8, "r", first, (last - first,)))

    def kept(self, path: Path, stretches: list[Stretch], noted: Mapping[int, str]) -> set[int]:
        """Which stretches are in a file as they were noted."""
        if not self.fits(path):
            return set()
        there = [(number, noted[number]) for number in range(len(stretches)) if number in noted]
        return {number for number, digest in there if self.digest(path, stretches[number]) == digest}


def write_stretch(stretch: Stretch, rows_of: Rows, given: Any, layout: Layout) -> str:
    """What a worker does: embed a stretch, and write it. It is on the disk when this returns its digest."""
    rows = np.ascontiguousarray(rows_of(stretch, given))
    if rows.dtype.str != layout.dtype or rows.shape[1] != layout.width:
        raise ValueError(
            f"the extractor gives {layout.width} features of type {np.dtype(layout.dtype)} for some records, and "
            f"{rows.shape[1]} of type {rows.dtype} for others"
        )
    content = rows.reshape(-1).view(np.uint8)
    try:
        with open(layout.path, "r+b") as file:
            if os.fstat(file.fileno()).st_size != layout.place(layout.count):
                raise EngineError(f"{layout.path}: is another file on node {platform.node()}: {SHARED_FOLDER}")
            file.seek(layout.place(stretch[0]))
            file.write(content.data)
            file.flush()
            os.fsync(file.fileno())
    except FileNotFoundError:
        raise EngineError(f"{layout.path}: is not there on node {platform.node()}: {SHARED_FOLDER}") from None
    return digest_of(content)


def write(
    engine: Engine, rows_of: Rows, stretches: list[Stretch], block: int, given: Any, kind: Mapping[str, Any], out: Path,
    progress: Progress | None,
) -> None:  # fmt: skip
    """Write the rows of all stretches to `out`, or those that are left to do of work of the same kind.

    The first `block` rows are computed first, to see what the file should look like.
    """
    part, journal = out.with_name(f"{out.name}.part"), Journal(out.with_name(f"{out.name}.journal"))
    count, noted = stretches[-1][1], dict[int, str]()
    with locked(part, out):
        known = journal.read(kind, part)
        if known is not None:
            layout, noted = Layout(str(part), *known[0]), known[1]
        else:
            with removed_if_useless(part, out):
                ((_, sample),) = finished(engine, rows_of, [(0, min(block, count))], given)
                layout = Layout(str(part), sample.dtype.str, count, sample.shape[1])
                layout.make()
                journal.begin(kind, layout)
        if not layout.fits(part):
            if len(layout.kept(out, stretches, noted)) == len(stretches):  # killed when the file just had its name
                part.unlink()
                journal.path.unlink()
                return
            layout.make()
            journal.begin(kind, layout)
            noted = {}
        done = layout.kept(part, stretches, noted)
        if done:
            check_same_extractor(engine, rows_of, stretches[min(done)][0], block, given, layout, journal.path)
        missing = [number for number in range(len(stretches)) if number not in done]
        left = [stretches[number] for number in missing]
        rows = count - sum(last - first for first, last in left)
        with journal.open() as note:
            for place, digest in finished(engine, write_stretch, left, rows_of, given, layout, to_the_end=True):
                if layout.digest(part, left[place]) != digest:
                    raise EngineError(f"{part}: a worker has written to another file of this name: {SHARED_FOLDER}")
                note(missing[place], digest)
                rows += left[place][1] - left[place][0]
                if progress is not None:
                    progress("embedding", rows, count)
        os.replace(part, out)
        flush_folder(out.parent)
        journal.path.unlink()


def check_same_extractor(
    engine: Engine, rows_of: Rows, first: int, block: int, given: Any, layout: Layout, journal: Path
) -> None:  # fmt: skip
    """Compute a block again that is done: what its file has may be of an extractor whose weights alone are the same."""
    stretch = first, min(first + block, layout.count)
    ((_, rows),) = finished(engine, rows_of, [stretch], given)
    start, end = map(layout.place, stretch)
    if np.memmap(layout.path, np.uint8, "r", start, (end - start,)).tobytes() != rows.tobytes():
        raise ValueError(
            f"{journal} is of unfinished work with another extractor, or on another kind of processor: choose another "
            f"file, or delete it and {Path(layout.path).name} to start anew"
        )


def finished(
    engine: Engine, work: Callable[..., R], stretches: list[Stretch], *given: Any, to_the_end: bool = False
) -> Generator[tuple[int, R]]:  # fmt: skip
    """The number of each stretch, and what work on it gives, as soon as that is there; errors name the rows.

    To the end: what has failed is raised when the others are done.
    """
    errors: list[BaseException] = []
    with closing(engine.as_finished(work, stretches, *given)) as under_way:
        for number, future in under_way:
            if (error := future.exception()) is None:
                yield number, future.result()
                continue
            first, last = stretches[number]
            error.add_note(f"while rows {first:,} to {last - 1:,} of the dataset were embedded")
            errors.append(error)
            if ends_all(error, kept=to_the_end):
                break
    if errors:
        raise errors[0]


class Journal:
    """A small file: what all stretches have in common, and the number and digest of each that is done, a line each."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, kind: Mapping[str, Any], layout: Layout) -> None:
        """A journal in which nothing is done yet."""
        first = {"kind": kind, "layout": [layout.dtype, layout.count, layout.width]}
        write_atomically(self.path, json.dumps(first).encode() + b"\n")

    def read(self, kind: Mapping[str, Any], part: Path) -> tuple[tuple[str, int, int], dict[int, str]] | None:
        """Dtype, rows and width, and what is done; None where there is no journal.

        A line that was being written when its process was killed is not whole, and does not count.
        """
        if not self.path.exists():
            return None
        anew = f"delete {self.path.name} and {part.name} to start anew"
        try:
            first, *lines = self.path.read_text(encoding="utf-8").split("\n")
            said = json.loads(first)
            found, (dtype, count, width) = dict(said["kind"]), said["layout"]
            done = {int(number): digest for number, digest in (line.split() for line in lines[:-1])}
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"{self.path} is damaged ({error}): {anew}") from error
        different = [name for name in kind if found.get(name) != kind[name]]
        if different:
            raise ValueError(
                f"{self.path} is of unfinished work with other {' and '.join(different)}: choose another file, or "
                f"{anew}"
            )
        return (dtype, count, width), done

    @contextmanager
    def open(self) -> Iterator[Callable[[int, str], None]]:
        """A function that notes a stretch; it is on the disk when that returns."""
        whole = self.path.read_bytes()
        with open(self.path, "r+b") as file:
            file.truncate(whole.rindex(b"\n") + 1)
            file.seek(0, os.SEEK_END)

            def note(number: int, digest: str) -> None:
                file.write(f"{number} {digest}\n".encode())
                file.flush()
                os.fsync(file.fileno())

            yield note


@contextmanager
def locked(part: Path, out: Path) -> Iterator[None]:
    """Keep other processes from writing the same file."""
    if out.exists() and not out.is_file():
        raise OSError(errno.EINVAL, "Is there already, and is not a file: nothing was written", str(out))
    part.touch()
    try:
        lock = Lock(part)
    except BlockingIOError as error:
        raise ValueError(f"another process is embedding into {out}: wait for it, or choose another file") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def removed_if_useless(part: Path, out: Path) -> Iterator[None]:
    """Leave nothing behind of work that fails before there is a journal."""
    try:
        yield
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.errno in FULL:
            advice = "No space left on the disk: nothing was kept; make room and try again"
            raise OSError(error.errno, advice, str(out)) from None
        raise
