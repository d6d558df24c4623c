"""A receipt as text, for people who will not read the JSON: one wording for Python, the shell and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maxrr.plain_text import count
from maxrr.unlearning.guarantees import Guarantee

if TYPE_CHECKING:
    from maxrr.unlearning.receipts import Receipt

GUARANTEES = {guarantee.value: guarantee for guarantee in Guarantee}  # somebody may have written another on a receipt


def heading(receipt: Receipt) -> str:
    """Which receipt it is, and what it promises."""
    return f"Receipt {receipt.number}, {receipt.time}: {receipt.guarantee}"


def in_words(receipt: Receipt) -> list[str]:
    """A receipt in sentences."""
    before = f", {receipt.already_forgotten} forgotten before" if receipt.already_forgotten else ""
    asked = (
        f"{count(receipt.requested, 'record')} asked for: {receipt.core} core, {receipt.influential} influential, "
        f"{receipt.free} free{before}. The model had {receipt.records_before:,} and has {receipt.records_after:,}."
    )
    if receipt.added is not None:  # the reason begins with how many were added
        asked = f"The model had {count(receipt.records_before, 'record')} and has {receipt.records_after:,}."
    sentences = [
        asked,
        sentence(receipt.reason),
        f"The answer is {exactness(receipt)}{why_unconditional(receipt)}.",
        claim(receipt),
    ]
    if receipt.subject_tombstones:
        people = len(receipt.subject_tombstones)
        sentences.append(f"No record is left about {'1 person' if people == 1 else f'{people:,} people'}.")
    if counted := weighed(len(receipt.class_weights or {}), bool(receipt.weighted_records)):
        sentences.append(f"In the heads {counted}.")
    if receipt.duplicates_left:
        sentences.append(f"{count(receipt.duplicates_left, 'exact duplicate')} under other ids stay in the data.")
    sentences += [f"{loss.sentence}." for loss in receipt.losses or ()]
    if due := audit_due(receipt):
        sentences.append(due)
    return sentences


def weighed(classes: int, records: bool) -> str:
    """That not all records count the same in the heads; nothing where they do.

    >>> weighed(1, False), weighed(2, True)
    ('the records of 1 class have a weight', 'the records of 2 classes have a weight, and every record its own')
    """
    of_classes = f"the records of {count(classes, 'class', 'classes')} have a weight" if classes else ""
    own = "every record its own" if classes else "every record has a weight of its own"
    return ", and ".join(filter(None, [of_classes, own if records else ""]))


def claim(receipt: Receipt) -> str:
    """What is claimed of the heads' bytes, or of their decision values."""
    decided = sum(head.decided for head in receipt.heads)
    solved = f"{decided} of {count(len(receipt.heads), 'head')} decided"
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


def exactness(receipt: Receipt) -> str:
    """Whether the answer is exact, and what that depends on."""
    if receipt.guarantee not in GUARANTEES:
        return "not known to be exact: no guarantee is called so"
    return f"exact {depending(receipt.conditions)}" if GUARANTEES[receipt.guarantee].exact else "not exact"


def depending(conditions: list[str]) -> str:
    """On what exactness depends.

    >>> depending([]), depending(["the sun shines: it is day"])
    ('without conditions', 'on 1 condition (the sun shines: it is day)')
    """
    return f"on {count(len(conditions), 'condition')} ({'; '.join(conditions)})" if conditions else "without conditions"


def why_unconditional(receipt: Receipt) -> str:
    return f": {receipt.core_depended_on}" if receipt.unconditional else ""


def audit_due(receipt: Receipt) -> str:
    """That only attacks can tell how much is forgotten; nothing where the mathematics can."""
    if receipt.core_left_in_extractor:
        return left_in_extractor(receipt.core_left_in_extractor)
    if receipt.guarantee not in GUARANTEES or not GUARANTEES[receipt.guarantee].exact:
        return "An audit is due: the model is not the one that training without the records gives."
    return ""


def left_in_extractor(records: int) -> str:
    """What is due where the extractor was trained on forgotten core records."""
    return f"An audit is due: the extractor keeps what it learned from {count(records, 'forgotten core record')}."


def sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def states(receipt: Receipt) -> list[tuple[str, str]]:
    """The hashes that name what was before and after."""
    return [
        ("model before, under the key", receipt.model_before),
        ("model after, under the key", receipt.model_after),
        ("records before, under the key", receipt.commitment_before),
        ("records after, under the key", receipt.commitment_after),
        ("hash of the receipt before", receipt.previous or "none"),
        ("canonical form of the heads", str(receipt.form)),
    ]
