"""What is known of one record or one person: whether they are here, and which receipts name them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.record_kind import of_kind
from maxrr.unlearning.state import KINDS, Fitted, forgotten_people, rows_of_kind
from maxrr.unlearning.tombstones import on_receipt, subject_hmac

FORGOTTEN, REPLACED, BEFORE = "forgotten", "replaced", "forgotten before"


@dataclass(frozen=True)
class Trace:
    """What a workspace knows of a record, or of a person.

    Attributes
    ----------
    here : bool
        Whether the record is here, or one about the person.
    kind : {"core", "influential", "free"} or None
        The kind of the record; None where it is not here, and for a person.
    forgotten : bool
        Whether the record was forgotten, or the last one about the person. Others about a person may have come since.
    receipts : mapping of int to str
        The receipts that name the record or person, by their numbers: by which it was "forgotten" or "replaced", or
        asked for when it was "forgotten before". Empty where it was forgotten before the workspace was made.
    time : str or None
        When it was forgotten, by the last of these receipts that did so.
    """

    here: bool
    kind: str | None
    forgotten: bool
    receipts: Mapping[int, str]
    time: str | None


def record_trace(fitted: Fitted, receipts: Iterable[Receipt], id_: int | str) -> Trace:
    """What is known of a record."""
    ids, time, named = fitted.records.ids, None, dict[int, str]()
    for receipt in receipts:
        forgotten, replaced, before = (bool(mask[0]) for mask in on_receipt(fitted.key, receipt, [id_]))
        if forgotten or replaced or before:
            named[receipt.number] = FORGOTTEN if forgotten else REPLACED if replaced else BEFORE
        if forgotten:
            time = receipt.time
    wanted: Any = of_kind(np.array([id_]), ids.dtype.kind == "U")
    row = int(fitted.records.rows(wanted)[0]) if wanted.dtype.kind == ids.dtype.kind else -1
    kind = next((kind for kind in KINDS if rows_of_kind(fitted, kind)[row]), None) if row >= 0 else None
    gone = bool(fitted.tombstones.knows(fitted.key, np.array([id_]))[0])
    return Trace(row >= 0, kind, gone, named, time)


def person_trace(fitted: Fitted, receipts: Iterable[Receipt], subject: int | str) -> Trace:
    """What is known of a person."""
    hmac, records, time, named = subject_hmac(fitted.key, subject), fitted.records, None, dict[int, str]()
    for receipt in receipts:
        if hmac in (receipt.subject_tombstones or ()):
            named[receipt.number], time = FORGOTTEN, receipt.time
    people = () if records.subjects is None else records.subjects[records.alive].tolist()
    here = str(subject) in set(map(str, people))
    return Trace(here, None, bool(forgotten_people(fitted, [subject])[0]), named, time)
