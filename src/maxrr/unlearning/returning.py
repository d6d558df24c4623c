"""What must not come back: forgotten ids never, forgotten values under other ids only for a stated reason."""

import warnings
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.data.hashes import value_hashes
from maxrr.data.table import in_order_of
from maxrr.errors import DataError
from maxrr.unlearning.facts import Override
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import REPLACED, Stones, id_hmac


class Returning(NamedTuple):
    """Which rows of a dataset bring back what was forgotten: its ids, or its values in records that are not here."""

    by_id: NDArray[np.bool_]
    by_values: NDArray[np.bool_]


def returning(before: Fitted, dataset: Dataset) -> Returning:
    """Which of these records bring back what a model has forgotten, whatever the order of columns that have names.

    A copy of a forgotten record that was here beside it when it was forgotten has stayed by that decision.
    """
    tombstones, records = before.tombstones, before.records
    none = np.zeros(len(dataset), dtype=bool)
    if not tombstones.stones:
        return Returning(none, none)
    by_id = tombstones.knows(before.key, dataset.ids)
    by_values = tombstones.knows_values(before.key, dataset, records.columns) & ~by_id
    suspects = np.flatnonzero(by_values)
    if len(suspects):
        held, copies = records.held(), in_order_of(records.columns, dataset.select(dataset.ids[suspects]))
        digests = value_hashes(copies.inputs)
        for row, id_, label, digest in zip(suspects, copies.ids.tolist(), copies.labels, digests, strict=True):
            by_values[row] = (str(id_), copies.class_names[label], digest.tobytes()) not in held
    return Returning(by_id, by_values)


def copies_in(before: Fitted, dataset: Dataset, reason: str | None) -> int:
    """How many records have forgotten values under other ids. Forgotten ids and copies without a reason are refused."""
    found = returning(before, dataset)
    same, copies = int(found.by_id.sum()), int(found.by_values.sum())
    if same:
        raise DataError(
            f"{same:,} of the record ids were forgotten by this model and must not come back, whatever their records "
            "hold now: leave them out of the data"
        )
    if copies and (reason is None or not reason.strip()):
        raise DataError(
            f"{copies:,} of the records have exactly the values of forgotten or replaced ones, under other ids or as "
            "they were before: leave them out, or, if they are other people's, say why, by allow_copies (in the shell "
            "--allow-copies)"
        )
    return copies


def copies_in_place(before: Fitted, added: Dataset, reason: str | None) -> int:
    """The same of records that take the place of others: one may become again what it was before it was replaced."""
    own = {id_hmac(before.key, id_, REPLACED) for id_ in added.ids.tolist()}
    others = before.tombstones
    if any(others.stones.of(id_) for id_ in own):
        others = replace(others, stones=Stones(stone for stone in others.stones if stone.id not in own))
    return copies_in(replace(before, tombstones=others), added, reason)


def let_in(copies: int, reason: str | None) -> tuple[Override, ...]:
    """What a model remembers of copies that were let in. The warning points at the line that called the model."""
    if not copies:
        return ()
    assert reason is not None
    warnings.warn(f"{copies:,} records with the values of forgotten ones are let in under other ids", stacklevel=4)
    return (Override(datetime.now(UTC).isoformat(timespec="seconds"), copies, reason),)
