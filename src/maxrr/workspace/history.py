"""The history of a workspace: a file that only grows, with one frame for each commit. There is no other commit.

The first line names the format, its version and the workspace; that of a backup says so, too. A frame is the length of
its payload twice (four bytes each, little-endian, the second time with all bits turned), the payload, and an HMAC under
the workspace's key of all that and of the HMAC before, which stands in front of it; of the first line, where it is the
first frame. So no frame can be changed, left out, moved, or brought from another workspace. A payload is what requests
leave (tombstones, receipts and sealed proofs, as bytes), a JSON object that says what changed, and the length of that
object in four bytes.

Nothing in a frame lets a record, a person or a class be read.
"""

import hmac
import json
import os
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from maxrr.files import write_atomically
from maxrr.files.atomic import writable, write_at
from maxrr.workspace.errors import content_of, damaged, open_file, unfamiliar

NAME = b"maxrr history "
FIRST_LINE = re.compile(NAME + rb"1 ([0-9a-f]{16})(?: backup ([0-9]{1,18}) ([0-9T:+-]{1,40}))?\n")
LONGEST_LINE = 120  # bytes
HEAD, MAC = 8, 32  # bytes before and after a payload
GAP = 64  # zero bytes where power was cut: what a device writes in one go is longer, and no frame has as many
TOMBSTONE = struct.Struct("32s32s32s")  # as `maxrr.unlearning.tombstones.Tombstone`
NOT_A_FRAME = (LookupError, TypeError, ValueError, AttributeError, RecursionError)


class FirstLine(NamedTuple):
    """The first line of a history.

    `token` names the workspace. A backup says when it was made, and of which state: it is one until it has another.
    """

    token: str
    made: str = ""
    state: int = 0

    def to_bytes(self) -> bytes:
        backup = f" backup {self.state} {self.made}" if self.made else ""
        return NAME + f"1 {self.token}{backup}\n".encode()

    @classmethod
    def of(cls, path: Path) -> "FirstLine":
        """Read the first line, and refuse a file that is no history, or one of another version."""
        with open_file(path) as file:
            line = file.readline(LONGEST_LINE)
        if found := FIRST_LINE.fullmatch(line):
            token, state, made = found.groups(b"")
            return cls(token.decode(), made.decode(), int(state or 0))
        version = line.removeprefix(NAME).split(b" ")[0]
        if line.startswith(NAME) and line.endswith(b"\n") and version.isdigit() and version != b"1":
            raise unfamiliar(path, f"it is of version {version.decode()}, not 1")
        raise damaged(path, "it is no history of a workspace")


