"""What of a dossier holds: each claim with a sentence that a person understands, and why it does not hold."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from maxrr.errors import EvidenceError
from maxrr.evidence.append_tree import leaf_hash
from maxrr.evidence.checkpoints import Checkpoint
from maxrr.evidence.exact_text import from_hex
from maxrr.evidence.histories import History, compare_logs
from maxrr.evidence.log import Log
from maxrr.evidence.proofs import Absence
from maxrr.evidence.salts import key_of
from maxrr.evidence.signing import PublicKey
from maxrr.evidence.statements import RECEIPT_TYPE, Statement
from maxrr.plain_text import count

if TYPE_CHECKING:
    from maxrr.evidence.dossiers import Dossier, DossierRecord

T = TypeVar("T")

CLAIMS = {
    "signed": "The operator's key signed this receipt, and not a letter of it was changed since.",
    "receipt": "What is signed is a receipt for a request to forget, of a model.",
    "before": "Before the request, each of these records was among those that the model had.",
    "after": "After it, each of them is gone from there, or has another content if the request was to correct it.",
    "checkpoint": "The operator's key signed this state of its public log.",
    "logged": "The receipt is in that log, in the place of its number: it cannot be taken back unnoticed.",
    "keys": "The keys that came with it are those that it is signed with.",
}
"""What is checked, by name, in order."""


@dataclass(frozen=True)
class Check:
    """What came of checking one claim.

    Attributes
    ----------
    name : str
        Which claim: a key of `CLAIMS`.
    claim : str
        The claim, in a sentence.
    held : bool or None
        Whether it holds; None if nobody can tell because something that it rests on does not hold.
    wrong : str
        Why it does not hold, or was not looked at. Empty if it holds.
    """

    name: str
    claim: str
    held: bool | None
    wrong: str


@dataclass(frozen=True)
class ReceiptFacts:
    """What a dossier's checks need to know of a receipt.

    Attributes
    ----------
    number : int
        The number of the receipt, counted from 1.
    commitment_before, commitment_after : bytes
        The commitments to the records before and after the request.
    forgotten : int
        How many records it says were forgotten or replaced.
    fewer : int
        How many records fewer there are after it.
    """

    number: int
    commitment_before: bytes
    commitment_after: bytes
    forgotten: int
    fewer: int


class NotLookedAtError(Exception):
    """Something that the claim rests on does not hold."""


def check_dossier(dossier: Dossier, keys: Sequence[PublicKey]) -> list[Check]:
    """Every claim about a dossier, checked; see `Dossier.check`."""
    statement: Statement | None = None
    facts: ReceiptFacts | None = None
    checkpoint: Checkpoint | None = None

    def signed() -> None:
        nonlocal statement
        statement = dossier.envelope.verify(keys)

    def receipt() -> None:
        nonlocal facts
        facts = facts_of(found(statement, "the signature"))
        require_agrees(dossier, facts)

    def before() -> None:
        root = found(facts, "the receipt").commitment_before
        for record in dossier.records:
            if not record.before.verify(root, place_of(record), record.value):
                raise EvidenceError(f"it is not proved that record {record.id!r} was there")

    def after() -> None:
        root = found(facts, "the receipt").commitment_after
        for record in dossier.records:
            if not is_gone(record, root):
                raise EvidenceError(f"it is not proved that record {record.id!r} is gone")

    def signed_checkpoint() -> None:
        nonlocal checkpoint
        checkpoint = Checkpoint.read(dossier.checkpoint.encode(), dossier.origin, keys)

    def logged() -> None:
        number = found(facts, "the receipt").number
        log = found(checkpoint, "the checkpoint")
        if dossier.inclusion.index != number - 1:
            place = dossier.inclusion.index + 1
            raise EvidenceError(f"the proof is of entry {place}, and the receipt is number {number}")
        if dossier.inclusion.size != log.size:
            raise EvidenceError(
                f"the proof is for a log of {count(dossier.inclusion.size, 'entry', 'entries')}, and this has "
                f"{log.size}"
            )
        entry = hashlib.sha256(dossier.envelope.payload).digest()
        if not dossier.inclusion.verify(leaf_hash(entry), log.size, log.root):
            raise EvidenceError("the proof does not lead from this receipt to the log")

    steps: dict[str, Callable[[], None]] = {
        "signed": signed, "receipt": receipt, "before": before, "after": after, "checkpoint": signed_checkpoint,
        "logged": logged, "keys": lambda: require_keys(dossier),
    }  # fmt: skip
    return [_checked(name, claim, steps[name]) for name, claim in CLAIMS.items()]


def _checked(name: str, claim: str, step: Callable[[], None]) -> Check:
    try:
        step()
    except NotLookedAtError as reason:
        return Check(name, claim, None, str(reason))
    except EvidenceError as error:
        return Check(name, claim, False, str(error))
    return Check(name, claim, True, "")


def found(value: T | None, what: str) -> T:
    """The value, if what it comes from held."""
    if value is None:
        raise NotLookedAtError(f"not looked at: it rests on {what}")
    return value


def facts_of(statement: Statement) -> ReceiptFacts:
    """What a signed statement says, if it is a receipt of a model.

    Raises
    ------
    EvidenceError
        It is about something else, lacks what every receipt says, or says two things that cannot both be so.
    """
    if statement.predicate_type != RECEIPT_TYPE:
        raise EvidenceError(f"the statement is no receipt, but of the type {statement.predicate_type[:80]!r}")
    said = statement.predicate
    number, before, after = (_count(said, name) for name in ("number", "records_before", "records_after"))
    if number < 1:
        raise EvidenceError("receipts are counted from 1")
    stones = said.get("tombstones")
    if not isinstance(stones, list):
        raise EvidenceError("the receipt has no list of tombstones")
    names = [(subject.name, subject.sha256) for subject in statement.subjects]
    if names != [("model", said.get("model_after"))]:
        raise EvidenceError("the statement is not about the model that its receipt names")
    old, new = (from_hex(said.get(f"commitment_{when}"), f"the commitment {when}") for when in ("before", "after"))
    return ReceiptFacts(number, old, new, len(stones), before - after)


def require_agrees(dossier: Dossier, facts: ReceiptFacts) -> None:
    """Refuse a dossier about more, or about something else, than its receipt says was done."""
    if len(dossier.records) > facts.forgotten:
        raise EvidenceError(
            f"the receipt is for {count(facts.forgotten, 'record')}, and this is about {len(dossier.records):,}"
        )  # fmt: skip
    if facts.fewer not in (facts.forgotten, 0) or (facts.fewer == 0 and facts.forgotten != 1):
        raise EvidenceError(f"of {facts.forgotten:,} forgotten records there are {facts.fewer:,} fewer")
    if any(record.replaced for record in dossier.records) != (facts.fewer == 0):
        raise EvidenceError("the receipt says of a record that it was forgotten, and this that it was corrected, or so")


def place_of(record: DossierRecord) -> bytes:
    """The record's key in commitments."""
    return key_of(record.salt, record.identifier)


