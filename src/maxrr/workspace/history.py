"""The history of a workspace: a file that only grows, with one frame for each commit. There is no other commit.

A frame is the length of its payload twice (four bytes each, little-endian, the second time with all bits turned), the
payload, and an HMAC under the workspace's key of all that and of the HMAC before, which stands in front of it; of the
first line of the file, where it is the first. So no frame can be changed, left out or moved. A payload is what requests
leave (their entries, receipts and sealed proofs, as bytes), a JSON object that says what changed, and the length of
that object in four bytes.

Nothing in a frame lets a record, a person or a class be read.
"""

import hmac
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from maxrr.files import write_atomically
from maxrr.workspace.errors import content_of, damaged, opened, unfamiliar
from maxrr.workspace.rows import writable, write_at

NAME = b"maxrr history "
HEADER = NAME + b"1\n"
HEAD, MAC = 8, 32  # bytes before and after a payload
GAP = 64  # bytes: what a device writes in one go is longer, and no frame has as many zeros


@dataclass(frozen=True)
class Frame:
    """One commit: how far the workspace has come with it, and what it changed.

    Attributes
    ----------
    state : int
        How many fits and requests there were by then.
    commitment : str
        The commitment to the records that are left.
    requests : int
        How many requests were carried out by then.
    count : int
        How many rows the file of rows has.
    logged : int
        How many receipts were in the log before.
    erased : list of int
        The rows of the records that were forgotten.
    blocks : dict of str to str
        The hashes of the blocks of rows that changed, by their numbers.
    base : dict or None
        The files that the state consists of from now on, as `maxrr.workspace.states.Base` has it; None where only rows
        were erased.
    export, audit : dict or None
        A copy of the model that was made for others; an audit that came to a finding.
    backup : str
        When this copy of the workspace was made by `Workspace.backup`; empty where it is no such copy, or has caught
        up.
    entries, receipts, proofs : bytes
        What the requests leave, as in `maxrr.workspace.entries`.
    """

    state: int
    commitment: str
    requests: int = 0
    count: int = 0
    logged: int = 0
    erased: list[int] | tuple[int, ...] = ()
    blocks: dict[str, str] | None = None
    base: dict[str, Any] | None = None
    export: dict[str, Any] | None = None
    audit: dict[str, Any] | None = None
    backup: str = ""
    entries: bytes = b""
    receipts: bytes | memoryview = b""
    proofs: bytes | memoryview = b""

    def to_bytes(self) -> bytes:
        """The payload."""
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        blobs = [said.pop(name) for name in BLOBS]
        said = {name: value for name, value in said.items() if value}
        text = json.dumps({**said, "sizes": [*map(len, blobs)]}, separators=(",", ":")).encode()
        return b"".join([*blobs, text, len(text).to_bytes(4, "little")])

    @classmethod
    def from_bytes(cls, payload: memoryview) -> "Frame":
        """Read a payload. Only its HMAC says that it is ours. Receipts and proofs, which are long, are not copied."""
        start = len(payload) - 4 - int.from_bytes(payload[-4:], "little")
        said = json.loads(bytes(payload[start:-4]))
        one, two, three = said.pop("sizes")
        if one + two + three != start:
            raise ValueError("its parts are not as long as it says")
        entries, receipts, proofs = bytes(payload[:one]), payload[one : one + two], payload[one + two : start]
        return cls(**said, entries=entries, receipts=receipts, proofs=proofs)


BLOBS = ("entries", "receipts", "proofs")


