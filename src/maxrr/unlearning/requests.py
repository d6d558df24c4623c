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
from maxrr.data.checks import check_identifiers, listed
from maxrr.data.tables import in_order_of
from maxrr.errors import (
    AlreadyForgotten,
    CopyOfForgotten,
    DataError,
    IdTaken,
    NoChange,
    NoSubjects,
    UnknownClass,
    UnknownSubject,
)
from maxrr.unlearning.actions import KEEP, REFUSE, RETRAIN, TECHNIQUE
from maxrr.unlearning.classes import Classes, with_arriving
from maxrr.unlearning.facts import Override
from maxrr.unlearning.given_records import Ids, Inputs, to_learn, to_replace
from maxrr.unlearning.records import Ints, shuffled
from maxrr.unlearning.state import Fitted, forgotten_people
from maxrr.unlearning.tombstones import REPLACED, Tombstones, content_hashes, id_hmac, subject_hmac

Technique = Callable[[nn.Module, Dataset, Dataset], nn.Module]
"""A function that gets the extractor, the core records that stay and those to forget, and returns another extractor."""


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
    classes : Classes or None
        The classes of the model once these records are there, by whose numbers they are labelled; None where they are
        those that it has.
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
    classes: Classes | None = None
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
        """The policy's name."""
        return self.core_policy if isinstance(self.core_policy, str) else TECHNIQUE


def check_policy(core_policy: str | Technique) -> None:
    """Refuse a word that means nothing."""
    if not callable(core_policy) and core_policy not in (REFUSE, RETRAIN, KEEP):
        raise ValueError(
            f"core_policy is '{REFUSE}', '{RETRAIN}', '{KEEP}' or a function, not {core_policy!r}"
        )  # fmt: skip


def look_up(fitted: Fitted, ids: Ids | None, subjects: Ids | None, core_policy: str | Technique) -> Request:
    """Rows and kinds of the records that a request names."""
    check_policy(core_policy)
    if (ids is None) == (subjects is None):
        raise ValueError("a request names records by ids, or people by subjects: one of the two")
    before: tuple[bytes, ...] = ()
    if subjects is not None:
        people = np.unique(check_identifiers(listed(subjects), "subject ids"))
        before = people_before(fitted, people)
        ids = fitted.records.ids[fitted.records.of_subjects(people)]
    wanted = check_identifiers(listed(ids), "record ids")
    if len(wanted) > 1:
        wanted = np.unique(wanted)
    found = fitted.records.rows(wanted)
    missing, rows = wanted[found < 0], found[found >= 0]
    if len(rows) > 1:
        rows = np.sort(rows)
    unknown: list[Any] = []
    if len(missing):
        gone = fitted.tombstones.knows(fitted.key, missing)
        unknown, before = missing[~gone].tolist(), tuple(id_hmac(fitted.key, id_) for id_ in missing[gone].tolist())
    left = 0 if not fitted.left else sum(
        bool({id_hmac(fitted.key, id_), id_hmac(fitted.key, id_, REPLACED)} & fitted.left) for id_ in wanted.tolist()
    )  # fmt: skip
    return Request(rows, rows[fitted.core[rows]], unknown, before, left, core_policy)


def people_before(fitted: Fitted, people: NDArray[Any]) -> tuple[bytes, ...]:
    """The HMACs of those people who were forgotten before. One whom no record is or was about is refused."""
    records = fitted.records
    if records.subjects is None:
        raise NoSubjects("the records do not say whom they are about: they have no subject ids")
    without = np.setdiff1d(people, records.subjects[records.of_subjects(people)])
    gone = forgotten_people(fitted, without.tolist())
    unknown = without[~gone].tolist()
    if unknown:
        some, more = ", ".join(map(repr, unknown[:5])), f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        alone = "" if len(unknown) == len(people) else ". Nothing else of the request is done: leave them out"
        raise UnknownSubject(f"no record is about {some}{more} (records for testing are in no model){alone}")
    return tuple(bytes.fromhex(subject_hmac(fitted.key, person)) for person in without.tolist())


def look_up_for_replacing(
    fitted: Fitted, id_: int | str, inputs: Inputs, label: int | str | None, core_policy: str | Technique,
    allow_copies: str | None,
) -> Request:  # fmt: skip
    """The request to forget one record, with the one that takes its place; without that if there is no such record."""
    request = look_up(fitted, [id_], None, core_policy)
    if request.already_forgotten:
        raise AlreadyForgotten(f"the record {np.asarray(id_).item()!r} was forgotten: there is nothing to replace")
    if not len(request.rows):
        return request
    added = rectified(fitted, request, inputs, label)
    same = np.array_equal(added.record_hashes(), fitted.records.hashes[request.rows])
    if same and not (request.left_in_extractor and request.policy == RETRAIN):  # which rids it of the old version
        raise NoChange(f"the record {np.asarray(id_).item()!r} is just so already: there is nothing to replace")
    copies = copies_in_place(fitted, added, allow_copies)
    return replace(request, added=added, copies=copies, allow_copies=allow_copies)


