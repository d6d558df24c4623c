"""The log of a workspace, checked by anybody who has the operator's public key: entry i is the hash of receipt i + 1.

Only files are read, and nothing of the workspace is believed: neither its key nor its hashes are used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from maxrr.errors import EvidenceError
from maxrr.evidence import Checkpoint, Log, PublicKey, check_log
from maxrr.evidence.log import LOG
from maxrr.plain_text import count
from maxrr.unlearning.receipts import Loss, Receipt, follows
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace.entries import kept_in
from maxrr.workspace.errors import damaged
from maxrr.workspace.history import frames_in
from maxrr.workspace.names import history_of, origin_of


@dataclass(frozen=True)
class LoggedReceipts:
    """What was checked of a workspace's log. All of it holds.

    Attributes
    ----------
    checkpoint : Checkpoint
        The newest checkpoint, signed. It has as many entries as there are receipts.
    signed : int
        How many of the receipts are signed: all since the workspace has a key.
    """

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
        What was checked: every hash of the log; that it has one entry for each receipt, in their order; that each
        receipt names the one before, and its losses; that those are signed by one of the keys that follow the first
        signed one; and that the log is the one that began with the last loss.

    Raises
    ------
    EvidenceError
        Names the first thing that is wrong.
    maxrr.errors.WorkspaceError
        The folder is not a workspace, or its history is damaged.
    """
    folder = Path(folder)
    path, token = history_of(folder)
    try:
        receipts = [kept.receipt for kept in kept_in(frames_in(path))]
    except ValueError as error:
        raise damaged(path, str(error)) from None
    requests = len(receipts)
    checkpoint = check_log(folder / LOG, None, keys)
    if not f"{checkpoint.origin}/".startswith(f"{origin_of(token)}/"):
        raise EvidenceError(f"the checkpoint is of another log: {checkpoint.origin!r}")
    entries = Log(folder / LOG, checkpoint).entries()
    signed, losses = 0, list[Loss]()
    before: Receipt | None = None
    for number, content in enumerate(receipts, start=1):
        handed = _read(content, number)
        if handed.receipt.number != number:
            raise EvidenceError(f"receipt {number} says that it is number {handed.receipt.number}")
        if handed.receipt.previous != (before.digest if before else ""):
            raise EvidenceError(f"receipt {number} does not name the one before it")
        if not follows(handed.receipt, before):
            raise EvidenceError(f"receipt {number} is not the next one of its group")
        if handed.envelope is not None:
            try:
                handed.envelope.verify(keys)
            except EvidenceError as error:
                raise EvidenceError(f"receipt {number}: {error}") from None
            signed += 1
        elif signed:
            raise EvidenceError(f"receipt {number} is not signed, and one before it is")
        entry = next(entries, None)
        if entry is None:
            raise EvidenceError(
                f"the log has {count(checkpoint.size, 'entry', 'entries')}, and the workspace "
                f"{count(requests, 'receipt')}: receipt {number} is not "
                "logged. If a request was interrupted, open the workspace with its key, which logs it"
            )
        if entry.hex() != handed.sha256:
            raise EvidenceError(f"entry {number - 1} of the log is not the hash of receipt {number}")
        if (handed.receipt.losses or [])[: len(losses)] != losses:
            raise EvidenceError(f"receipt {number} does not name the losses that the one before it does")
        before, losses = handed.receipt, handed.receipt.losses or []
    if requests < checkpoint.size:
        raise EvidenceError(
            f"the log has {count(checkpoint.size, 'entry', 'entries')}, and the workspace "
            f"{count(requests, 'receipt')}: the workspace is an older copy "
            "than its log"
        )
    if checkpoint.origin != origin_of(token, losses[-1].time if losses else ""):
        raise EvidenceError(f"the log {checkpoint.origin} is not the one that began with the last loss on the receipts")
    return LoggedReceipts(checkpoint, signed)


def _read(content: bytes, number: int) -> HandedReceipt:
    """A receipt, if it is written as we write receipts."""
    try:
        handed = HandedReceipt.from_bytes(content)
    except ValueError as error:
        raise EvidenceError(f"receipt {number}: {error}") from None
    if handed.to_bytes() != content:
        raise EvidenceError(f"receipt {number} is not written as we write receipts")
    return handed
