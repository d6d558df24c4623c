"""Copies of a workspace: backups, and older ones that catch up with a newer one, or go on without it.

A restored older copy takes the receipts in the newer one's history, and forgets whom they name.

Receipts name records by HMACs of their ids under the workspace's key, which the copy has, too. So it finds the records
that were forgotten or replaced after it was made. It takes their tombstones, so that those which it never had do not
come back either, their proofs, and what was exported meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.errors import (
    Damaged,
    EvidenceError,
    FolderTaken,
    KeyMissing,
    OtherWorkspace,
    UntrustedKey,
    WorkspaceError,
    WrongLog,
)
from maxrr.evidence import Checkpoint, PublicKey
from maxrr.evidence.log import LOG, write_log
from maxrr.files import flush_folder, overwrite, write_atomically
from maxrr.plain_text import count
from maxrr.unlearning.actions import REFUSE, Action, Guarantee
from maxrr.unlearning.commitment import class_hmac
from maxrr.unlearning.plans import Plan, make_plan
from maxrr.unlearning.receipts import Loss
from maxrr.unlearning.requests import request_to_forget
from maxrr.unlearning.state import ModelState
from maxrr.unlearning.statements import HandedReceipt
from maxrr.unlearning.tombstones import Forgotten, Tombstone, id_hmac
from maxrr.workspace.errors import damaged
from maxrr.workspace.folder import Folder
from maxrr.workspace.history import Answer, Frame, History
from maxrr.workspace.names import TEMPORARY, UNFINISHED, history_name, make_private, origin_of, part_of
from maxrr.workspace.older_copies import MOMENT
from maxrr.workspace.receipt_log import check_receipt_log, checked_receipts, is_of_lost, keys_of
from maxrr.workspace.store import NO_ROWS, NewAnswer, Store

REST_LOST = "if its end is gone for good, gone=REASON (--gone REASON) goes on with what can be read there"
UNKNOWN = b"?" * 32  # of a record that never was here: nobody can tell its hashes


def backup(folder: str | Path, to: str | Path) -> None:
    """Copy a workspace as it was at one moment, beside whoever works in it. Nobody is kept out or waited for.

    Parameters
    ----------
    folder : str or Path
        The folder of the workspace.
    to : str or Path
        The folder to make, one that is empty, or one that a backup has left which did not come to its end.

    Raises
    ------
    maxrr.errors.WorkspaceError
        There is no workspace, a file of it is damaged, or the other folder holds something.
    """
    place, mark = Path(to), Path(to) / UNFINISHED
    if place.is_dir() and any(place.iterdir()) and (not mark.exists() or any(place.glob(history_name("*")))):
        raise FolderTaken(f"{place} holds other files: name a folder that is new or empty. Nothing was changed")
    source = Folder(folder, read_only=True)
    source.read_beside_others()
    found = source.stored
    make_private(place)
    mark.touch()
    for path in sorted(place.iterdir()):
        if part_of(path.name, source.token) or TEMPORARY.fullmatch(path.name):
            overwrite(path)
            path.unlink()
    files = {found.file_of(part): content for part, content in source.parts.items()}
    for name, content in {**files, found.rows.file: source.content}.items():
        write_atomically(place / name, bytes(content), private=True, flush_name=False)
    logged = source.log_checkpoint
    if found.files.keys and logged is not None and not is_of_lost(found, logged):
        checkpoint = Checkpoint.read(logged, found.origin, keys_of(found))
        write_log(place / LOG, checkpoint, [each.log_entry for each in source.answers])
    flush_folder(place)
    history = source.history.as_backup(datetime.now(UTC).isoformat(timespec="seconds"))
    write_atomically(place / history_name(source.token), history, private=True)  # last: now it is a workspace
    mark.unlink()


@dataclass(frozen=True, eq=False)
class NewerReceipts:
    """The receipts, exports and history that a newer copy has and this copy lacks; the receipts are checked."""

    receipts: Sequence[HandedReceipt]
    answers: Sequence[Answer]
    history: History
    exports: Sequence[str]

    def check_classes(self, fitted: ModelState) -> None:
        """Refuse receipts of another workspace, which name classes under another key."""
        own = {class_hmac(fitted.key, name) for name in fitted.records.class_names}
        for handed in self.receipts:
            if own.isdisjoint(head.class_hmac for head in handed.receipt.heads):
                raise OtherWorkspace(
                    f"receipt {handed.receipt.number} names no class of this workspace under its key: it is another "
                    "workspace's, or all classes are others since a later fit. Nothing was changed"
                )

    def ids_here(self, fitted: ModelState) -> NDArray[Any]:
        """Return the ids of the records in this copy that the newer receipts say were forgotten or replaced."""
        named = {each for handed in self.receipts for each in handed.receipt.tombstones}
        ids = fitted.records.ids[fitted.records.alive]
        gone = [
            any(id_hmac(fitted.key, id_, replaced=each).hex() in named for each in (False, True))
            for id_ in ids.tolist()
        ]
        found: NDArray[Any] = ids[np.array(gone, dtype=bool)]
        return found

    def added_to(self, fitted: ModelState) -> tuple[ModelState, list[NewAnswer]]:
        """Return the state with the newer receipts, and what they add to the history."""
        tombstones, people, answers = list[Tombstone](), dict[str, Forgotten](), list[NewAnswer]()
        for handed, answer in zip(self.receipts, self.answers, strict=True):
            receipt, known = handed.receipt, {each[0] for each in answer.tombstones}
            ids = [each for each in map(bytes.fromhex, receipt.tombstones) if each not in known]
            mine = [Tombstone(*each) for each in answer.tombstones]
            mine += [Tombstone(each, UNKNOWN, UNKNOWN) for each in ids]
            gone = dict.fromkeys(receipt.subject_tombstones or (), Forgotten(receipt.number, receipt.time))
            parts = self.history.part(*answer.receipt), self.history.part(*answer.proofs)
            answers.append(NewAnswer(NO_ROWS, receipt.digest, handed.sha256, mine, gone, *parts))
            tombstones += mine
            people |= gone
        losses = tuple(self.receipts[-1].receipt.losses or ()) if self.receipts else fitted.losses
        after = replace(
            fitted, receipts=(*fitted.receipts, *(each.digest for each in answers)),
            people=fitted.people.with_more(people), losses=losses,
            tombstones=fitted.tombstones.with_more(tombstones),
        )  # fmt: skip
        return after, answers


def check_reason(reason: str | None) -> None:
    """Refuse an empty reason for declaring a copy gone."""
    if reason is not None and not reason.strip():
        raise WorkspaceError("the reason is empty: say why the other copy is gone. Nothing was changed")


def with_reason_to_catch_up(plan: Plan, later: NewerReceipts) -> Plan:
    """Return the plan with a reason that names the receipts that are caught up with."""
    first, last = (later.receipts[place].receipt.number for place in (0, -1))
    these = f"receipt {first}" if first == last else f"receipts {first} to {last}"
    return replace(plan, reason=f"an older copy was restored, and catches up with {these}: {plan.reason}")


def without_original(store: Store, fitted: ModelState, reason: str) -> tuple[ModelState, Plan]:
    """Return the state that goes on without another copy, and a plan that does nothing, for the receipt that says so.

    Where this machine has seen no other state than this one, nothing is declared lost, and the log goes on.
    """
    if store.is_latest_position():
        words = f"a backup takes the place of the original ({reason}): this machine has seen no request after it"
        return fitted, plan_of_nothing(fitted, words)
    return with_loss(store, fitted, reason)


def with_loss(store: Store, fitted: ModelState, reason: str) -> tuple[ModelState, Plan]:
    """Return the state that names the log of a copy that is gone, and a plan that does nothing, for its receipt."""
    lost, now = max(store.latest_position, store.position), datetime.now(UTC).replace(tzinfo=None)
    if lost.last_loss:  # the clock may be wrong, and another log began then
        now = max(now, datetime.strptime(lost.last_loss, MOMENT) + timedelta(microseconds=1))
    seen = max(lost.receipts, fitted.requests)
    log = origin_of(store.token, lost.last_loss)
    loss = Loss(now.strftime(MOMENT), reason, log, seen, lost.root, fitted.requests)
    words = "another copy of the workspace is gone: the model stays as it is, and another log begins"
    return replace(fitted, losses=(*fitted.losses, loss)), plan_of_nothing(fitted, words)


def plan_of_nothing(fitted: ModelState, reason: str) -> Plan:
    """Return a plan that leaves the model as it is."""
    plan = make_plan(fitted, request_to_forget(fitted, fitted.records.ids[:0], None, REFUSE))
    return replace(plan, action=Action.nothing, guarantee=Guarantee.untouched, reason=reason)


def newer_receipts(store: Store, newer: Path, keys: Sequence[PublicKey], *, whole: bool = True) -> NewerReceipts:
    """Read and check the receipts that a newer copy of this workspace has beyond those that are here.

    `newer` is the copy's folder, or its history. If the copy need not be `whole`, receipts are read as far as possible,
    and the copy's log is not asked how many there are.
    """
    signs = store.stored.files.keys
    own_key = [] if store.signing is None else [store.signing.public]
    trusted = [*keys_of(store.stored), *own_key, *keys]
    history, frames = history_of_copy(store, newer, whole=whole)
    answers = [answer for frame in frames for answer in frame.answered()]
    exports = [frame.export for frame in frames if frame.export and frame.export not in store.stored.exports]
    own = [store.receipt(number) for number in range(1, store.requests + 1)]
    its = [history.part(*answer.receipt) for answer in answers]
    for number, (mine, other) in enumerate(zip(own, its, strict=False), start=1):
        if mine != other:
            raise OtherWorkspace(
                f"receipt {number} in {newer} is not the one that is here: this copy or that one went on by itself, so "
                "that neither is the newer one. Nothing was changed"
            )
    if len(its) < len(own) + (not store.backup):  # a backup may be of the last state
        why = "nothing more of it can be read" if history.torn else "it is not newer"
        raise WorkspaceError(
            f"{newer} has {count(len(its), 'receipt')}, and there {'is' if len(own) == 1 else 'are'} "
            f"{len(own)} here: {why}. Nothing was changed"
        )
    try:
        before = HandedReceipt.from_bytes(own[-1]) if own else None
        later = list(checked_receipts(its[len(own) :], trusted, before, signed=bool(signs)))
        if store.signing is None and any(each.envelope for each in later):
            raise KeyMissing("it signs its receipts: open this copy with the key, as they go on from there")
        if not whole:
            return NewerReceipts(later, answers[len(own) :], history, exports)
        if history.torn:
            raise WrongLog("its end is torn off")
        if newer.is_dir() and (newer / LOG).exists():
            check_receipt_log(newer, trusted)
        elif signs or any(each.envelope for each in later):  # some may be missing at the end
            raise WrongLog(
                "its log is missing, which says how many receipts there are: bring a folder with the history and "
                f"{LOG}/, as they were published last"
            )
    except EvidenceError as error:
        hint = f" ({REST_LOST})" if isinstance(error, WrongLog) else ""
        if isinstance(error, UntrustedKey):
            hint = " (name the operator's public keys, of which some came later than this copy: keys=…, or --operator)"
        raise WorkspaceError(f"{newer} cannot be caught up with: {error}{hint}. Nothing was changed") from None
    return NewerReceipts(later, answers[len(own) :], history, exports)


def history_of_copy(store: Store, newer: Path, *, whole: bool) -> tuple[History, list[Frame]]:
    """Open the history of a newer copy, and read its frames as far as the key of this workspace verifies them."""
    path = newer / history_name(store.token) if newer.is_dir() else newer
    if not path.exists():
        raise WorkspaceError(f"{path} is not there: name a newer copy of this workspace, or its history")
    history = History(path, store.history.key, keep=True)
    if history.first_line.token != store.token:
        raise OtherWorkspace(f"{path} is the history of another workspace. Nothing was changed")
    try:
        frames = history.read(whole=whole)
    except Damaged as error:
        raise WorkspaceError(f"{error} ({REST_LOST})") from None
    if not frames:
        raise damaged(path, "nothing in it was written under the key of this workspace")
    return history, frames