class Answer(NamedTuple):
    """An answered request, as the history keeps it.

    Attributes
    ----------
    digest : str
        The SHA-256 of the receipt's text, by which the next receipt names it.
    log_entry : bytes
        What the log has of it: the SHA-256 of its statement, of the text where it is not signed.
    tombstones : list of tuple of bytes
        The tombstones of the records that it forgot or replaced.
    receipt : tuple of int
        Where the receipt, as it was handed out, begins and ends in the history.
    proofs : tuple of int
        Where its sealed proofs do.
    """

    digest: str
    log_entry: bytes
    tombstones: list[tuple[Any, ...]]
    receipt: tuple[int, int]
    proofs: tuple[int, int]


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
    rows : int
        How many rows the file of rows has.
    counts : dict
        How many records there are of each kind, as `maxrr.workspace.states.Counts` has it.
    logged : int
        How many receipts were in the log before.
    last_loss : str
        When the loss of a newer copy was last accepted; empty if it never was. Another log begins with it.
    erased : list of int
        The rows of the records that were forgotten.
    blocks : dict of str to str
        The hashes of the blocks of rows that changed, by their numbers.
    files : dict or None
        The files that the state consists of from now on, as `maxrr.workspace.states.Files` has it; None where only rows
        were erased.
    export : str
        A copy of the model that was made for others, sealed as in `maxrr.workspace.exports`.
    audit : dict or None
        An audit that came to a finding.
    people : dict
        Number and time of the request that left no record about a person, by the HMAC of the subject id.
    answers : list
        Of each request the digest of its receipt, what the log has of it, how many tombstones it left, and the lengths
        of receipt and proofs, in bytes.
    tombstones, receipts, proofs : bytes
        Those of the requests one after the other; tombstones in the first frame are older than the workspace.
    start : int
        Where the payload stands in the file.
    """

    state: int
    commitment: str
    requests: int = 0
    rows: int = 0
    counts: dict[str, Any] | None = None
    logged: int = 0
    last_loss: str = ""
    erased: list[int] | tuple[int, ...] = ()
    blocks: dict[str, str] | None = None
    files: dict[str, Any] | None = None
    export: str = ""
    audit: dict[str, Any] | None = None
    people: dict[str, Any] | None = None
    answers: list[Any] | tuple[Any, ...] = ()
    tombstones: bytes | memoryview = b""
    receipts: bytes | memoryview = b""
    proofs: bytes | memoryview = b""
    start: int = field(default=0, compare=False)

    def to_bytes(self) -> bytes:
        """Make the payload."""
        said = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "start"}
        blobs = [said.pop(name) for name in BLOBS]
        said = {name: value for name, value in said.items() if value}
        text = json.dumps({**said, "sizes": [*map(len, blobs)]}, separators=(",", ":")).encode()
        return b"".join([*blobs, text, len(text).to_bytes(4, "little")])

    @classmethod
    def from_bytes(cls, payload: memoryview, start: int) -> "Frame":
        """Read a payload whose HMAC was verified. Receipts and proofs, which are long, are not copied."""
        text = len(payload) - 4 - int.from_bytes(payload[-4:], "little")
        said: dict[str, Any] = json.loads(bytes(payload[text:-4]))
        one, two, three = said.pop("sizes")
        if one + two + three != text:
            raise ValueError("its parts are not as long as it says")
        receipts, proofs = payload[one : one + two], payload[one + two : text]
        found = cls(**said, tombstones=bytes(payload[:one]), receipts=receipts, proofs=proofs, start=start)
        list(found.answered()), dict(found.people or {})  # or it is not as it says
        return found

    def all_tombstones(self) -> list[tuple[Any, ...]]:
        return list(TOMBSTONE.iter_unpack(self.tombstones))

    def answered(self) -> Iterator[Answer]:
        """Return the answered requests of the frame."""
        tombstones, at = self.all_tombstones(), 0 if self.answers else len(self.tombstones) // TOMBSTONE.size
        receipt = self.start + len(self.tombstones)
        proofs = end = receipt + len(self.receipts)
        for digest, log_entry, count, receipt_size, proofs_size in self.answers:
            places = (receipt, receipt + receipt_size), (proofs, proofs + proofs_size)
            yield Answer(digest, bytes.fromhex(log_entry), tombstones[at : at + count], *places)
            at, receipt, proofs = at + count, places[0][1], places[1][1]
        if (at, receipt, proofs) != (len(tombstones), end, end + len(self.proofs)):
            raise ValueError("what it keeps of its requests is not as long as it says")


BLOBS = ("tombstones", "receipts", "proofs")


class History:
    """A history in a file, to read and to append to.

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
        self.first_line = FirstLine.of(path)
        self.content = b""
        self.mac = self.first_line.to_bytes()
        self.begin = self.length = len(self.mac)
        self.last: Frame | None = None  # without what requests have left
        self.last_bytes = b""  # of the last frame, as it stands in the file
        self.torn = False  # something is at its end that is no frame
        self.in_doubt = True  # nobody knows whether the device has what was read, or what an append that failed left

    @staticmethod
    def create(path: Path, token: str) -> None:
        """Write a history without frames."""
        write_atomically(path, FirstLine(token).to_bytes(), private=True)

    def read(self, *, whole: bool = True) -> list[Frame]:
        """Return the frames that are new since the last call, as far as their HMACs follow each other.

        What lies behind them was never finished, or is damaged: that the rest of the workspace tells. Where they need
        not be the `whole` history, no frame behind a damaged one is looked for.
        """
        stored = content_of(self.path)
        if self.keep:
            self.content = stored
        content, found, is_torn = memoryview(stored), list[Frame](), False
        for start, stop in frames_from(content, self.length):
            if not self.is_ours(content, start, stop):
                if not whole:
                    break
                if start == self.length > self.begin and bytes(GAP) not in bytes(content[start:stop]):
                    raise damaged(self.path, "its last frame is not what was written")
                is_torn = True
            elif is_torn:  # and another one goes on from it, so that it was finished
                raise damaged(self.path, "one of its frames is not what was written")
            else:
                try:
                    found.append(Frame.from_bytes(content[start + HEAD : stop - MAC], start + HEAD))
                except NOT_A_FRAME as error:
                    raise unfamiliar(self.path, f"one of its frames does not describe a commit ({error})") from None
                self.length, self.last_bytes = stop, bytes(content[start:stop])
        if found:
            self.mac, self.last = self.last_bytes[-MAC:], without_changes(found[-1])
        self.torn = len(content) > self.length
        return found

    def is_ours(self, content: memoryview, start: int, stop: int) -> bool:
        """Whether a frame has the HMAC that the key and the frame before it give."""
        before = MAC if start > self.begin else self.begin
        mac = hmac.digest(self.key, content[start - before : stop - MAC], "sha256")
        return hmac.compare_digest(mac, content[stop - MAC : stop])

    def append(self, frame: Frame) -> Frame:
        """Append a frame and flush it: the commit. If this raises, nothing was committed, or `write_again` has to be
        called.
        """
        if self.in_doubt:
            self.write_again()
        frame = replace(frame, start=self.length + HEAD)
        content = framed(self.key, self.mac, frame.to_bytes())
        self.in_doubt = True
        try:
            if self.last is None:  # whole or not at all: whatever else is damaged later, there was a workspace
                write_atomically(self.path, self.mac + content, private=True)
            else:
                with writable(self.path) as descriptor:
                    write_at(descriptor, self.length, content)
                    os.fsync(descriptor)
        except BaseException:
            with suppress(OSError):
                self.write_again()
            raise
        self.length, self.mac = self.length + len(content), content[-MAC:]
        self.last, self.last_bytes, self.in_doubt = without_changes(frame), content, False
        return frame

    @property
    def is_as_left(self) -> bool:
        """Whether the file ends as it was read, or written here last."""
        end = self.length - len(self.mac)
        return self.in_doubt or self.part(end, self.length + 1) == self.mac

    def note(self, **said: Any) -> None:
        """Append a frame that notes something and leaves the state as it is."""
        assert self.last is not None
        self.append(replace(self.last, **said))

    def write_again(self) -> None:
        """Cut off what lies behind the last frame, and write and flush that frame once more.

        A flush that failed is told once, to one process, and what it could not write counts as written afterwards.
        """
        with writable(self.path) as descriptor:
            if os.fstat(descriptor).st_size > self.length:
                os.ftruncate(descriptor, self.length)
            write_at(descriptor, self.length - len(self.last_bytes), self.last_bytes)
            os.fsync(descriptor)
        self.torn = self.in_doubt = False

    def as_backup(self, made: str) -> bytes:
        """Return the history that was read, under the first line of a backup."""
        assert self.last is not None
        found = [FirstLine(self.first_line.token, made, self.last.state).to_bytes()]
        for start, stop in frames_from(memoryview(self.content)[: self.length], self.begin):
            mac = found[-1] if len(found) == 1 else found[-1][-MAC:]
            found.append(framed(self.key, mac, self.content[start + HEAD : stop - MAC]))
        return b"".join(found)

    def part(self, start: int, stop: int) -> bytes:
        """Read some bytes of the history."""
        if self.keep:
            return self.content[start:stop]
        with open_file(self.path) as file:
            file.seek(start)
            return file.read(stop - start)


