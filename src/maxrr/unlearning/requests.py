"""Requests: which records to forget, to replace or to add, looked up in a state; and what must not come back.

Forgotten ids never come back, forgotten values under other ids only for a stated reason.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import nn

from maxrr.data import Dataset
from maxrr.data.checks import check_identifiers, check_same_kind, listed
from maxrr.data.tables import in_order_of
from maxrr.errors import (
    AlreadyForgotten,
    CopyOfForgotten,
    DataError,
    IdTaken,
    NoChange,
    NoSubjects,
    UnknownClass,
    UnknownReceipt,
    UnknownSubject,
)
from maxrr.nets.naming import check_takes
from maxrr.plain_text import first_few
from maxrr.unlearning.actions import KEEP, REFUSE, RETRAIN, TECHNIQUE
from maxrr.unlearning.facts import Override
from maxrr.unlearning.given_records import Ids, Inputs, matched, to_replace
from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.records import Ints, of_kind, shuffled
from maxrr.unlearning.state import ModelState, forgotten_people
from maxrr.unlearning.tombstones import Tombstones, content_hashes, id_hmac, subject_hmac

Technique = Callable[[nn.Module, Dataset, Dataset, nn.Linear], nn.Module]
"""A function that gets the extractor, the core records that stay, those to forget and the heads, and returns another
extractor."""


@dataclass(frozen=True, eq=False)
class Request:
    """A request, looked up in one state of a model.

    Attributes
    ----------
    rows, core_rows
        Where the records to forget stand, and those among them that are core.
    unknown : list
        Ids that no record has or had.
    forgotten_before : tuple of bytes
        The HMACs of the ids of records that were forgotten before, or of people of whom no record is left.
    left_in_extractor : int
        How many of the records asked for remain in the extractor, forgotten before or in an earlier version.
    core_policy
        As in `MaxRR.unlearn`.
    added : Dataset or None
        The records that arrive: the one that takes the place of the one to forget, or those to add.
    copies, allow_copies
        How many of the records added have the values of forgotten ones, and why they are let in.
    """

    rows: Ints
    core_rows: Ints
    unknown: list[Any]
    forgotten_before: tuple[bytes, ...]
    left_in_extractor: int
    core_policy: str | Technique
    added: Dataset | None = None
    copies: int = 0
    allow_copies: str | None = None

    @property
    def already_forgotten(self) -> int:
        return len(self.forgotten_before)

    @property
    def adds(self) -> bool:
        """Whether records arrive and none leaves."""
        return self.added is not None and not len(self.rows)

    @property
    def policy(self) -> str:
        """The name of the policy for core records."""
        return self.core_policy if isinstance(self.core_policy, str) else TECHNIQUE


NOBODY: Ints = np.empty(0, dtype=np.int64)


def check_policy(core_policy: str | Technique) -> None:
    """Refuse a policy that does not exist."""
    if callable(core_policy):
        check_takes(core_policy, "core_policy", "extractor", "core", "leaving", "heads")
    elif core_policy not in (REFUSE, RETRAIN, KEEP):
        raise ValueError(f"core_policy is '{REFUSE}', '{RETRAIN}', '{KEEP}' or a function, not {core_policy!r}")


def request_to_forget(
    fitted: ModelState, ids: Ids | None, subjects: Ids | None, core_policy: str | Technique,
    receipt: Receipt | None = None,
) -> Request:  # fmt: skip
    """Look up the records that a request names: by ids, by subjects, or as those that a receipt has forgotten."""
    check_policy(core_policy)
    if sum(given is not None for given in (ids, subjects, receipt)) != 1:
        raise ValueError("a request names records by ids, people by subjects, or an earlier receipt: one of these")
    if receipt is not None:
        return request_to_finish(fitted, receipt, core_policy)
    people: tuple[bytes, ...] = ()
    if subjects is not None:
        rows, people = people_asked_for(fitted, subjects)
        ids = fitted.records.ids[rows]
    wanted = np.unique(of_kind(check_identifiers(listed(ids), "record ids"), text=fitted.records.text_ids))
    found = fitted.records.rows(wanted)
    missing, rows = wanted[found < 0], np.sort(found[found >= 0])
    gone = fitted.tombstones.knows(fitted.key, missing)
    before = people + tuple(id_hmac(fitted.key, id_) for id_ in missing[gone].tolist())
    left = 0
    if fitted.in_extractor and people:  # of whose records nobody knows whether they are among those that are left
        left = fitted.left_in_extractor
    elif fitted.in_extractor:
        hmacs = ({id_hmac(fitted.key, id_), id_hmac(fitted.key, id_, replaced=True)} for id_ in wanted.tolist())
        left = sum(not fitted.in_extractor.isdisjoint(either) for either in hmacs)
    return Request(rows, rows[fitted.core[rows]], missing[~gone].tolist(), before, left, core_policy)


def request_to_finish(fitted: ModelState, receipt: Receipt, core_policy: str | Technique) -> Request:
    """Make the request to rid the extractor of the records on an earlier receipt."""
    if receipt.digest not in fitted.receipts:
        raise UnknownReceipt(f"receipt {receipt.number} is not one of this model")
    before = tuple(map(bytes.fromhex, receipt.tombstones))
    return Request(NOBODY, NOBODY, [], before, len(fitted.in_extractor.intersection(before)), core_policy)


def people_asked_for(fitted: ModelState, subjects: Ids) -> tuple[Ints, tuple[bytes, ...]]:
    """Find the rows about some people, and the HMACs of those who were forgotten before. Strangers are refused."""
    records, text = fitted.records, fitted.records.text_subjects
    if records.subjects is None or text is None:
        raise NoSubjects("the records do not say whom they are about: they have no subject ids")
    people = np.unique(of_kind(check_identifiers(listed(subjects), "subject ids"), text=text))
    rows = records.of_subjects(people)
    without = np.setdiff1d(people, records.subjects[rows])
    unknown = without[~forgotten_people(fitted, without.tolist())].tolist()
    if unknown:
        some, more = ", ".join(map(repr, unknown[:5])), f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        alone = "" if len(unknown) == len(people) else ". Nothing else of the request is done: leave them out"
        raise UnknownSubject(f"no record is about {some}{more} (records for testing are in no model){alone}")
    return rows, tuple(bytes.fromhex(subject_hmac(fitted.key, person)) for person in without.tolist())


def request_to_replace(
    fitted: ModelState, id_: int | str, inputs: Inputs, label: int | str | None, core_policy: str | Technique,
    allow_copies: str | None,
) -> Request:  # fmt: skip
    """Look up the record to replace, and check the one that takes its place."""
    request = request_to_forget(fitted, [id_], None, core_policy)
    if request.already_forgotten:
        raise AlreadyForgotten(f"the record {np.asarray(id_).item()!r} was forgotten: there is nothing to replace")
    if not len(request.rows):
        return request
    added = rectified(fitted, request.rows, inputs, label)
    same = np.array_equal(added.record_hashes(), fitted.records.hashes[request.rows])
    if same and not (request.left_in_extractor and request.policy == RETRAIN):  # which rids it of the old version
        raise NoChange(f"the record {np.asarray(id_).item()!r} is just so already: there is nothing to replace")
    # It may become again what it was before it was replaced.
    own = {id_hmac(fitted.key, id_, replaced=True) for id_ in added.ids.tolist()}
    others = Tombstones(stone for stone in fitted.tombstones if stone.id not in own)
    copies = copies_in(replace(fitted, tombstones=others), added, allow_copies)
    return replace(request, added=added, copies=copies, allow_copies=allow_copies)


def rectified(fitted: ModelState, rows: Ints, inputs: Inputs, label: int | str | None) -> Dataset:
    """Make the record that takes the place of the one in this row."""
    records, labels = fitted.records, fitted.records.labels[rows]
    if label is not None:
        numbers = dict(zip(fitted.head_classes, fitted.codes.tolist(), strict=True))
        if str(label) not in numbers:
            raise UnknownClass(f"there is no class {str(label)!r}; the classes are {first_few(list(numbers))}")
        labels = np.array([numbers[str(label)]])
    subjects = None if records.subjects is None else records.subjects[rows]
    weights = None if records.weights is None else records.weights[rows]
    return Dataset(
        to_replace(inputs, records.dtype, records.shape), labels, records.class_names, records.ids[rows], subjects,
        columns=records.columns, weights=weights,
    )  # fmt: skip


def request_to_add(fitted: ModelState, given: Dataset, allow_copies: str | None) -> Request:
    """Look up records to learn: in the types, the order of columns and the classes that the model has."""
    records = fitted.records
    if not len(given):
        raise DataError("there are no records to add")
    ordered = in_order_of(records.columns, given)
    check_same_kind(records, ordered)
    there = given.ids[records.rows(given.ids) >= 0]
    if len(there):
        raise IdTaken(
            f"{len(there):,} of the record ids are in the model already, such as {there[0].item()!r}: add new records "
            "alone, and use replace to correct one that is there"
        )
    numbered = records.numbered_alike(ordered)
    inputs = matched(ordered.inputs, records.dtype, records.shape, learn=True)
    added = replace(numbered, inputs=inputs, columns=records.columns)
    fitted.blueprint.check_weights(added)
    named = added if records.columns is not None else replace(added, columns=ordered.columns)
    copies = copies_in(fitted, named, allow_copies)
    return Request(NOBODY, NOBODY, [], (), 0, REFUSE, shuffled(added, fitted.key), copies, allow_copies)


# What must not come back


class Returning(NamedTuple):
    """Which rows of a dataset bring back what was forgotten: its ids, or its values in records that are not here."""

    by_id: NDArray[np.bool_]
    by_values: NDArray[np.bool_]


def returning(before: ModelState, dataset: Dataset) -> Returning:
    """Find records that would bring back forgotten ids or forgotten values.

    A copy of a forgotten record that was here beside it when it was forgotten has stayed by that decision.
    """
    by_id = before.tombstones.knows(before.key, dataset.ids)
    by_values = before.tombstones.knows_values(before.key, dataset)
    columns = before.records.columns
    if dataset.shape == before.records.shape and None in (columns, dataset.columns):  # they may stand alike
        dataset = replace(dataset, columns=columns)
        by_values |= before.tombstones.knows_values(before.key, dataset)
    by_values &= ~by_id
    suspects = np.flatnonzero(by_values)
    if len(suspects):
        held, copies = before.records.held(), dataset.select(dataset.ids[suspects])
        digests = content_hashes(copies)
        for row, id_, label, digest in zip(suspects, copies.ids.tolist(), copies.labels, digests, strict=True):
            by_values[row] = (str(id_), copies.class_names[label], digest.tobytes()) not in held
    return Returning(by_id, by_values)


def copies_in(before: ModelState, dataset: Dataset, reason: str | None) -> int:
    """Count records with forgotten values under other ids; refuse forgotten ids, and copies without a reason."""
    found = returning(before, dataset)
    same, copies = int(found.by_id.sum()), int(found.by_values.sum())
    if same:
        raise AlreadyForgotten(
            f"{same:,} of the record ids were forgotten by this model and must not come back, whatever their records "
            "hold now: leave them out of the data"
        )
    if copies and (reason is None or not reason.strip()):
        raise CopyOfForgotten(
            f"{copies:,} of the records have exactly the values of forgotten or replaced ones, under other ids or as "
            "they were before: leave them out, or, if they are other people's, say why, by allow_copies (in the shell "
            "--allow-copies)"
        )
    return copies


def note_copies(copies: int, reason: str | None) -> tuple[Override, ...]:
    """Note the decision to let copies in, and warn at the line that called the model."""
    if not copies:
        return ()
    assert reason is not None
    warnings.warn(f"{copies:,} records with the values of forgotten ones are let in under other ids", stacklevel=4)
    return (Override(datetime.now(UTC).isoformat(timespec="seconds"), copies, reason),)
