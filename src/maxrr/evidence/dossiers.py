"""What a person gets about a request: the signed receipt, and proofs about their records that nobody else needs.

Reading is strict, and believes nothing: `Dossier.check` tells what of it holds, each claim with a sentence for people,
and why it does not hold.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self, TypedDict, TypeVar

from maxrr.errors import Contradiction, EvidenceError, WrongProof
from maxrr.evidence.checkpoints import Checkpoint
from maxrr.evidence.envelopes import RECEIPT_TYPE, Envelope, Statement
from maxrr.evidence.exact_text import Bytes32, Plain, canonical_json, read_as, read_json
from maxrr.evidence.log import Log, LogRelation, compare_logs
from maxrr.evidence.log_proofs import Inclusion, leaf_hash
from maxrr.evidence.signing import PublicKey
from maxrr.evidence.sparse_tree import Absence, Presence, key_of
from maxrr.files.strict_json import Constraint
from maxrr.plain_text import count

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

DOSSIER_TYPE = "https://maxrr.dev/dossier/v1"
LARGEST_DOSSIER = 64 << 20  # bytes: a record has about five thousand
MOST_RECORDS = 10_000
MOST_KEYS = 64
LONGEST_ID = 1_000  # characters, as everywhere
LONGEST_LAYOUT = 1 << 16  # bytes

Integer = Annotated[int, Constraint("an integer of 64 bits", lambda number: -(1 << 63) <= number < 1 << 63)]
Text = Annotated[str, Constraint(f"1 to {LONGEST_ID:,} characters", lambda text: 0 < len(text) <= LONGEST_ID)]
Layout = Annotated[bytes, Constraint(f"1 to {LONGEST_LAYOUT:,} bytes", lambda data: 0 < len(data) <= LONGEST_LAYOUT)]


@dataclass(frozen=True)
class DossierRecord(Plain):
    """One record that a request was about, and the proofs of what became of it.

    Attributes
    ----------
    id : dict
        The record id, as "int" or "str", for programs that have one type of numbers.
    salt : bytes
        The record's salt, which says where it stands in a commitment (`key_of`).
    value : bytes
        What the commitment before the request said of it (`value_of`).
    before : Presence
        That it was in that commitment.
    after : Absence or Presence
        That it is not in the commitment after the request; or, where it was replaced, that another content is.
    after_value : bytes or None
        What the commitment after the request says of it, where it was replaced.
    """

    id: dict[str, Integer | Text]
    salt: Bytes32
    value: Bytes32
    before: Presence
    after: Absence | Presence
    after_value: Bytes32 | None = None

    def __post_init__(self) -> None:
        if [(name, type(said)) for name, said in self.id.items()] not in ([("int", int)], [("str", str)]):
            raise EvidenceError("a record id is neither an 'int' nor a 'str', or is said to be the other")
        if isinstance(self.after, Presence) != self.replaced:
            raise EvidenceError("a record has a proof of the other kind, or no value for it")

    def to_object(self) -> dict[str, Any]:
        """The record as an object that JSON can say; with an `after_value` only where there is one."""
        return {name: said for name, said in super().to_object().items() if said is not None}

    @property
    def name(self) -> int | str:
        """The record id."""
        return next(iter(self.id.values()))

    @property
    def replaced(self) -> bool:
        """Whether another content took the place of the record."""
        return self.after_value is not None

    @property
    def identifier(self) -> bytes:
        """The id as it is hashed: 1 and '1' differ."""
        ((kind, name),) = self.id.items()
        return f"{kind}:{name}".encode("utf-8", "surrogatepass")


class _Log(TypedDict):
    origin: str
    checkpoint: str
    inclusion: Inclusion


class _Dossier(TypedDict):
    type: str
    operator: Text | None
    envelope: dict[str, Any]
    subject: Integer | Text | None
    records: list[DossierRecord]
    record_layout: Layout
    log: _Log
    keys: list[str]


@dataclass(frozen=True)
class Dossier:
    """What a person gets about a request. Nothing in it is to be believed before `check` says that all of it holds.

    Attributes
    ----------
    operator : str or None
        Who answered, and how to reach them, in their own words. It is not signed.
    envelope : Envelope
        The signed receipt.
    subject : int, str or None
        Whom the records are about, if that is known. It is part of each record's hash, and is not signed otherwise.
    records : tuple of DossierRecord
        The person's records that the request was about: at least one, and none twice.
    record_layout : bytes
        Type and shape of a record's inputs, as they are hashed with it.
    origin : str
        The name of the log.
    checkpoint : str
        A checkpoint of the log, a signed note.
    inclusion : Inclusion
        That the receipt is in the log of that checkpoint.
    keys : tuple of PublicKey
        With which keys the receipt and the checkpoint are signed. They vouch for nothing: trust comes from a key that
        the reader has from elsewhere.
    """

    operator: str | None
    envelope: Envelope
    subject: int | str | None
    records: tuple[DossierRecord, ...]
    record_layout: bytes
    origin: str
    checkpoint: str
    inclusion: Inclusion
    keys: tuple[PublicKey, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.records) <= MOST_RECORDS:
            raise EvidenceError(f"a dossier is about 1 to {MOST_RECORDS:,} records, not {len(self.records):,}")
        if len({record.identifier for record in self.records}) < len(self.records):
            raise EvidenceError("the dossier has a record twice")
        if not 1 <= len(self.keys) <= MOST_KEYS or len(set(self.keys)) < len(self.keys):
            raise EvidenceError(f"a dossier has 1 to {MOST_KEYS} keys, and none twice")

    def check(self, keys: Sequence[PublicKey]) -> list["Check"]:
        """Check every claim of the dossier. Needs nothing else: no workspace, no data, no network.

        Parameters
        ----------
        keys : sequence of PublicKey
            The operator's keys, from a source that the reader trusts.

        Returns
        -------
        list of Check
            One for each claim, always in the same order. The dossier is verified if every one holds.
        """
        return check_dossier(self, keys)

    def to_object(self) -> dict[str, Any]:
        """The dossier as an object that JSON can say.

        Returns
        -------
        dict
            Its fields, as docs/specifications/evidence.md lists them.
        """
        return {
            "type": DOSSIER_TYPE,
            "operator": self.operator,
            "envelope": read_json(self.envelope.to_bytes(), "the envelope"),
            "subject": self.subject,
            "records": [record.to_object() for record in self.records],
            "record_layout": self.record_layout.hex(),
            "log": {
                "origin": self.origin, "checkpoint": self.checkpoint, "inclusion": self.inclusion.to_object(),
            },
            "keys": [key.pem.decode() for key in self.keys],
        }  # fmt: skip

    def to_bytes(self) -> bytes:
        """The dossier as JSON.

        Returns
        -------
        bytes
            Names sorted, no spaces, UTF-8.
        """
        return canonical_json(self.to_object())

    @classmethod
    def from_object(cls, said: Any) -> Self:
        """Read a dossier strictly; nothing in it is verified yet.

        Parameters
        ----------
        said
            What `to_object` gave.

        Returns
        -------
        Dossier
            What was read.

        Raises
        ------
        EvidenceError
            It is no dossier, lacks a field or has one that is not known, or is larger than one can be.
        """
        if not isinstance(said, dict) or said.get("type") != DOSSIER_TYPE:
            raise EvidenceError(f"this is no dossier: it is not of the type {DOSSIER_TYPE}")
        form = read_as(_Dossier, said, "the dossier")
        log = form["log"]
        return cls(
            form["operator"], Envelope.from_bytes(canonical_json(form["envelope"])), form["subject"],
            tuple(form["records"]), form["record_layout"], log["origin"], log["checkpoint"], log["inclusion"],
            tuple(_key(each) for each in form["keys"][: MOST_KEYS + 1]),
        )  # fmt: skip

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a dossier from JSON, in whatever order and spacing.

        Parameters
        ----------
        data : bytes
            The JSON text.

        Returns
        -------
        Dossier
            What was read, as by `from_object`.

        Raises
        ------
        EvidenceError
            As `from_object`; or it is not JSON.
        """
        if len(data) > LARGEST_DOSSIER:
            raise EvidenceError("the dossier is too large to be one")
        return cls.from_object(read_json(data, "the dossier"))


