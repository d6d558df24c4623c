"""A restored older copy catches up: it takes the receipts in the newer one's history, and forgets whom they name.

Receipts name records by HMACs of their ids under the workspace's key, which the copy has, too. So it finds the records
that were forgotten or replaced after it was made. It takes their tombstones, so that those which it never had do not
come back either, their proofs, and what was exported meanwhile.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.errors import EvidenceError, WorkspaceError
from maxrr.evidence import Log, PublicKey, check_log
from maxrr.evidence.log import LOG
from maxrr.plain_text import count
from maxrr.unlearning.actions import Action
from maxrr.unlearning.guarantees import Guarantee
from maxrr.unlearning.hashes import class_hmac
from maxrr.unlearning.layers import Row
from maxrr.unlearning.lookup import look_up
from maxrr.unlearning.plans import Plan, make_plan
from maxrr.unlearning.receipts import Loss, follows
from maxrr.unlearning.requests import REFUSE
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.statements import HandedReceipt
from maxrr.unlearning.tombstones import FORGOTTEN, REPLACED, Forgotten, Tombstone, id_hmac
from maxrr.workspace.carried_out import CarriedOut
from maxrr.workspace.entries import Kept, kept_in, person_entry, read_entries, stone_entry
from maxrr.workspace.errors import damaged
from maxrr.workspace.exports import Note
from maxrr.workspace.history import Frame, History
from maxrr.workspace.names import history_name, origin_of
from maxrr.workspace.receipt_log import keys_of
from maxrr.workspace.seen import MOMENT
from maxrr.workspace.states import exports_in
from maxrr.workspace.store import NO_ROWS, Store

UNKNOWN = bytes(32)  # of a record that never was here: nobody can tell its hashes


@dataclass(frozen=True, eq=False)
class Later:
    """What a newer copy has and this one lacks: receipts, checked, what it keeps of each request, and exports."""

    receipts: Sequence[HandedReceipt]
    kept: Sequence[Kept]
    exports: Sequence[Note]

    def require_of(self, fitted: Fitted) -> None:
        """Refuse receipts of another workspace: they name classes under another key."""
        own = {class_hmac(fitted.key, name) for name in fitted.records.class_names}
        for handed in self.receipts:
            if own.isdisjoint(head.class_hmac for head in handed.receipt.heads):
                raise WorkspaceError(
                    f"receipt {handed.receipt.number} names no class of this workspace under its key: it is another "
                    "workspace's, or all classes are others since a later fit. Nothing was changed"
                )

    def ids_here(self, fitted: Fitted) -> NDArray[Any]:
        """The records here that were forgotten or replaced by these requests."""
        named = {each for handed in self.receipts for each in handed.receipt.tombstones}
        ids = fitted.records.ids[fitted.records.alive]
        gone = [
            any(id_hmac(fitted.key, id_, purpose).hex() in named for purpose in (FORGOTTEN, REPLACED))
            for id_ in ids.tolist()
        ]
        found: NDArray[Any] = ids[np.array(gone, dtype=bool)]
        return found

    def adopted(self, fitted: Fitted) -> tuple[Fitted, list[CarriedOut]]:
        """The state with these receipts as its own, and what they add to the history."""
        stones, people, done = list[Tombstone](), dict[str, Forgotten](), list[CarriedOut]()
        for handed, kept in zip(self.receipts, self.kept, strict=True):
            receipt, entries = handed.receipt, read_entries(kept.entries)
            known = {stone[0] for stone in entries.stones}
            unknown = [Tombstone(each, UNKNOWN, UNKNOWN) for each in map(bytes.fromhex, receipt.tombstones)]
            mine = [*itertools.starmap(Tombstone, entries.stones), *(each for each in unknown if each.id not in known)]
            gone = dict.fromkeys(receipt.subject_tombstones or (), Forgotten(receipt.number, receipt.time))
            content = b"".join([*map(stone_entry, mine), *(person_entry(*each) for each in gone.items())])
            logged = bytes.fromhex(handed.sha256)
            done.append(CarriedOut(NO_ROWS, receipt.digest, logged, kept.receipt, content, kept.proofs))
            stones += mine
            people |= gone
        losses = tuple(self.receipts[-1].receipt.losses or ()) if self.receipts else fitted.losses
        after = replace(
            fitted, receipts=Row([*fitted.receipts, *(each.digest for each in done)]),
            people=fitted.people.with_more(people), losses=losses,
            tombstones=replace(fitted.tombstones, stones=fitted.tombstones.stones.with_more(stones)),
        )  # fmt: skip
        return after, done


def said_so(plan: Plan, later: Later) -> Plan:
    """The same plan, with a reason that says why it is made."""
    first, last = (later.receipts[place].receipt.number for place in (0, -1))
    these = f"receipt {first}" if first == last else f"receipts {first} to {last}"
    return replace(plan, reason=f"an older copy was restored, and catches up with {these}: {plan.reason}")


def without_newer(store: Store, fitted: Fitted, reason: str) -> tuple[Fitted, Plan]:
    """The state that goes on without a newer copy, and a plan that does nothing else, for the receipt that says so."""
    lost, now = max(store.then, store.now), datetime.now(UTC).replace(tzinfo=None)
    if lost.since:  # the clock may be wrong, and another log began then
        now = max(now, datetime.strptime(lost.since, MOMENT) + timedelta(microseconds=1))
    time = now.strftime(MOMENT)
    loss = Loss(time, reason, origin_of(store.token, lost.since), lost.receipts, lost.root, fitted.requests)
    plan = make_plan(fitted, look_up(fitted, fitted.records.ids[:0], None, REFUSE))
    plan = replace(
        plan, action=Action.nothing, guarantee=Guarantee.untouched,
        reason="a newer copy of the workspace was lost: the model stays as it is, and another log begins",
    )  # fmt: skip
    return replace(fitted, losses=(*fitted.losses, loss)), plan


def later_receipts(store: Store, newer: Path, keys: Sequence[PublicKey]) -> Later:
    """The receipts of a newer copy, if it is one: of this workspace, with the same receipts before, signed and logged.

    `newer` is its folder, or its history.
    """
    assert store.root is not None
    own_key = [] if store.signing is None else [store.signing.public]
    trusted = [*keys_of(store.root), *own_key, *keys]
    frames = frames_of(store, newer)
    kept = kept_in(frames)
    its = [each.receipt for each in kept]
    exports = [note for note in exports_in(frames) if note not in store.root.exports]
    own = [store.receipt(number) for number in range(1, store.root.requests + 1)]
    for number, (mine, other) in enumerate(zip(own, its, strict=False), start=1):
        if mine != other:
            raise WorkspaceError(
                f"receipt {number} in {newer} is not the one that is here: it is no newer copy of this workspace, but "
                "one that went on by itself. Nothing was changed"
            )
    if store.root.backup and len(its) == len(own):  # nothing happened since it was made
        return Later([], [], exports)
    if len(its) <= len(own):
        raise WorkspaceError(
            f"{newer} has {count(len(its), 'receipt')}, and there {'is' if len(own) == 1 else 'are'} "
            f"{len(own)} here: it is not newer. Nothing was changed"
        )
    try:
        later = checked(own, its, trusted, signs=bool(store.root.keys))
        if store.signing is None and any(each.envelope for each in later):
            raise EvidenceError("it signs its receipts: open this copy with the key, as they go on from there")
        if newer.is_dir() and (newer / LOG).exists():
            check_logged(newer, store.token, own, later, trusted)
        elif store.root.keys or any(each.envelope for each in later):  # some may be missing at the end
            raise EvidenceError(
                "its log is missing, which says how many receipts there are: bring a folder with the history and "
                f"{LOG}/, as they were published last"
            )
    except EvidenceError as error:
        hint = ""
        if "that is trusted" in str(error):
            hint = " (name the operator's public keys, of which some came later than this copy: keys=…, or --operator)"
        raise WorkspaceError(f"{newer} cannot be caught up with: {error}{hint}. Nothing was changed") from None
    return Later(later, kept[len(own) :], exports)


def frames_of(store: Store, newer: Path) -> list[Frame]:
    """The frames of a newer copy's history, as far as it was written under the key of this workspace."""
    assert store.history is not None
    if not newer.exists():
        raise WorkspaceError(f"{newer} is not there")
    path = newer / history_name(store.token) if newer.is_dir() else newer
    if not path.exists():
        raise WorkspaceError(f"{newer} has no history of this workspace: there is no {path.name} in it")
    frames = History(path, store.history.key).read()
    if not frames:
        raise damaged(path, "nothing in it was written under the key of this workspace")
    return frames


