"""The log of a workspace that signs: entry i is `HandedReceipt.sha256` of receipt i + 1.

It follows the receipts: a commit that was not logged yet is logged when the workspace is next opened with the key. So a
receipt is in it once, and never without the state that it speaks of. Anybody who has the operator's public key can
compare it with the receipts (`check_receipt_log`): nothing of the workspace is believed then, and its key is not used.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from maxrr.errors import EvidenceError, OtherLog, WrongLog
from maxrr.evidence import Checkpoint, Log, PublicKey, SigningKey
from maxrr.evidence.log import CHECKPOINT, ENTRIES, LOG, LogWriter
from maxrr.plain_text import count
from maxrr.unlearning.receipts import Loss, follows
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace.errors import check_folder, content_of, damaged
from maxrr.workspace.history import Answer, frames_in
from maxrr.workspace.names import TEMPORARY, history_of, origin_of
from maxrr.workspace.states import StoredState


def keys_of(stored: StoredState) -> list[PublicKey]:
    """Return the public keys that a workspace has signed with, from the first."""
    return [PublicKey(bytes.fromhex(key)) for key in stored.files.keys]


def check(folder: Path, stored: StoredState, before: bytes | None, now: bytes | None, entries: Sequence[bytes]) -> None:
    """Refuse a log that contradicts the receipts, or whose files are damaged.

    `before` is its checkpoint as it was before the receipts were read, and `now` as it was afterwards: somebody may
    commit meanwhile.
    """
    path = folder / LOG / CHECKPOINT
    if before is None or now is None or is_of_lost(stored, now):
        if stored.last.logged:
            raise damaged(path, f"it is missing, and the log had {count(stored.last.logged, 'receipt')}")
        return
    try:
        checkpoint, newest = (Checkpoint.read(each, stored.origin, keys_of(stored)) for each in (before, now))
        logged = Log(folder / LOG, checkpoint).entries()
    except EvidenceError as error:
        raise damaged(path, str(error)) from None
    if newest.size < stored.last.logged or checkpoint.size > stored.last.requests:
        said = f"it speaks of {count(newest.size, 'receipt')}, of {stored.last.requests} that were committed"
        raise damaged(path, f"{said}; {stored.last.logged} of them were in the log before")
    if logged != entries[: checkpoint.size]:
        raise damaged(folder / LOG / ENTRIES, "they are not those of the receipts")


def is_of_lost(stored: StoredState, checkpoint: bytes) -> bool:
    """Whether a checkpoint belongs to the log of a copy that was declared gone."""
    ours = checkpoint.startswith(f"{stored.origin}\n".encode())
    return bool(stored.last.last_loss) and not stored.last.logged and not ours


def bring_up_to(
    folder: Path, stored: StoredState, key: SigningKey, log: LogWriter | None, answers: Sequence[Answer]
) -> LogWriter:
    """Append the receipts that the log lacks; begin a log if there is none.

    The log before the loss of a newer copy is set aside: those who kept its checkpoints may ask for it.
    """
    path = folder / LOG / CHECKPOINT
    try:
        if log is None:
            check_folder(folder / LOG)
            for unfinished in (folder / LOG).glob(".maxrr-*.tmp"):
                if TEMPORARY.fullmatch(unfinished.name):
                    unfinished.unlink()
            if os.path.lexists(path) and is_of_lost(stored, content_of(path)):
                os.rename(folder / LOG, folder / f"{LOG}-before-{stored.last.last_loss}")
            if os.path.lexists(path):
                log = LogWriter.open(folder / LOG, stored.origin, key, retired=keys_of(stored))
            else:
                log = LogWriter.create(folder / LOG, stored.origin, key)
        log.append([each.log_entry for each in answers[log.checkpoint.size :]])
    except EvidenceError as error:
        raise damaged(folder / LOG, str(error)) from None
    return log


# For those who have the operator's public key


class LoggedReceipts(NamedTuple):
    """The checked log of a workspace: its newest checkpoint, and how many receipts are signed."""

    checkpoint: Checkpoint
    signed: int


def check_receipt_log(folder: str | Path, keys: Sequence[PublicKey]) -> LoggedReceipts:
    """Recompute the log of a workspace, and compare it with the receipts.

    Parameters
    ----------
    folder
        The folder of the workspace.
    keys : sequence of PublicKey
        The keys that the operator has had.

    Returns
    -------
    LoggedReceipts
        The newest `checkpoint`, signed, which has as many entries as there are receipts, and how many of these are
        `signed`: all since the workspace has a key. Checked was every hash of the log; that it has one entry for each
        receipt, in their order; that each receipt names the one before, and its losses; that those are signed by one
        of the keys that follow the first signed one; and that the log is the one that began with the last loss.

    Raises
    ------
    EvidenceError
        Names the first thing that is wrong.
    maxrr.errors.WorkspaceError
        The folder is not a workspace, or its history is damaged.
    """
    folder = Path(folder)
    path, token = history_of(folder)
    content = content_of(path)
    receipts = [content[slice(*each.receipt)] for frame in frames_in(path, content) for each in frame.answered()]
    log = Log.open(folder / LOG, None, keys)
    checkpoint, entries = log.checkpoint, log.entries()
    if not f"{checkpoint.origin}/".startswith(f"{origin_of(token)}/"):
        raise OtherLog(f"the checkpoint is of another log: {checkpoint.origin!r}")
    sizes = (
        f"the log has {count(checkpoint.size, 'entry', 'entries')}, and the workspace {count(len(receipts), 'receipt')}"
    )
    signed, losses = 0, list[Loss]()
    for handed in checked_receipts(receipts, keys):
        number = handed.receipt.number
        if number > checkpoint.size:
            raise WrongLog(f"{sizes}: receipt {number} is not logged: open the workspace with its key, which logs it")
        if entries[number - 1].hex() != handed.sha256:
            raise WrongLog(f"entry {number - 1} of the log is not the hash of receipt {number}")
        signed, losses = signed + (handed.envelope is not None), handed.receipt.losses or []
    if len(receipts) < checkpoint.size:
        raise WrongLog(f"{sizes}: the workspace is an older copy than its log")
    if checkpoint.origin != origin_of(token, losses[-1].time if losses else ""):
        raise OtherLog(f"the log {checkpoint.origin} is not the one that began with the last loss on the receipts")
    return LoggedReceipts(checkpoint, signed)


def checked_receipts(
    contents: Iterable[bytes], keys: Sequence[PublicKey], before: HandedReceipt | None = None, *, signed: bool = False
) -> Iterator[HandedReceipt]:
    """Read receipts that were handed out, and refuse one that does not follow the one before, or is not signed when it
    should be.
    """
    for content in contents:
        last = None if before is None else before.receipt
        number = 1 if last is None else last.number + 1
        try:
            handed = HandedReceipt.from_bytes(content)
        except ValueError as error:
            raise EvidenceError(f"receipt {number}: {error}") from None
        receipt, signed = handed.receipt, signed or (before is not None and before.envelope is not None)
        if handed.to_bytes() != content:
            raise EvidenceError(f"receipt {number} is not written as we write receipts")
        if receipt.number != number:
            raise EvidenceError(f"receipt {number} says that it is number {receipt.number}")
        if receipt.previous != ("" if last is None else last.digest):
            raise EvidenceError(f"receipt {number} does not name the one before it")
        if not follows(receipt, last):
            raise EvidenceError(f"receipt {number} is not the next one of its group")
        if handed.envelope is not None:
            try:
                handed.verify(keys)
            except EvidenceError as error:
                raise type(error)(f"receipt {number}: {error}") from None
        elif signed:
            raise EvidenceError(f"receipt {number} is not signed, and one before it is")
        losses = [] if last is None else last.losses or []
        if (receipt.losses or [])[: len(losses)] != losses:
            raise EvidenceError(f"receipt {number} does not name the losses that the one before it does")
        yield handed
        before = handed