def _key(said: str) -> PublicKey:
    key = PublicKey.from_pem(said.encode(), "a key of the dossier")
    if key.pem.decode() != said:
        raise EvidenceError("a key of the dossier is PEM that nobody writes")
    return key


# Checking


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
    in_group : bool
        Whether other requests were answered together with it, which may have taken some of these.
    """

    number: int
    commitment_before: bytes
    commitment_after: bytes
    forgotten: int
    fewer: int
    in_group: bool


class NotLookedAtError(Exception):
    """A claim that was not checked, because one that it rests on does not hold."""


def check_dossier(dossier: Dossier, keys: Sequence[PublicKey]) -> list["Check"]:
    """Check every claim about a dossier; see `Dossier.check`."""
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
                raise WrongProof(f"it is not proved that record {record.name!r} was there")

    def after() -> None:
        root = found(facts, "the receipt").commitment_after
        for record in dossier.records:
            if not is_gone(record, root):
                raise WrongProof(f"it is not proved that record {record.name!r} is gone")

    def signed_checkpoint() -> None:
        nonlocal checkpoint
        checkpoint = Checkpoint.read(dossier.checkpoint.encode(), dossier.origin, keys)

    def logged() -> None:
        number = found(facts, "the receipt").number
        log = found(checkpoint, "the checkpoint")
        if dossier.inclusion.index != number - 1:
            place = dossier.inclusion.index + 1
            raise WrongProof(f"the proof is of entry {place}, and the receipt is number {number}")
        if dossier.inclusion.size != log.size:
            raise WrongProof(f"the proof is for a log of the size {dossier.inclusion.size}, and this has {log.size}")
        entry = hashlib.sha256(dossier.envelope.payload).digest()
        if not dossier.inclusion.verify(leaf_hash(entry), log.size, log.root):
            raise WrongProof("the proof does not lead from this receipt to the log")

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
    """Return the result of an earlier check, or raise `NotLookedAtError` if that check failed."""
    if value is None:
        raise NotLookedAtError(f"not looked at: it rests on {what}")
    return value


def facts_of(statement: Statement) -> ReceiptFacts:
    """Read from a signed statement what the checks need, if it is a receipt of a model.

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
        raise Contradiction("the statement is not about the model that its receipt names")
    named = [said.get(f"commitment_{when}") for when in ("before", "after")]
    old, new = read_as(tuple[Bytes32, Bytes32], named, "the commitments before and after")
    return ReceiptFacts(number, old, new, len(stones), before - after, "group" in said)