def checked(
    own: Sequence[bytes], its: Sequence[bytes], keys: Sequence[PublicKey], *, signs: bool
) -> list[HandedReceipt]:  # fmt: skip
    """The later receipts, if each names the one before, and is signed where it has to be."""
    before = HandedReceipt.from_bytes(own[-1]) if own else None
    later = []
    for number, content in enumerate(its[len(own) :], start=len(own) + 1):
        try:
            handed = HandedReceipt.from_bytes(content)
        except ValueError as error:
            raise EvidenceError(f"receipt {number} cannot be read ({error})") from None
        previous = before.receipt.digest if before else ""
        if (handed.receipt.number, handed.receipt.previous) != (number, previous):
            raise EvidenceError(f"receipt {number} does not follow the one before it")
        if not follows(handed.receipt, before.receipt if before else None):
            raise EvidenceError(f"receipt {number} is not the next one of its group")
        if handed.envelope is not None:
            handed.verify(keys)
        elif signs or (before and before.envelope):
            raise EvidenceError(f"receipt {number} is not signed")
        later.append(handed)
        before = handed
    return later


def check_logged(
    newer: Path, token: str, own: Sequence[bytes], later: Sequence[HandedReceipt], keys: Sequence[PublicKey]
) -> None:
    """Refuse a log that has other receipts than these, or not all of them."""
    losses = later[-1].receipt.losses
    checkpoint = check_log(newer / LOG, origin_of(token, losses[-1].time if losses else ""), keys)
    entries = [entry.hex() for entry in Log(newer / LOG, checkpoint).entries()]
    receipts = [HandedReceipt.from_bytes(content).sha256 for content in own] + [handed.sha256 for handed in later]
    if entries != receipts[: len(entries)]:
        raise EvidenceError("its log does not have its receipts")
    if len(entries) < len(receipts):
        raise EvidenceError(
            f"its log has {len(entries)} of its {len(receipts)} receipts: bring both as they were at one time, or open "
            "it with its key, which finishes what was interrupted"
        )
