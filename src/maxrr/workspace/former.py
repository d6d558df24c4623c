"""Workspaces of versions 3 to 6, which had a file for each receipt and wrote all tombstones anew at each request.

What they hold is read as what the files of today would hold, so that nobody else has to know of them.
"""

import hashlib
import json
import os
from pathlib import Path

from maxrr.files import flush_folder
from maxrr.workspace.commits import Root
from maxrr.workspace.entries import Answered, entries_of, request_entry
from maxrr.workspace.errors import content_of, damaged
from maxrr.workspace.names import PROOFS, RECEIPTS, SIGNED, TOMBSTONES

STONE = 96  # bytes of a tombstone


def contents_of(folder: Path, root: Root, stones: bytes) -> dict[str, bytes]:
    """What the files that only grow would hold: no receipt is signed, and nothing was proved."""
    assert root.former is not None
    lines, entries = [], [entries_of(split(stones), people_in(root))]
    ends = 0
    for number, digest in enumerate(root.former.receipts, start=1):
        text = content_of(receipt_file(folder, root, number))
        if hashlib.sha256(text).hexdigest() != digest:
            path = receipt_file(folder, root, number)
            raise damaged(path, "its content does not have the hash that workspace.json names")
        said = json.dumps({"unsigned": text.decode()}, ensure_ascii=False, separators=(",", ":"))
        lines.append(said.encode() + b"\n")
        ends += len(lines[-1])
        entries.append(request_entry(Answered(digest, bytes.fromhex(digest), ends, 0)))
    return {SIGNED: b"".join(lines), TOMBSTONES: b"".join(entries), PROOFS: b""}


def split(stones: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """The tombstones of a file."""
    starts = range(0, len(stones), STONE)
    return [(stones[at : at + 32], stones[at + 32 : at + 64], stones[at + 64 : at + 96]) for at in starts]


def people_in(root: Root) -> dict[str, tuple[int, str]]:
    """Whom no record is about any more, by HMAC."""
    return {person: (number, time) for person, (number, time) in root.facts.get("people", {}).items()}


def receipt_file(folder: Path, root: Root, number: int) -> Path:
    """Where a receipt lies: the last one may not be handed out yet."""
    assert root.former is not None
    path, staged = folder / RECEIPTS / f"{number:06d}.json", staged_in(folder, root)
    return path if staged is None or number < len(root.former.receipts) or os.path.lexists(path) else staged


def staged_in(folder: Path, root: Root) -> Path | None:
    """The receipt that is not handed out yet; None if there is none."""
    if root.former is None or root.former.staged is None or not os.path.lexists(folder / root.former.staged):
        return None
    return folder / root.former.staged


def hand_out(folder: Path, root: Root) -> None:
    """Put the receipt of the last request where receipts are."""
    assert root.former is not None
    staged, path = staged_in(folder, root), folder / RECEIPTS / f"{len(root.former.receipts):06d}.json"
    if staged is None:
        return
    if os.path.lexists(path):  # as it is, or the workspace would be damaged
        staged.unlink()
        return
    if not path.parent.exists():
        path.parent.mkdir(mode=0o700)
    os.rename(staged, path)
    flush_folder(path.parent)
