"""What an auditor can check here, with nothing but the operator's public keys and a checkpoint that was kept."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy import select

from maxrr.errors import MaxRRError, NotAKey
from maxrr.evidence import Check, Checkpoint, Log, PublicKey, compare_logs
from maxrr.evidence.log import LOG, LogRelation
from maxrr.plain_text import count
from maxrr.service import tables
from maxrr.service.database import Database
from maxrr.unlearning import MaxRR
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace import check_receipt_log

PEM = re.compile("-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----")  # each beginning is looked at once
GONE_BACK = {
    LogRelation.older: "the log has fewer entries now: an old copy was restored, or entries were taken out",
    LogRelation.forked: "two histories are signed. Keep both checkpoints: together they prove it to anybody",
}


def keys_in(text: str) -> list[PublicKey]:
    """Read the public keys in a text that somebody pasted.

    Raises
    ------
    maxrr.errors.EvidenceError
        There is none, or one that cannot be read.
    """
    found = [PublicKey.from_pem("\n".join(block.split("\r\n")).encode() + b"\n") for block in PEM.findall(text)]
    if not found:
        raise NotAKey("there is no public key: it begins with -----BEGIN PUBLIC KEY-----")
    return found


def verify(folder: Path, keys: Sequence[PublicKey], kept: str, database: Database, model: MaxRR) -> list[Check]:
    """Check the log of a workspace and what rests on it, from its files, and from the answers in the database."""

    def log() -> str:
        if not (folder / LOG).exists():
            return "this workspace does not sign: there is no log"
        check_receipt_log(folder, keys)
        return ""

    def answers() -> str:
        table = tables.requests.c
        query = select(table.id, table.number, table.answer).where(table.number.is_not(None))
        with database.read() as connection:
            answered = [(row.id, row.number, HandedReceipt.from_bytes(row.answer)) for row in connection.execute(query)]
        entries = Log.open(folder / LOG, None, keys).entries()  # after the answers, each of which was logged before
        wrong = [
            id_ for id_, number, handed in answered if entries[number - 1 : number] != [bytes.fromhex(handed.sha256)]
        ]
        return f"{count(len(wrong), 'answer')} are not in it, the first that of request {wrong[0]}" if wrong else ""

    def history() -> str:
        before = Checkpoint.read(normal(kept), None, keys)
        return GONE_BACK.get(compare_logs(before, Log.open(folder / LOG, None, keys)), "")

    def forgotten() -> str:
        back = int(model.has_forgotten(model.ids_of()).sum())
        return f"{back:,} are there again" if back else ""

    claims: dict[str, tuple[str, Callable[[], str]]] = {
        "log": ("Every hash of the log is right, one of your keys signed the newest, and each receipt names the one "
                "before it, is signed, and is the entry of its number.", log),
        "answers": ("The receipt that this service handed out for each request is the one in the log.", answers),
        "forgotten": ("No record that was forgotten is in the model again.", forgotten),
    }  # fmt: skip
    if kept.strip():
        claims["history"] = ("The log begins with all that the checkpoint you kept had.", history)
    return [look(name, claim, wrong, folder) for name, (claim, wrong) in claims.items()]


def look(name: str, claim: str, wrong: Callable[[], str], folder: Path) -> Check:
    """Look whether a claim holds. What is wrong does not say where the workspace is."""
    try:
        said = wrong()
    except MaxRRError as error:
        said = str(error).replace(str(folder), "the workspace")
    return Check(name, claim, not said, said)


def normal(kept: str) -> bytes:
    """Return the bytes of a checkpoint that came through a form, which changes the ends of its lines."""
    return ("\n".join(line.rstrip() for line in kept.strip().splitlines()) + "\n").encode()
