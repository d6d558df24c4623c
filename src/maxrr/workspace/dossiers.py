"""What a person gets about a request: the signed receipt, proofs about their records, and a proof from the log.

`maxrr.evidence` has the format, and checks it.
"""

import json
import os
from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from maxrr.data.hashes import identifier_bytes, layout
from maxrr.errors import EvidenceError, NotHere, NotSigned, WorkspaceError
from maxrr.evidence import Checkpoint, Dossier, Log
from maxrr.evidence.dossiers import DOSSIER_TYPE
from maxrr.evidence.log import LOG
from maxrr.evidence.sparse_tree import salt_of
from maxrr.unlearning import Receipt
from maxrr.unlearning.records import of_kind
from maxrr.unlearning.state import ModelState
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace.errors import damaged
from maxrr.workspace.receipt_log import keys_of
from maxrr.workspace.sealing import PERSON, RECORD, Id, look_up
from maxrr.workspace.store import Store

if TYPE_CHECKING:
    from maxrr.workspace.workspace import Workspace

OPERATOR = "MAXRR_OPERATOR"  # the environment variable that says who answers, and how to reach them


def dossier_of(
    store: Store, fitted: ModelState, number: int, subject: Id | None, ids: Sequence[Id] | None
) -> dict[str, Any]:
    """Make the dossier about some records, or about all records of one person, that a request forgot or replaced."""
    handed = HandedReceipt.from_bytes(store.receipt(number))
    if handed.envelope is None:
        raise NotSigned(
            f"receipt {number} is not signed, so that there is nothing that others could check: give a key, as "
            "signing_key=… to Workspace.open, or in the shell in MAXRR_SIGNING_KEY or its usual place, for later ones"
        )
    if subject is not None:
        (subject,) = of_kind(np.array([subject]), text=bool(fitted.records.text_subjects)).tolist()
    ids = of_kind(np.array(ids or ()), text=fitted.records.text_ids).tolist()
    known = fitted.secret, number, store.proofs(number)
    named = look_up(*known, PERSON, subject) or [] if subject is not None else ids
    proofs = {id_: look_up(*known, RECORD, id_) for id_ in named}
    without = [id_ for id_, proof in proofs.items() if proof is None]
    if without or not proofs:
        whom = f"the record {without[0]!r}" if without else f"a record about {subject!r} (test records are in no model)"
        raise NotHere(
            f"receipt {number} did not forget or replace {whom}; or it is of a newer copy that this one has caught up "
            "with, and so are its proofs: the receipt of catching up has some of its own"
        )
    log = log_of(store, number)
    signed_by = handed.envelope.key_id, log.checkpoint.key.id  # after a rotation two
    keys = [key for key in dict.fromkeys(keys_of(store.stored)) if key.id in signed_by]
    return {
        "type": DOSSIER_TYPE, "operator": os.environ.get(OPERATOR) or None,
        "envelope": json.loads(store.receipt(number)), "subject": subject,
        "records": [record_of(fitted.secret, proof) for proof in proofs.values() if proof is not None],
        "record_layout": layout(fitted.records.dtype, fitted.records.shape).hex(),
        "log": {
            "origin": log.checkpoint.origin, "checkpoint": log.checkpoint.to_bytes().decode(),
            "inclusion": log.prove_inclusion(number - 1).to_object(),
        },
        "keys": [key.pem.decode() for key in keys],
    }  # fmt: skip


def earlier_receipts(workspace: "Workspace", receipt: Receipt) -> list[Receipt]:
    """Return the receipts by which was forgotten what a receipt says was asked for once more, the newest first.

    The history says which records each request forgot, and by which one the last record about a person went: no other
    receipts are read, unless somebody came back and was forgotten once more since.
    """
    found, gone = list[Receipt](), set(receipt.earlier_tombstones)
    with workspace.model._lock:
        store, people = workspace._store, workspace.model._fitted.people
        last, stones = {people[each].number for each in gone if each in people}, set(map(bytes.fromhex, gone))
        back = max(last, default=0) >= receipt.number
        for number in range(min(receipt.number - 1, store.requests), 0, -1):
            if not gone:
                break
            left = (each[0] for each in store.answers[number - 1].tombstones)
            if back or number in last or not stones.isdisjoint(left):
                before = HandedReceipt.from_bytes(store.receipt(number)).receipt
                if named := gone & {*before.tombstones, *(before.subject_tombstones or ())}:
                    found, gone = [*found, before], gone - named
    return found


def first_dossier(workspace: "Workspace", number: int, subject: Id | None, ids: list[Id]) -> Dossier:
    """Return the dossier of whoever was named in a request: of the receipt by which something of it was forgotten."""
    mine = workspace.receipt(number).receipt
    about = next((each for each in (mine, *earlier_receipts(workspace, mine)) if each.tombstones), mine)
    ids = list(compress(ids, workspace.model.on_receipt(about, ids).forgotten)) or ids
    return Dossier.from_object(workspace.dossier(about.number, subject=subject, ids=ids or None))


def public_keys(workspace: "Workspace") -> str:
    """Return the public keys that a workspace has signed with, as PEM; empty where it does not sign."""
    return "".join(key.pem.decode() for key in keys_of(workspace._store.stored))


def record_of(secret: bytes, proof: dict[str, Any]) -> dict[str, Any]:
    """Make a dossier's entry of a record from its sealed proofs."""
    id_: Id = proof["id"]
    named = {"int": id_} if isinstance(id_, int) else {"str": id_}
    return {**proof, "id": named, "salt": salt_of(secret, identifier_bytes(id_)).hex()}


def log_of(store: Store, number: int) -> Log:
    """Open the log at its newest checkpoint, which must cover this receipt."""
    content = store.checkpoint()
    if content is not None:
        try:
            checkpoint = Checkpoint.read(content, store.stored.origin, keys_of(store.stored))
        except EvidenceError as error:
            raise damaged(store.folder / LOG, str(error)) from None
        if checkpoint.size >= number:
            return Log(store.folder / LOG, checkpoint)
    raise WorkspaceError(
        f"receipt {number} is not in the log yet: open the workspace with its key, as in Workspace.open(folder, "
        "signing_key=…), which puts it there"
    )
