"""The journal: what was committed since `workspace.json` was written, one frame for each commit.

A frame is the length of a JSON text twice (four bytes each, little-endian, the second time with all bits turned), the
text, and an HMAC of it under the workspace's key. Each HMAC goes on from the one before, the first from the seal of
`workspace.json`: none can be changed, left out or moved. Appending a frame is the commit of a request that only erases.
"""

import hmac
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from maxrr.files import write_atomically
from maxrr.workspace.appending import Extent
from maxrr.workspace.errors import content_of, damaged
from maxrr.workspace.rows import writable, write_at

HEADER = b"maxrr journal 1\n"
HEAD, MAC = 8, 32  # bytes before and after the text of a frame
MOST = 1_000  # frames, before another `workspace.json` takes their place: opening should not take longer and longer


@dataclass(frozen=True)
class Frame:
    """One commit. Where something is said of the files, it is how they are after it.

    Attributes
    ----------
    requests : int
        How many requests were carried out by then.
    logged : int
        How many of them the log had before.
    grown : dict of str to Extent
        How far the files go that only grow.
    erased : tuple of int
        The rows of the records that were forgotten.
    blocks : dict of int to str
        The hashes of the blocks of rows that these stood in.
    commitment : str
        The commitment to the records that are left.
    """

    requests: int
    logged: int
    grown: dict[str, Extent]
    erased: tuple[int, ...]
    blocks: dict[int, str]
    commitment: str

    def to_bytes(self) -> bytes:
        """As JSON."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Frame":
        """From its JSON. Only its HMAC says that it is ours."""
        said = json.loads(content)
        grown = {part: Extent(**extent) for part, extent in said.pop("grown").items()}
        blocks = {int(block): digest for block, digest in said.pop("blocks").items()}
        return cls(**{**said, "erased": tuple(said["erased"]), "grown": grown, "blocks": blocks})


class Journal:
    """A journal to append to.

    Parameters
    ----------
    path
        The file.
    key : bytes
        The workspace's key.
    seal : str
        That of the `workspace.json` that it goes on from, in hexadecimal digits.
    """

    def __init__(self, path: Path, key: bytes, seal: str) -> None:
        self.path, self.key = path, key
        self.mac, self.length = bytes.fromhex(seal), len(HEADER)
        self.torn = False  # it has the beginning of a frame at its end
        self.frames = 0

    def create(self) -> None:
        """Write the file, without frames. Its name is flushed by whoever commits it."""
        write_atomically(self.path, HEADER, private=True, flush_name=False)

    def read(self) -> list[Frame]:
        """All frames. One at the end that was never finished is passed over, anything else that is wrong is damage."""
        content, found = content_of(self.path), list[Frame]()
        for payload, mac in split(self.path, content):
            if not hmac.compare_digest(self.next_mac(payload), mac):
                raise damaged(self.path, f"its frame {len(found) + 1} was not written under the key of this workspace")
            try:
                found.append(Frame.from_bytes(payload))
            except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
                raise damaged(self.path, f"its frame {len(found) + 1} does not describe a commit ({error})") from None
            self.mac, self.length = mac, self.length + HEAD + len(payload) + MAC
        self.torn, self.frames = len(content) > self.length, len(found)
        return found

    def append(self, frame: Frame) -> None:
        """Commit."""
        payload = frame.to_bytes()
        mac = self.next_mac(payload)
        content = head_of(len(payload)) + payload + mac
        with writable(self.path) as descriptor:
            write_at(descriptor, self.length, content)
            os.fsync(descriptor)
        self.mac, self.length, self.frames = mac, self.length + len(content), self.frames + 1

    def cut(self) -> None:
        """Drop a frame that was never finished."""
        with writable(self.path) as descriptor:
            if os.fstat(descriptor).st_size > self.length:
                os.ftruncate(descriptor, self.length)
                os.fsync(descriptor)

    def next_mac(self, payload: bytes) -> bytes:
        return hmac.digest(self.key, b"maxrr journal" + self.mac + payload, "sha256")


def head_of(length: int) -> bytes:
    """What stands before a text of this length."""
    return length.to_bytes(4, "little") + (length ^ 0xFFFFFFFF).to_bytes(4, "little")


def split(path: Path, content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The JSON and the HMAC of each whole frame of a journal. At its end there may be the beginning of another.

    Where power was cut, the end may also be zeros.
    """
    if not content.startswith(HEADER):
        raise damaged(path, "it is no journal")
    at = len(HEADER)
    while len(content) - at >= HEAD:
        start = at + HEAD
        length = int.from_bytes(content[at : at + 4], "little")
        if head_of(length) != content[at:start]:
            if any(content[at:]):
                raise damaged(path, f"what lies at byte {at:,} is no frame")
            return
        stop = start + length
        if stop + MAC > len(content):
            return
        yield content[start:stop], content[stop : stop + MAC]
        at = stop + MAC


def last_frame(path: Path) -> dict[str, Any] | None:
    """What the last frame of a journal says, for those who do not have the key; None if there is none."""
    frames = [payload for payload, _ in split(path, content_of(path))]
    return json.loads(frames[-1]) if frames else None