def without_changes(frame: Frame) -> Frame:
    """Return a frame that carries the counts of this one on, without its changes."""
    same = ("state", "commitment", "requests", "rows", "counts", "logged", "last_loss")
    return Frame(**{name: getattr(frame, name) for name in same})


def framed(key: bytes, mac: bytes, payload: bytes) -> bytes:
    """Make a frame of a payload, after the frame with this HMAC."""
    content = head_of(len(payload)) + payload
    return content + hmac.digest(key, mac + content, "sha256")


def head_of(length: int) -> bytes:
    """Make the bytes before a payload of this length."""
    return length.to_bytes(4, "little") + (length ^ 0xFFFFFFFF).to_bytes(4, "little")


def frames_from(content: memoryview, at: int) -> Iterator[tuple[int, int]]:
    """Find where each whole frame begins and ends, from byte `at` on; stop at anything else."""
    while len(content) - at >= HEAD + MAC:
        length = int.from_bytes(content[at : at + 4], "little")
        stop = at + HEAD + length + MAC
        if head_of(length) != content[at : at + HEAD] or stop > len(content):
            return
        yield at, stop
        at = stop


def frames_in(path: Path, content: bytes | None = None) -> list[Frame]:
    """Read the frames of a history without the key: nothing is verified."""
    begin, found = len(FirstLine.of(path).to_bytes()), list[Frame]()
    whole = memoryview(content_of(path) if content is None else content)
    for start, stop in frames_from(whole, begin):
        try:
            found.append(Frame.from_bytes(whole[start + HEAD : stop - MAC], start + HEAD))
        except NOT_A_FRAME:  # it was never finished
            break
    return found


def is_begun(path: Path) -> bool:
    """Whether a history has a frame. The first one is written whole or not at all."""
    return path.stat().st_size > len(FirstLine.of(path).to_bytes())
