"""The log of a workspace that signs: entry i is `HandedReceipt.sha256` of receipt i + 1.

It follows the receipts: a commit that was not logged yet is logged when the workspace is next opened with the key. So a
receipt is in it once, and never without the state that it speaks of.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from maxrr.errors import EvidenceError
from maxrr.evidence import Checkpoint, LogWriter, PublicKey, SigningKey, leaf_hash
from maxrr.evidence.log import CHECKPOINT, LOG
from maxrr.evidence.log_proofs import WIDTH, Kind, Tiles, perfect_root, root_of, tile_path
from maxrr.plain_text import count
from maxrr.workspace.errors import check_folder, content_of, damaged
from maxrr.workspace.names import TEMPORARY
from maxrr.workspace.states import Root


def keys_of(root: Root) -> list[PublicKey]:
    """The public keys that a workspace has signed with, from the first."""
    return [PublicKey(bytes.fromhex(key)) for key in root.keys]


def check(folder: Path, root: Root, before: bytes | None, now: bytes | None, entries: Sequence[bytes]) -> None:
    """Refuse a log that does not say what the receipts do, or whose files are not as they were written.

    `before` is its checkpoint as it was before the receipts were read, and `now` as it was afterwards: somebody may
    commit meanwhile.
    """
    path = folder / LOG / CHECKPOINT
    if before is None or now is None or is_of_lost(root, now):
        if root.logged:
            raise damaged(path, f"it is missing, and the log had {count(root.logged, 'receipt')}")
        return
    try:
        checkpoint, newest = (Checkpoint.read(each, root.origin, keys_of(root)) for each in (before, now))
    except EvidenceError as error:
        raise damaged(path, str(error)) from None
    if newest.size < root.logged or checkpoint.size > root.requests:
        said = f"it speaks of {count(newest.size, 'receipt')}, of {root.requests} that were committed"
        raise damaged(path, f"{said}; {root.logged} of them were in the log before")
    check_entries(folder, checkpoint, entries[: checkpoint.size])


def check_entries(folder: Path, checkpoint: Checkpoint, entries: Sequence[bytes]) -> None:
    """Refuse a log with other entries, or other hashes of them."""
    tiles, level, hashes = Tiles(folder / LOG, checkpoint.size), 0, [leaf_hash(entry) for entry in entries]
    for index, part in parts(checkpoint.size):
        check_tile(folder, "entries", index, partial(tiles.entries, index), entries[part])
    while hashes:
        for index, part in parts(len(hashes)):
            check_tile(folder, level, index, partial(tiles.hashes, level, index), hashes[part])
        whole = [part for _, part in parts(len(hashes)) if part.stop - part.start == WIDTH]
        level, hashes = level + 1, [perfect_root(hashes[part]) for part in whole]
    if root_of(0, checkpoint.size, tiles.subtree) != checkpoint.root:
        raise damaged(folder / LOG / CHECKPOINT, "the log does not have the receipts of this workspace")


def check_tile(folder: Path, kind: Kind, index: int, read: Callable[[], list[bytes]], known: Sequence[bytes]) -> None:
    """Refuse a tile in which something else lies."""
    try:
        same = read() == list(known)
    except EvidenceError as error:
        raise damaged(folder / LOG / tile_path(kind, index, len(known)), str(error)) from None
    if not same:
        raise damaged(folder / LOG / tile_path(kind, index, len(known)), "it is not that of the receipts")


def parts(size: int) -> Iterator[tuple[int, slice]]:
    """The tiles of so many hashes: the number of each, and which hashes it has."""
    for index, first in enumerate(range(0, size, WIDTH)):
        yield index, slice(first, min(first + WIDTH, size))


def remove_unfinished(folder: Path) -> None:
    """Remove what a process that was killed while it wrote to the log has left."""
    for path in (folder / LOG).rglob(".maxrr-*.tmp"):
        if TEMPORARY.fullmatch(path.name):
            path.unlink()


def is_of_lost(root: Root, checkpoint: bytes) -> bool:
    """Whether a checkpoint is of the log before the present one, which a lost copy has gone on with."""
    return bool(root.since) and not root.logged and not checkpoint.startswith(f"{root.origin}\n".encode())


def writer_for(folder: Path, root: Root, key: SigningKey) -> LogWriter:
    """The log of a workspace, to append to, without what a kill has left; a new one if there is none.

    The log before the loss of a newer copy is set aside: those who kept its checkpoints may ask for it.
    """
    check_folder(folder / LOG)
    remove_unfinished(folder)
    path = folder / LOG / CHECKPOINT
    if os.path.lexists(path) and is_of_lost(root, content_of(path)):
        os.rename(folder / LOG, folder / f"{LOG}-before-{root.since}")
    try:
        if os.path.lexists(path):
            return LogWriter.open(folder / LOG, root.origin, key, retired=keys_of(root))
        return LogWriter.create(folder / LOG, root.origin, key)
    except EvidenceError as error:
        raise damaged(folder / LOG, str(error)) from None


def bring_up_to(log: LogWriter, entries: Sequence[bytes]) -> None:
    """Append what the log lacks."""
    try:
        log.append(entries)
    except EvidenceError as error:
        raise damaged(log.folder, str(error)) from None
