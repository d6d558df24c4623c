"""What an auditor can check here, with nothing but the operator's public keys and a checkpoint that was kept."""

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from maxrr.errors import EvidenceError, MaxRRError, NotAKey, UntrustedKey
from maxrr.evidence import Checkpoint, Log, PublicKey, compare_logs
from maxrr.evidence.log import LOG, LogRelation
from maxrr.plain_text import count
from maxrr.service import tables
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace import check_receipt_log

PEM = re.compile("-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----")  # each beginning is looked at once


def keys_in(text: str) -> list[PublicKey]:
    """Read the public keys in a text that somebody pasted.

    Raises
    ------
    maxrr.errors.EvidenceError
        There is none, or one that cannot be read.
    """
    found = [PublicKey.from_pem(f"{block}\n".encode()) for block in PEM.findall(text)]
    if not found:
        raise NotAKey("there is no public key: it begins with -----BEGIN PUBLIC KEY-----")
    return found


def verify(service: Any, keys: Sequence[PublicKey], kept: str) -> dict[str, str]:
    """Check the log of the workspace and what rests on it, from its files, and from the answers in the database.

    Return of each claim, by its name, what is wrong with it; nothing where it holds. No reason names the folder.
    """
    folder, model = service.settings.workspace, service.current.snapshot.model

    def log() -> str:
        if not (folder / LOG).exists():
            return "no-log"
        check_receipt_log(folder, keys)
        return ""

    def answers() -> str:
        table = tables.requests.c
        query = select(table.id, table.number, table.answer).where(table.number.is_not(None))
        rows = service.requests.database.rows(query)
        answered = [(row.id, row.number, HandedReceipt.from_bytes(row.answer)) for row in rows]
        entries = Log.open(folder / LOG, None, keys).entries()  # after the answers, each of which was logged before
        wrong = [id_ for id_, at, handed in answered if entries[at - 1 : at] != [bytes.fromhex(handed.sha256)]]
        return f"{count(len(wrong), 'answer')} are not in it, the first that of request {wrong[0]}" if wrong else ""

    def forgotten() -> str:
        back = int(model.has_forgotten(model.ids_of()).sum())
        return f"{back:,} are there again" if back else ""

    def history() -> str:
        try:
            before = Checkpoint.read(f"{kept.strip()}\n".encode(), None, keys)
        except EvidenceError:
            return "unreadable"
        relation = compare_logs(before, Log.open(folder / LOG, None, keys))
        return str(relation) if relation in (LogRelation.older, LogRelation.forked) else ""

    found = dict[str, str]()
    for claim in (log, answers, forgotten, *([history] if kept.strip() else [])):
        try:
            found[claim.__name__] = claim()
        except MaxRRError as error:
            words = str(error).replace(str(folder), "the workspace")
            found[claim.__name__] = error.code if isinstance(error, UntrustedKey) else words
    return found
