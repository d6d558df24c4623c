"""A receipt in words, for people who will not read the JSON."""

from datetime import datetime

from maxrr.audit import AuditReport
from maxrr.report.markup import Html, tag
from maxrr.report.page import details, paragraphs
from maxrr.report.words import count, scientific
from maxrr.unlearning import Guarantee, Receipt


def receipt_card(receipt: Receipt, style: str) -> Html:
    """The receipt in sentences, and as it is handed out."""
    return tag(
        "article",
        tag("h3", f"Receipt {receipt.number}"),
        tag("p", tag("code", receipt.guarantee)),
        paragraphs(*in_words(receipt)),
        details("As handed out (JSON)", receipt.to_json()),
        class_=f"card receipt {style}-top",
    )


def in_words(receipt: Receipt) -> list[str]:
    """A receipt in sentences."""
    gap = max(head.relative_gap for head in receipt.heads)
    decided = sum(head.decided for head in receipt.heads)
    conditions = "without conditions" if receipt.unconditional else "given the core"
    exact = f"exact {conditions}" if Guarantee(receipt.guarantee).exact else "not exact"
    sentences = [
        f"{count(receipt.requested, 'record')} asked for: {receipt.core} core, {receipt.influential} influential, "
        f"{receipt.neither} neither. The model had {receipt.records_before:,} and has {receipt.records_after:,}.",
        f"{receipt.reason[0].upper()}{receipt.reason[1:]}.",
        f"The answer is {exact}: {receipt.core_depended_on}.",
        f"{decided} of {count(len(receipt.heads), 'head')} are certified to be decided; the largest duality gap is "
        f"{scientific(gap)}. {claim(receipt)}",
    ]
    if receipt.duplicates_left:
        sentences.append(f"{count(receipt.duplicates_left, 'exact duplicate')} under other ids stay in the data.")
    if receipt.core_left_in_extractor:
        left = count(receipt.core_left_in_extractor, "forgotten record")
        sentences.append(f"The extractor was trained on {left}: an audit is due.")
    return sentences


def claim(receipt: Receipt) -> str:
    """What is claimed of the heads' bytes, or of their decision values."""
    if receipt.bytes_claim == "identical":
        return "Bytes claimed: identical."
    return f"Decision values of the records are {receipt.bytes_claim} of the exact ones; no bytes are claimed."


def date(dated: Receipt | AuditReport) -> str:
    """The day of a receipt or report.

    >>> from types import SimpleNamespace
    >>> date(SimpleNamespace(time="2026-03-01T07:45:10+00:00"))
    '1 March 2026'
    """
    moment = datetime.fromisoformat(dated.time)
    return f"{moment.day} {moment:%B %Y}"
