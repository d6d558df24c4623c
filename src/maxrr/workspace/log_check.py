"""The log of a workspace, checked by anybody who has the operator's public key: entry i is the hash of receipt i + 1.

Only files are read, and nothing of the workspace is believed: neither its key nor its hashes are used.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from maxrr.errors import EvidenceError
from maxrr.evidence import Checkpoint, Log, PublicKey, check_log
from maxrr.evidence.exact_text import canonical_json, exactly, read_json, text
from maxrr.evidence.log import LOG
from maxrr.files import open_regular
from maxrr.plain_text import count
from maxrr.unlearning.receipts import Loss, Receipt
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace.commits import Commit, Root
from maxrr.workspace.names import origin_of


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
        The folder is not a workspace, or its `workspace.json` is damaged.
    """
    folder = Path(folder)
    token, last = Root.read(folder).token, Commit.last(folder)
    requests = 0 if last is None else last.requests
    checkpoint = check_log(folder / LOG, None, keys)
    if not f"{checkpoint.origin}/".startswith(f"{origin_of(token)}/"):
        raise EvidenceError(f"the checkpoint is of another log: {checkpoint.origin!r}")
    entries = Log(folder / LOG, checkpoint).entries()
    signed, previous, losses = 0, "", list[Loss]()
    for number, line in enumerate(_lines(folder / f"receipts-{token}.jsonl", requests), start=1):
        handed = _read(line, number)
        if handed.receipt.number != number:
            raise EvidenceError(f"receipt {number} says that it is number {handed.receipt.number}")
        if handed.receipt.previous != previous:
            raise EvidenceError(f"receipt {number} does not name the one before it")
        if handed.envelope is not None:
            try:
                handed.envelope.verify(keys)  # what was read is what it says: both are from one line
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
        previous, losses = handed.receipt.digest, handed.receipt.losses or []
    if requests < checkpoint.size:
        raise EvidenceError(
            f"the log has {count(checkpoint.size, 'entry', 'entries')}, and the workspace "
            f"{count(requests, 'receipt')}: the workspace is an older copy "
            "than its log"
        )
    if checkpoint.origin != origin_of(token, losses[-1].time if losses else ""):
        raise EvidenceError(f"the log {checkpoint.origin} is not the one that began with the last loss on the receipts")
    return LoggedReceipts(checkpoint, signed)


def _lines(path: Path, count: int) -> Iterator[bytes]:
    """The first lines of the file of receipts; what an interrupted request left after them is not looked at."""
    if not count:
        return
    try:
        with open_regular(path) as file:
            for number in range(1, count + 1):
                line = file.readline()
                if not line.endswith(b"\n"):
                    raise EvidenceError(f"{path.name} ends before receipt {number}, of {count}")
                yield line[:-1]
    except OSError as error:
        raise EvidenceError(f"{path} cannot be read: {error.strerror}") from error


def _read(line: bytes, number: int) -> HandedReceipt:
    """The receipt on a line: in an envelope, or as the text that it was handed out with."""
    try:
        if line.startswith(b'{"unsigned":'):
            said = exactly(read_json(line, "the line"), ("unsigned",), "the line")["unsigned"]
            handed = HandedReceipt(Receipt.from_json(text(said, "its text")))
            written = canonical_json({"unsigned": handed.receipt.to_json()})
        else:
            handed = HandedReceipt.from_bytes(line)
            written = handed.to_bytes()
    except ValueError as error:
        raise EvidenceError(f"receipt {number}: {error}") from None
    if written != line:
        raise EvidenceError(f"receipt {number} is not written as we write receipts")
    return handed
