"""What was done about a request: enough to check it, nothing that tells who asked.

A receipt can be handed out. Records, classes, and the states of model and data are named by HMACs under the model's
key, which it does not contain: whoever has the data but not the key cannot try out whom it is about. It names the
receipt before it by its hash, so that none can be taken out of the row.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, Context
from typing import Annotated, Any

from maxrr import plain_text
from maxrr.evidence.exact_text import text_of
from maxrr.files import from_plain, parse_json
from maxrr.files.strict_json import Constraint, Count, Digest, PositiveFloat, PositiveInt
from maxrr.plain_text import Shown, count
from maxrr.svm import Certificate
from maxrr.unlearning.actions import KEEP, REFUSE, RETRAIN, TECHNIQUE, Guarantee

VERSION = 7
LEAST = 1e-12  # errors below it are of rounding, and would be fingerprints of the records
NOTHING = "nothing"  # what an approximate answer claims of the bytes
RETRAINED = "retrained from scratch without the records"  # what is claimed where a caller's own function trains
FUNCTION = "function"  # where a recipe names one
RUN_TWICE, SAME = "run_twice", "same"  # where a recipe says what came of two runs, and what it says if nothing differed


GUARANTEES = {guarantee.value: guarantee for guarantee in Guarantee}


def is_exact(guarantee: str) -> bool:
    """Whether a guarantee is known and exact. A receipt may name one that somebody made up."""
    return guarantee in GUARANTEES and GUARANTEES[guarantee].exact


def is_moment(text: str) -> bool:
    """Whether a text is a time in a known zone."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


Digests = Annotated[list[Digest], Constraint("each said once", lambda said: len(set(said)) == len(said))]
Previous = Annotated[str, Constraint("empty, or 64 hexadecimal digits", re.compile("([0-9a-f]{64})?").fullmatch)]


@dataclass(frozen=True)
class HeadCertificate:
    """How well one head is solved: the part of its `maxrr.svm.Certificate` that is handed out.

    Attributes
    ----------
    class_hmac : str
        An HMAC of the name of the class that the head tells from the rest.
    decided : bool
        Whether its bytes are those that any decided computation on the same records ends in.
    error : float
        The decision value of every record that it was fitted on is within this of the exact one: a power of ten.
    """

    class_hmac: Digest
    decided: bool
    error: Annotated[float, Constraint("0 or more", lambda error: error >= 0.0)]

    @classmethod
    def of(cls, class_hmac: str, certificate: Certificate) -> HeadCertificate:
        """What a receipt says of one head.

        Parameters
        ----------
        class_hmac : str
            The HMAC of the name of the head's class.
        certificate : maxrr.svm.Certificate
            The head's certificate.

        Returns
        -------
        HeadCertificate
            The part that can be handed out: the error is rounded up to a power of ten, and is never below 1e-12.
        """
        return cls(class_hmac, certificate.decided, power_of_ten(max(certificate.error, LEAST)))


def claim_of(guarantee: str, heads: Sequence[HeadCertificate], recipe: Mapping[str, Any] | None = None) -> str:
    """Say what a receipt may claim of its heads: "identical" bytes, or "within" so much of the exact decision values.

    An approximate answer claims nothing of the kind: fitting without the records gives another model. Where a training
    function of the caller's own has trained the extractor again, or two runs of a recipe were seen to differ, no bytes
    are claimed before a replay has shown them.

    >>> heads = [HeadCertificate("0a", True, 1e-12), HeadCertificate("0b", False, 1e-11)]
    >>> claim_of("exact-refit", heads), claim_of("approximate-refit", heads)
    ('within 1.0e-11', 'nothing')
    >>> claim_of("exact-retrain", heads, {"function": "my_training:train"})
    'retrained from scratch without the records'
    """
    if not is_exact(guarantee):
        return NOTHING
    said = recipe or {}
    if guarantee == "exact-retrain" and (FUNCTION in said or said.get(RUN_TWICE, SAME) != SAME):
        return RETRAINED
    if all(head.decided for head in heads):
        return "identical"
    return f"within {rounded_up(max(head.error for head in heads))}"