def is_gone(record: DossierRecord, root: bytes) -> bool:
    """Whether it is proved that a record, as it was, is not in a commitment."""
    key = place_of(record)
    if isinstance(record.after, Absence):
        return record.after.verify(root, key)
    other = record.after_value
    return other is not None and other != record.value and record.after.verify(root, key, other)


def require_keys(dossier: Dossier) -> None:
    """Refuse keys that have signed nothing here, and signatures on the receipt by keys that are not here."""
    known = {key.id: key for key in dossier.keys}
    if strangers := [each.key_id for each in dossier.envelope.signatures if each.key_id not in known]:
        raise EvidenceError(f"the receipt names a key that is not here: {strangers[0][:80]}")
    dossier.envelope.verify(dossier.keys)
    checkpoint = Checkpoint.read(dossier.checkpoint.encode(), dossier.origin, dossier.keys)
    used = {known[each.key_id] for each in dossier.envelope.signatures}
    used |= set(checkpoint.note.verify(dossier.origin, dossier.keys))
    if idle := [key.id for key in dossier.keys if key not in used]:
        raise EvidenceError(f"nothing here is signed with the key {idle[0]}")


def _count(said: Any, name: str) -> int:
    value = said.get(name)
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise EvidenceError(f"the receipt's {name} is no count")
    return value


def difference_to_log(dossier: Dossier, keys: Sequence[PublicKey], folder: str | Path) -> str:
    """Why a log in a folder is not what the log of a dossier has become; nothing if it is.

    Parameters
    ----------
    dossier : Dossier
        A dossier, whose checkpoint was kept with it.
    keys : sequence of PublicKey
        The operator's keys.
    folder
        The log, as it is published now.

    Returns
    -------
    str
        That it is older, was rewritten, or that two histories of it are signed.
    """
    try:
        kept = Checkpoint.read(dossier.checkpoint.encode(), dossier.origin, keys)
        log = Log.open(folder, dossier.origin, keys)
        history = compare_logs(kept, log)
    except EvidenceError as error:
        return str(error)
    if history is History.older:
        return f"it is older: it has {count(log.checkpoint.size, 'entry', 'entries')}, and had {kept.size:,}"
    if history is History.forked:
        return f"it was rewritten: two histories of {dossier.origin} are signed. Keep both: together they prove it"
    return ""
