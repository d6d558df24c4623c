"""What was done about a request, for people and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from maxrr.cli import show

if TYPE_CHECKING:
    from maxrr.unlearning import Receipt


def tell(receipt: Receipt, path: Path, models: tuple[str, str], *, json: bool) -> None:
    """The receipt, where it is kept, and whether that is the end of it. `models` are the hashes before and after."""
    from maxrr.report.words import count, duration
    from maxrr.unlearning import Guarantee

    if json:
        show.json_text(receipt.to_json())
        return
    decided = sum(head.decided for head in receipt.heads)
    before, after = models
    heads = count(len(receipt.heads), "head")
    pairs = [
        ("guarantee", receipt.guarantee),
        ("because", receipt.reason),
        ("that is", exactness(receipt)),
        ("records", f"{receipt.records_before:,} → {receipt.records_after:,}"),
        ("model", f"{before[:12]}… " + ("as before" if before == after else f"→ {after[:12]}…")),
    ]
    if Guarantee(receipt.guarantee).exact:
        near = "" if receipt.bytes_claim == "identical" else " of the exact decision values"
        pairs.append(("bytes claimed", f"{receipt.bytes_claim}{near}; {decided} of {heads} decided"))
    show.facts([*pairs, ("took", duration(receipt.seconds)), ("receipt", show.near(path))])
    if due := audit_due(receipt):
        show.say(due)


def exactness(receipt: Receipt) -> str:
    """What the guarantee depends on."""
    from maxrr.report.words import count
    from maxrr.unlearning import Guarantee

    if not Guarantee(receipt.guarantee).exact:
        return "not exact"
    if receipt.unconditional:
        return "exact without conditions"
    return f"exact on {count(len(receipt.conditions), 'condition')}: {'; '.join(receipt.conditions)}"


def audit_due(receipt: Receipt) -> str:
    """That only attacks can tell how much is forgotten; nothing where the mathematics can."""
    from maxrr.report.words import count
    from maxrr.unlearning import Guarantee

    replaced = receipt.record_marks and receipt.records_after == receipt.records_before
    if replaced and not Guarantee(receipt.guarantee).exact:
        return "The extractor keeps what it learned from the record that was replaced; --policy retrain is exact."
    if receipt.core_left_in_extractor:
        left = count(receipt.core_left_in_extractor, "forgotten core record")
        return f"An audit is due: the extractor keeps what it learned from {left}."
    if not Guarantee(receipt.guarantee).exact:
        return "An audit is due: the model is not the one that training without the records gives."
    return ""