def rectified(fitted: Fitted, request: Request, inputs: Inputs, label: int | str | None) -> Dataset:
    """The record that takes the place of the requested one."""
    records, rows = fitted.records, request.rows
    content = to_replace(inputs, records.dtype, records.shape)
    labels = records.labels[rows]
    if label is not None:
        present = records.present
        found = present[fitted.labels[present] == label] if np.ndim(label) == 0 else present[:0]
        if not len(found) and isinstance(label, str):  # by its name, as `predict` gives it for a Dataset
            found = present[np.array(records.class_names)[present] == label]
        if not len(found):
            known = ", ".join(map(repr, fitted.labels[present].tolist()))
            raise UnknownClass(f"there is no class {label!r}; the classes are {known}")
        labels = found[:1]
    subjects = None if records.subjects is None else records.subjects[rows]
    weights = None if records.weights is None else records.weights[rows]
    return Dataset(
        content, labels, records.class_names, records.ids[rows], subjects, columns=records.columns, weights=weights,
    )  # fmt: skip


def look_up_for_adding(fitted: Fitted, given: Dataset, allow_copies: str | None) -> Request:
    """The request to learn more records, as the model has its own: in their types, order of columns, and classes."""
    records = fitted.records
    check_addable(fitted, given)
    ordered = in_order_of(records.columns, given)
    names = ordered.class_names
    used = [names[label] for label in np.unique(ordered.labels).tolist()]
    present = records.present.tolist()
    classes = with_arriving(records.class_names, fitted.labels, present, names, used, by_place=fitted.by_place)
    number = {name: place for place, name in enumerate(classes.names)}
    labels = np.array([number.get(name, -1) for name in names], dtype=np.int64)[ordered.labels]
    added = Dataset(
        to_learn(ordered.inputs, records.dtype, records.shape), labels, classes.names, ordered.ids, ordered.subjects,
        columns=records.columns, weights=ordered.weights,
    )  # fmt: skip
    fitted.blueprint.check_weights(added)
    named = added if records.columns is not None else replace(added, columns=ordered.columns)
    copies = copies_in(fitted, named, allow_copies)
    nobody = np.empty(0, dtype=np.int64)
    return Request(
        nobody, nobody, [], (), 0, REFUSE, shuffled(added, fitted.key),
        None if classes.names == records.class_names else classes, copies, allow_copies,
    )  # fmt: skip


def check_addable(fitted: Fitted, given: Dataset) -> None:
    """Refuse records that are not of the kind that the model has, or that it has."""
    records = fitted.records
    if not len(given):
        raise DataError("there are no records to add")
    own, known_columns = given.columns, records.columns
    if own is not None and known_columns is not None and set(own) != set(known_columns):
        other = sorted(set(own) ^ set(known_columns))
        raise DataError(
            f"the new records have other columns than the model's, such as {other[0]!r}: bring the same ones, in any "
            "order"
        )
    both = ("subjects", given.subjects, records.subjects), ("weights", given.weights, records.weights)
    for what, new, known in both:
        if (new is None) != (known is None):
            have, lack = ("new", "the model's") if known is None else ("model's", "the new ones")
            raise DataError(f"the {have} records have {what}, and {lack} do not: give {what} for all or for none")
    for what, new, known in (("ids", given.ids, records.ids), ("subject ids", given.subjects, records.subjects)):
        if new is not None and known is not None and new.dtype.kind != known.dtype.kind:
            kinds = {"i": "integers", "U": "strings"}
            raise DataError(
                f"the {what} of the model are {kinds[known.dtype.kind]}, and the new ones {kinds[new.dtype.kind]}: "
                "use one kind"
            )
    there = given.ids[records.rows(given.ids) >= 0]
    if len(there):
        raise IdTaken(
            f"{len(there):,} of the record ids are in the model already, such as {there[0].item()!r}: add new records "
            "alone, and use replace to correct one that is there"
        )


# What must not come back


class Returning(NamedTuple):
    """Which rows of a dataset bring back what was forgotten: its ids, or its values in records that are not here."""

    by_id: NDArray[np.bool_]
    by_values: NDArray[np.bool_]


def returning(before: Fitted, dataset: Dataset) -> Returning:
    """Which of these records bring back what a model has forgotten.

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


def copies_in(before: Fitted, dataset: Dataset, reason: str | None) -> int:
    """How many records have forgotten values under other ids. Forgotten ids and copies without a reason are refused."""
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


def copies_in_place(before: Fitted, added: Dataset, reason: str | None) -> int:
    """The same of records that take the place of others: one may become again what it was before it was replaced."""
    own = {id_hmac(before.key, id_, REPLACED) for id_ in added.ids.tolist()}
    others = before.tombstones
    if any(others.of(id_) for id_ in own):
        others = Tombstones(stone for stone in others if stone.id not in own)
    return copies_in(replace(before, tombstones=others), added, reason)


def let_in(copies: int, reason: str | None) -> tuple[Override, ...]:
    """What a model remembers of copies that were let in. The warning points at the line that called the model."""
    if not copies:
        return ()
    assert reason is not None
    warnings.warn(f"{copies:,} records with the values of forgotten ones are let in under other ids", stacklevel=4)
    return (Override(datetime.now(UTC).isoformat(timespec="seconds"), copies, reason),)