class History:
    """The history in a file, read as far as it holds, to append to.

    Parameters
    ----------
    path
        The file.
    key : bytes
        The workspace's key.
    keep : bool
        Whether to keep what was read in memory, for those who should not see what becomes of the file.
    """

    def __init__(self, path: Path, key: bytes, *, keep: bool = False) -> None:
        self.path, self.key, self.keep = path, key, keep
        self.content = b""
        self.length, self.mac = len(HEADER), HEADER
        self.last: Frame | None = None  # without what requests have left
        self.last_bytes = b""  # of the last frame, as it stands in the file
        self.torn = False  # something is at its end that is no frame
        self.in_doubt = True  # nobody knows whether the device has what was read, or what an append that failed left

    @staticmethod
    def create(path: Path) -> None:
        """Write a history without commits."""
        write_atomically(path, HEADER, private=True)

    def read(self) -> list[Frame]:
        """The frames that came since the last time, as far as they follow each other under the key.

        What lies behind them was never finished, or is damaged: that the rest of the workspace tells.
        """
        whole = content_of(self.path)
        check_header(self.path, whole[: len(HEADER)])
        if self.keep:
            self.content = whole
        content, found, is_torn = memoryview(whole), list[Frame](), False
        for start, stop in frames_from(content, self.length):
            if not self.is_ours(content, start, stop):
                if start == self.length > len(HEADER) and not has_gap(content[start:stop]):
                    raise damaged(self.path, "its last frame is not what was written")
                is_torn = True
            elif is_torn:  # and another one goes on from it, so that it was finished
                raise damaged(self.path, "one of its frames is not what was written")
            else:
                try:
                    found.append(Frame.from_bytes(content[start + HEAD : stop - MAC]))
                except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
                    raise damaged(self.path, f"one of its frames does not describe a commit ({error})") from None
                self.length, self.last_bytes = stop, bytes(content[start:stop])
        if found:
            self.mac, self.last = self.last_bytes[-MAC:], replace(found[-1], entries=b"", receipts=b"", proofs=b"")
        self.torn = len(content) > self.length
        return found

    def is_ours(self, content: memoryview, start: int, stop: int) -> bool:
        """Whether a frame was written under the key, after what stands in front of it."""
        before = MAC if start > len(HEADER) else len(HEADER)
        mac = hmac.digest(self.key, content[start - before : stop - MAC], "sha256")
        return hmac.compare_digest(mac, content[stop - MAC : stop])

    def append(self, frame: Frame) -> None:
        """Commit. If it raises, nothing was committed, or `settle` has to be called before anything else."""
        if self.in_doubt:
            self.settle()
        content = self.framed(frame)
        self.in_doubt = True
        try:
            if self.last is None:  # whole or not at all: whatever else is damaged later, there was a workspace
                write_atomically(self.path, HEADER + content, private=True)
            else:
                with writable(self.path) as descriptor:
                    write_at(descriptor, self.length, content)
                    os.fsync(descriptor)
        except BaseException:
            with suppress(OSError):
                self.settle()
            raise
        self.length, self.mac = self.length + len(content), content[-MAC:]
        self.last, self.last_bytes, self.in_doubt = (
            replace(frame, entries=b"", receipts=b"", proofs=b""),
            content,
            False,
        )

    def framed(self, frame: Frame) -> bytes:
        """The bytes of the next frame."""
        payload = frame.to_bytes()
        content = head_of(len(payload)) + payload
        return content + hmac.digest(self.key, self.mac + content, "sha256")

    def note(self, **said: Any) -> Frame:
        """The next frame where it changes nothing of the state, and says something more."""
        assert self.last is not None
        nothing = dict.fromkeys(("blocks", "base", "export", "audit"))
        return replace(self.last, **{**nothing, "erased": (), **said})

    def settle(self) -> None:
        """Cut what lies behind the last frame, and have the device write that frame once more.

        A flush that failed is told once, to one process, and what it could not write counts as written afterwards.
        """
        with writable(self.path) as descriptor:
            if os.fstat(descriptor).st_size > self.length:
                os.ftruncate(descriptor, self.length)
            write_at(descriptor, self.length - len(self.last_bytes), self.last_bytes)
            os.fsync(descriptor)
        self.torn = self.in_doubt = False

    def part(self, start: int, stop: int) -> bytes:
        """Some bytes of the file."""
        if self.keep:
            return self.content[start:stop]
        with opened(self.path) as file:
            file.seek(start)
            return file.read(stop - start)


def head_of(length: int) -> bytes:
    """What stands before a payload of this length."""
    return length.to_bytes(4, "little") + (length ^ 0xFFFFFFFF).to_bytes(4, "little")


def has_gap(frame: memoryview) -> bool:
    """Whether a part of a whole frame may never have reached the device: where power was cut, that is zeros."""
    return bytes(GAP) in bytes(frame)


def check_header(path: Path, content: bytes) -> None:
    """Refuse a file that is no history, or one of another version."""
    if content == HEADER:
        return
    if content.startswith(NAME) and content.endswith(b"\n"):
        version = content[len(NAME) : -1].decode(errors="replace")
        raise unfamiliar(path, f"is of version {version}", "knows version 1")
    raise damaged(path, "it is no history of a workspace")


def frames_from(content: memoryview, at: int) -> Iterator[tuple[int, int]]:
    """Where each whole frame begins and ends, from some byte on, up to where something else stands."""
    while len(content) - at >= HEAD + MAC:
        length = int.from_bytes(content[at : at + 4], "little")
        stop = at + HEAD + length + MAC
        if head_of(length) != content[at : at + HEAD] or stop > len(content):
            return
        yield at, stop
        at = stop


def frames_in(path: Path, *, only_last: bool = False) -> list[Frame]:
    """The frames of a history, or the last one alone, for those who do not have the key: nothing is verified."""
    whole = content_of(path)
    check_header(path, whole[: len(HEADER)])
    content, found = memoryview(whole), list[Frame]()
    places = list(frames_from(content, len(HEADER)))
    for start, stop in places[-1:] if only_last else places:
        try:
            found.append(Frame.from_bytes(content[start + HEAD : stop - MAC]))
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):  # it was never finished
            return frames_in(path)[-1:] if only_last else found
    return found


def is_begun(path: Path) -> bool:
    """Whether something was committed in a history. The first frame comes whole or not at all."""
    with opened(path) as file:
        check_header(path, file.read(len(HEADER)))
        return bool(file.read(1))
