"""A receipt in words, for people who will not read the JSON."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from maxrr.evidence import Dossier, Statement
from maxrr.unlearning import Receipt
from maxrr.unlearning.receipts import audit_due, depending, exactness, in_words, left_in_extractor
from maxrr.unlearning.statements import receipt_in

if TYPE_CHECKING:
    from maxrr.audit import AuditReport

__all__ = ["audit_due", "date", "depending", "exactness", "in_words", "left_in_extractor", "receipt_of"]


def date(dated: Receipt | AuditReport) -> str:
    """The day of a receipt or report.

    >>> from types import SimpleNamespace
    >>> date(SimpleNamespace(time="2026-03-01T07:45:10+00:00"))
    '1 March 2026'
    """
    moment = datetime.fromisoformat(dated.time)
    return f"{moment.day} {moment:%B %Y}"


def receipt_of(dossier: Dossier) -> Receipt:
    """The receipt in a dossier, whoever signed it."""
    return receipt_in(Statement.from_bytes(dossier.envelope.payload))
