"""What must not come back: forgotten ids never, forgotten values under other ids only for a stated reason."""

import warnings
from dataclasses import replace
from datetime import UTC, datetime

from maxrr.data import Dataset
from maxrr.errors import DataError
from maxrr.unlearning.overrides import Override
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import REPLACED, Tombstones, id_hmac


def copies_in(before: Fitted, dataset: Dataset, reason: str | None) -> int:
    """How many records have forgotten values under other ids. Forgotten ids are refused, and copies without a reason.

    A forgotten record is known whatever the order of its columns, where these have names.
    """
    dataset = in_order_of(before.records.columns, dataset)
    returning = before.tombstones.returning(before.key, dataset, before.records.held())
    same, copies = int(returning.by_id.sum()), int(returning.by_values.sum())
    if same:
        raise DataError(
            f"{same:,} of the record ids were forgotten by this model and must not come back, whatever their records "
            "hold now: leave them out of the data"
        )
    if copies and (reason is None or not reason.strip()):
        raise DataError(
            f"{copies:,} of the records have exactly the values of forgotten or replaced ones, under other ids or as "
            "they were before: leave them out, or, if they are other people's, say why in allow_copies"
        )
    return copies


def in_order_of(known: tuple[str, ...] | None, dataset: Dataset) -> Dataset:
    """The records with their columns in the order that is known, where both have names for the same ones."""
    own = dataset.columns
    if known is None or own is None or own == known or set(own) != set(known):
        return dataset
    return replace(dataset, inputs=dataset.inputs[:, [own.index(name) for name in known]], columns=known)


def copies_in_place(before: Fitted, added: Dataset, reason: str | None) -> int:
    """The same of records that take the place of others: one may become again what it was before it was replaced."""
    own = {id_hmac(before.key, id_, REPLACED) for id_ in added.ids.tolist()}
    others = Tombstones(frozenset(stone for stone in before.tombstones.stones if stone.id not in own))
    return copies_in(replace(before, tombstones=others), added, reason)


def let_in(copies: int, reason: str | None) -> tuple[Override, ...]:
    """What a model remembers of copies that were let in. The warning points at the line that called the model."""
    if not copies:
        return ()
    assert reason is not None
    warnings.warn(f"{copies:,} records with the values of forgotten ones are let in under other ids", stacklevel=4)
    return (Override(datetime.now(UTC).isoformat(timespec="seconds"), copies, reason),)