def require_agrees(dossier: Dossier, facts: ReceiptFacts) -> None:
    """Refuse a dossier about more, or about something else, than its receipt says was done."""
    if len(dossier.records) > facts.forgotten:
        raise Contradiction(f"this is about {len(dossier.records):,} records, the receipt about {facts.forgotten:,}")
    whole = facts.fewer in (facts.forgotten, 0) and (facts.fewer > 0 or facts.forgotten == 1)
    if facts.fewer < facts.forgotten if facts.in_group else not whole:
        raise Contradiction(f"of {facts.forgotten:,} forgotten records there are {facts.fewer:,} fewer")
    if any(record.replaced for record in dossier.records) != (facts.fewer == 0):
        raise Contradiction("the receipt says of a record that it was forgotten, and this that it was corrected, or so")


def place_of(record: DossierRecord) -> bytes:
    """Return the key under which a record stands in commitments."""
    return key_of(record.salt, record.identifier)


def is_gone(record: DossierRecord, root: bytes) -> bool:
    """Whether a record's proof shows that its former content is not in the commitment."""
    key = place_of(record)
    if isinstance(record.after, Absence):
        return record.after.verify(root, key)
    other = record.after_value
    return other is not None and other != record.value and record.after.verify(root, key, other)


def require_keys(dossier: Dossier) -> None:
    """Refuse keys that are not just those that the receipt and the checkpoint are signed with."""
    if dossier.envelope.key_id not in [key.id for key in dossier.keys]:
        raise Contradiction(f"the receipt names a key that is not here: {dossier.envelope.key_id[:80]}")
    dossier.envelope.verify(dossier.keys)
    checkpoint = Checkpoint.read(dossier.checkpoint.encode(), dossier.origin, dossier.keys)
    used = dossier.envelope.key_id, checkpoint.key.id
    if idle := [key.id for key in dossier.keys if key.id not in used]:
        raise Contradiction(f"nothing here is signed with the key {idle[0]}")


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
    if history is LogRelation.older:
        return f"it is older: it has {count(log.checkpoint.size, 'entry', 'entries')}, and had {kept.size:,}"
    if history is LogRelation.forked:
        return f"it was rewritten: two histories of {dossier.origin} are signed. Keep both: together they prove it"
    return ""