def lasting_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a core was chosen, without counts and measures, which depend on records that were there then."""
    return {name: details[name] for name in ("kind", "fraction", "by", "runs", "shards") if name in details}


def power_of_ten(value: float) -> float:
    """The smallest power of ten that is not below a value.

    >>> power_of_ten(3.1e-9), power_of_ten(1e-12)
    (1e-08, 1e-12)
    """
    if not 0.0 < value < math.inf:
        return value
    guess = float(f"1e{math.floor(math.log10(value))}")
    return guess if guess >= value else float(f"1e{math.floor(math.log10(value)) + 1}")


def rounded_up(value: float) -> str:
    """Write a bound with two digits, rounded up.

    >>> rounded_up(3.11e-12), rounded_up(0.5), rounded_up(9.91e-9)
    ('3.2e-12', '5.0e-01', '1.0e-08')
    """
    return f"{float(Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(value)):.1e}"


@dataclass(frozen=True)
class Loss:
    """Another copy of a workspace that is gone for good, as its operator declared. Every later receipt has it.

    Attributes
    ----------
    time : str
        When that was declared, in UTC. The log that begins then has it in its name.
    reason : str
        Why the other copy is gone, in the words of whoever declared it.
    log : str
        The name of the other copy's log.
    entries : int
        How many receipts the other copy had when it was last seen. Where these are as many as were kept, it is not
        known whether requests were lost.
    root : str
        The root of its log then; empty where that is not known, or receipts were not signed.
    kept : int
        How many receipts the copy had that went on in its place.
    """

    time: Annotated[str, Constraint("a time", re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{6}Z").fullmatch)]
    reason: str
    log: str
    entries: int
    root: str
    kept: int

    @property
    def sentence(self) -> str:
        """The declaration in words."""
        known = plain_text.count(self.entries, "receipt") + (f" with the root {self.root}" if self.root else "")
        others = "What was forgotten by the others may be back."
        if self.entries <= self.kept:
            others = "Whether it carried out other requests is not known: what they forgot may be back."
        return (
            f"Another copy of the workspace is gone: its log {self.log} had {known} when last seen, and the copy that "
            f"went on {self.kept:,}. {others} This was declared on {self.time}: {self.reason}"
        )


@dataclass(frozen=True)
class Receipt(Shown):
    """What was done about one request: enough to check it, and nothing that tells who asked.

    `print` shows it in words, as `maxrr receipt show` does.

    A model keeps a tombstone of each forgotten record: the HMACs of its id, of the record and of its values. A receipt
    names the record by the first of them alone.

    Attributes
    ----------
    number : int
        The number of the request: those of a model are counted from 1.
    previous : str
        The hash of the receipt before, empty on the first.
    guarantee : str
        What is promised: a value of `Guarantee`.
    reason : str
        Why, in a sentence.
    bytes_claim : str
        What is claimed of the heads' bytes. "identical" where every head is decided: any decided run on the retained
        records, with the same extractor, ends in these bytes. Otherwise "within X", the largest
        `HeadCertificate.error`; or "nothing" where the answer is approximate. "retrained from scratch without the
        records" where a function of the operator's own has trained the extractor again, or a recipe that was run
        twice gave other bytes: only a replay shows that it gives the same bytes.
    form : int
        The canonical form of the heads' bytes (`FORM`). Bytes of another form cannot be compared with these.
    unconditional : bool
        Whether the answer is exact without conditions.
    conditions : list of str
        What an exact answer is conditional on, one sentence each. Empty on an approximate answer.
    core_depended_on : str
        What the choice of the core depended on, in a sentence.
    core_details : dict
        How the core was chosen: its `kind`, and where it has them `fraction` and `runs`.
    core_policy : str
        What the request said about core records: "refuse", "retrain", "keep-extractor" or "technique"
        (a function).
    requested : int
        How many records were asked for. It is the sum of the next four.
    core, influential, free, already_forgotten : int
        How many of them were core, influential (and not core), free, or forgotten before.
    duplicates_left : int
        How many other records have the values of a forgotten one, and stay.
    core_left_in_extractor : int
        How many forgotten core records, of this and earlier requests, the extractor was trained on and still keeps.
    tombstones : list of str
        The HMACs of the ids of the forgotten records.
    core_tombstones : list of str
        Those of them that belong to core records.
    earlier_tombstones : list of str
        HMACs of the ids that were asked for and forgotten before.
    records_before, records_after : int
        How many records the model had before the request, and has after it.
    commitment_before, commitment_after : str
        The commitments to the records, before and after: roots of the salted tree over them.
    model_before, model_after : str
        HMACs of the hash of extractor and heads, before and after.
    heads : list of HeadCertificate
        How well each head is solved after the request; two classes share one head.
    seed : int
        The seed of the model.
    recipe : dict
        How the extractor was trained: `epochs`, `batch_size` and `lr`, and of the other attributes of
        `maxrr.nets.Recipe` those that are not the defaults. For a function of the operator's own its name as
        `function`, the SHA-256 of its module as `source_sha256`, and what that covers as `source_covers`. For such a
        function, and on CUDA, what came of running it twice on a part of the core as `run_twice`. Where training starts
        from given weights, their `name` and `sha256` as `start`.
    C : float
        The weight of the heads' losses.
    environment : dict
        Machine, versions and threads that the bytes depend on, as in `maxrr.nets.recipe.Environment`.
    time : str
        When it was done, in UTC, as in ISO 8601.
    seconds : float
        How long it took.
    version : int
        The version of the receipt's format: 7. Others are not read.
    added : int or None
        How many records were added, where nothing else was asked for; None on every other receipt.
    subject_tombstones : list of str or None
        HMACs of the subject ids of the people of whom no record is left by this request; None where there are none.
    class_weights : dict of str to float or None
        How much the records of a class count in the heads, by the HMAC of its name (`HeadCertificate.class_hmac`);
        those of others count 1. None where no class has a weight.
    weighted_records : bool or None
        True where each record has a weight of its own, which is part of its hash; None where none has.
    losses : list of Loss or None
        The newer copies of the workspace that were lost before this request, as the operator says, so that what they
        had forgotten may be back: what was last seen of each (`log`, `entries`, `root`), how many receipts were `kept`,
        and the `time` and the `reason` of going on without it. None where there are none.
    group : list of int or None
        Where several requests were answered together: the place of this one among them, from 1, and how many they were.
        Models, commitments and numbers of records are then those before and after all of them; all else is of this
        request alone. None where it was answered by itself.
    ticket : str or None
        An HMAC of the operator's ticket that the request came with; None where it came with none.
    received, due : str or None
        When that ticket was received, and by when it is to be answered, as the operator says: dates, as in ISO 8601.
    """

    number: PositiveInt
    previous: Previous
    guarantee: str
    reason: str
    bytes_claim: str
    form: int
    unconditional: bool
    conditions: list[str]
    core_depended_on: str
    core_details: dict[str, Any]
    core_policy: Annotated[str, Constraint("a policy", (REFUSE, RETRAIN, KEEP, TECHNIQUE).__contains__)]
    requested: Count
    core: Count
    influential: Count
    free: Count
    already_forgotten: Count
    duplicates_left: Count
    core_left_in_extractor: Count
    tombstones: Digests
    core_tombstones: Digests
    earlier_tombstones: Digests
    records_before: Count
    records_after: Count
    commitment_before: Digest
    commitment_after: Digest
    model_before: Digest
    model_after: Digest
    heads: list[HeadCertificate]
    seed: int
    recipe: dict[str, Any]
    C: float
    environment: dict[str, Any]
    time: Annotated[str, Constraint("a moment, as in ISO 8601", is_moment)]
    seconds: Annotated[float, Constraint("0 or more", lambda seconds: seconds >= 0.0)]
    version: int = VERSION
    added: PositiveInt | None = None
    subject_tombstones: Annotated[Digests, Constraint("somebody", len)] | None = None
    class_weights: dict[Digest, PositiveFloat] | None = None
    weighted_records: bool | None = None
    losses: list[Loss] | None = None
    group: list[int] | None = None
    ticket: str | None = None
    received: str | None = None
    due: str | None = None

    def to_json(self) -> str:
        """The receipt as text.

        Returns
        -------
        str
            JSON, which `from_json` reads: in one line, names in order, no spaces.
        """
        return text_of(self._plain())

    def _plain(self) -> dict[str, Any]:
        """The receipt as values that JSON can say; what is None is left out."""
        said = {name: value for name, value in vars(self).items() if value is not None}
        said["heads"] = [vars(head) for head in self.heads]
        if self.losses is not None:
            said["losses"] = [vars(loss) for loss in self.losses]
        return said

    @property
    def sentences(self) -> list[str]:
        """The receipt in words: heading, what was asked for and done, on which conditions, and what is claimed."""
        return [f"Receipt {self.number}, {self.time}: {self.guarantee}", *in_words(self)]

    @property
    def states(self) -> list[tuple[str, str]]:
        """The hashes on the receipt, each with what was hashed."""
        return [
            ("model before, under the key", self.model_before),
            ("model after, under the key", self.model_after),
            ("records before, under the key", self.commitment_before),
            ("records after, under the key", self.commitment_after),
            ("hash of the receipt before", self.previous or "none"),
            ("canonical form of the heads", str(self.form)),
        ]

    def __str__(self) -> str:
        return "\n".join([*map(plain_text.tame, self.sentences), plain_text.facts(self.states)])

    def __repr__(self) -> str:
        guarantee = plain_text.tame(self.guarantee)
        return f"<Receipt {self.number}: {guarantee}, {self.records_before:,} → {self.records_after:,} records>"

    @property
    def exactness(self) -> str:
        """Whether the answer is exact, and on what that depends, in words."""
        if self.guarantee not in GUARANTEES:
            return "not known to be exact: no guarantee is called so"
        return f"exact {depending(self.conditions)}" if is_exact(self.guarantee) else "not exact"

    @property
    def audit_due(self) -> str:
        """Why an audit is due: only attacks can tell how much is forgotten. Empty where the mathematics tells."""
        if self.core_left_in_extractor:
            return left_in_extractor(self.core_left_in_extractor)
        if not is_exact(self.guarantee):
            return "An audit is due: the model is not the one that training without the records gives."
        return ""

    @property
    def digest(self) -> str:
        """The SHA-256 of the receipt's text, by which the next one names it."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        """Read a receipt from its text.

        Whether it is true is another question: see `contradictions` and `replay`.

        Parameters
        ----------
        text : str
            JSON, as `to_json` writes it.

        Returns
        -------
        Receipt
            The receipt.

        Raises
        ------
        ValueError
            The text is not a receipt, or one of a version that is not known.
        """
        try:
            said = parse_json(text)
            if isinstance(said, dict) and said.get("version") != VERSION:
                raise ValueError(f"it is of version {said.get('version')!r:.20}, and {VERSION} is known")
            return from_plain(cls, said)
        except ValueError as error:
            raise ValueError(f"this is not a receipt that can be read: {error}") from error


SHARED = ("records_before", "records_after", "commitment_before", "commitment_after", "model_before", "model_after")
"""What all receipts of a group say."""


def follows(receipt: Receipt, before: Receipt | None) -> bool:
    """Whether a receipt is the next one of its group, or the first one after a whole group."""
    place = receipt.group[0] if receipt.group else 1
    if before is None or before.group is None or before.group[0] == before.group[1]:
        return place == 1
    same = all(getattr(receipt, name) == getattr(before, name) for name in SHARED)
    return same and receipt.group == [before.group[0] + 1, before.group[1]]


# A receipt as text, for people who will not read the JSON: one wording for Python, the shell and pages.


def in_words(receipt: Receipt) -> list[str]:
    """A receipt in sentences."""
    before = f", {receipt.already_forgotten} forgotten before" if receipt.already_forgotten else ""
    asked = (
        f"{count(receipt.requested, 'record')} asked for: {receipt.core} core, {receipt.influential} influential, "
        f"{receipt.free} free{before}. The model had {receipt.records_before:,} and has {receipt.records_after:,}."
    )
    if receipt.added is not None:  # the reason begins with how many were added
        asked = f"The model had {count(receipt.records_before, 'record')} and has {receipt.records_after:,}."
    why = f": {receipt.core_depended_on}" if receipt.unconditional else ""
    sentences = [
        asked,
        f"{receipt.reason[:1].upper()}{receipt.reason[1:]}.",
        f"The answer is {receipt.exactness}{why}.",
        claim(receipt),
    ]
    if receipt.subject_tombstones:
        people = len(receipt.subject_tombstones)
        sentences.append(f"No record is left about {'1 person' if people == 1 else f'{people:,} people'}.")
    if receipt.class_weights:
        classes = count(len(receipt.class_weights), "class has", "classes have")
        sentences.append(f"In the heads {classes} a weight.")
    if receipt.weighted_records:
        sentences.append("In the heads every record has a weight of its own.")
    if receipt.duplicates_left:
        sentences.append(f"{count(receipt.duplicates_left, 'exact duplicate')} under other ids stay in the data.")
    if receipt.ticket:
        days = [f", {name} on {day}" for name, day in (("received", receipt.received), ("due", receipt.due)) if day]
        sentences.append(f"It answers a ticket{''.join(days)}.")
    sentences += [f"{loss.sentence}." for loss in receipt.losses or ()]
    if due := receipt.audit_due:
        sentences.append(due)
    return sentences


def claim(receipt: Receipt) -> str:
    """What is claimed of the heads' bytes, or of their decision values."""
    decided = sum(head.decided for head in receipt.heads)
    solved = f"{decided} of {count(len(receipt.heads), 'head')} decided"
    if decided == len(receipt.heads):
        solved = "the head is decided, by a proof" if decided == 1 else "every head is decided, by a proof"
    if receipt.bytes_claim == "identical":
        return (
            f"Bytes claimed: identical ({solved}). Any decided run on the retained records, with the same extractor, "
            "ends in these bytes."
        )
    if receipt.bytes_claim == "nothing":
        return f"No bytes are claimed ({solved})."
    if receipt.bytes_claim.startswith("retrained"):
        return (
            f"The extractor was {receipt.bytes_claim}, by the operator's own function, and the heads are exact on it "
            f"({solved}). Bytes are claimed when a replay has shown them."
        )
    return (
        f"Decision values of the records are {receipt.bytes_claim} of the exact ones ({solved}); no bytes are claimed."
    )


def depending(conditions: list[str]) -> str:
    """Say how many conditions exactness rests on, and which.

    >>> depending([]), depending(["the sun shines: it is day"])
    ('without conditions', 'on 1 condition (the sun shines: it is day)')
    """
    return f"on {count(len(conditions), 'condition')} ({'; '.join(conditions)})" if conditions else "without conditions"


def left_in_extractor(records: int) -> str:
    """Say that an audit is due, because the extractor was trained on forgotten core records."""
    return f"An audit is due: the extractor keeps what it learned from {count(records, 'forgotten core record')}."
