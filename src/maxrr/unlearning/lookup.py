"""From what callers name to rows: requests by id or subject, records that take the place of others, or are added."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.data.checks import check_identifiers, listed
from maxrr.data.hashes import value_hashes
from maxrr.data.table import in_order_of
from maxrr.errors import DataError, NotHere
from maxrr.unlearning.aliases import Ids, Inputs
from maxrr.unlearning.classes import with_arriving
from maxrr.unlearning.matching import to_learn, to_replace
from maxrr.unlearning.records import shuffled
from maxrr.unlearning.requests import REFUSE, RETRAIN, Request, Technique, check_policy
from maxrr.unlearning.returning import copies_in, copies_in_place
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import REPLACED, Forgotten, Stones, id_hmac, subject_hmac
from maxrr.unlearning.trained_elsewhere import ELSEWHERE


def look_up(fitted: Fitted, ids: Ids | None, subjects: Ids | None, core_policy: str | Technique) -> Request:
    """Rows and kinds of the records that a request names."""
    check_policy(core_policy)
    if (ids is None) == (subjects is None):
        raise ValueError("a request names records by ids, or people by subjects: one of the two")
    if subjects is not None:
        people = np.unique(ids_of(subjects, "subject ids"))
        check_people(fitted, people)
        ids = fitted.records.ids[fitted.records.of_subjects(people)]
    wanted = ids_of(ids, "record ids")
    if len(wanted) > 1:
        wanted = np.unique(wanted)
    found = fitted.records.rows(wanted)
    missing, rows = wanted[found < 0], found[found >= 0]
    if len(rows) > 1:
        rows = np.sort(rows)
    unknown: list[Any] = []
    before: tuple[bytes, ...] = ()
    if len(missing):
        gone = fitted.tombstones.knows(fitted.key, missing)
        unknown, before = missing[~gone].tolist(), tuple(id_hmac(fitted.key, id_) for id_ in missing[gone].tolist())
    left = 0 if not fitted.left else sum(
        bool({id_hmac(fitted.key, id_), id_hmac(fitted.key, id_, REPLACED)} & fitted.left) for id_ in wanted.tolist()
    )  # fmt: skip
    return Request(rows, rows[fitted.core[rows]], unknown, before, left, core_policy)


def check_people(fitted: Fitted, people: NDArray[Any]) -> None:
    """Refuse a request for somebody whom no record is about, and say since when."""
    records = fitted.records
    if records.subjects is None:
        raise DataError("the records do not say whom they are about: they have no subject ids")
    without = np.setdiff1d(people, records.subjects[records.of_subjects(people)]).tolist()
    gone = {person: fitted.people.get(subject_hmac(fitted.key, person)) for person in without}
    said = [
        f"no record is about {person!r} (records for testing are in no model)"
        if then is None
        else f"{person!r} was forgotten on {then.time[:10]} ({answered(then)})"
        for person, then in gone.items()
    ]
    if not said:
        return
    left = "; records that remain in the extractor are asked for by their ids" if fitted.left else ""
    alone = "" if len(without) == len(people) else ". Nothing else of the request is done: leave them out"
    more = f" and {len(said) - 5} more" if len(said) > 5 else ""
    raise NotHere(f"{', '.join(said[:5])}{more}{left}{alone}")


def answered(then: Forgotten) -> str:
    """By which request a person was forgotten."""
    return f"receipt {then.number}" if then.number else "before this workspace was made"


def ids_of(given: Ids | None, what: str) -> NDArray[Any]:
    """Ids as a request may give them: one or many, also in a column of objects."""
    return check_identifiers(listed(given), what)


def look_up_for_replacing(
    fitted: Fitted, id_: int | str, inputs: Inputs, label: int | str | None, core_policy: str | Technique,
    allow_copies: str | None,
) -> Request:  # fmt: skip
    """The request to forget one record, with the one that takes its place; without that if there is no such record."""
    request = look_up(fitted, [id_], None, core_policy)
    if request.already_forgotten:
        raise NotHere(f"the record {np.asarray(id_).item()!r} was forgotten: there is nothing to replace")
    if not len(request.rows):
        return request
    added = rectified(fitted, request, inputs, label)
    same = np.array_equal(added.record_hashes(), fitted.records.hashes[request.rows])
    if same and not (request.left_in_extractor and request.policy == RETRAIN):  # which rids it of the old version
        raise DataError(f"the record {np.asarray(id_).item()!r} is just so already: there is nothing to replace")
    check_not_seen(fitted, added, request.rows)
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
            raise DataError(f"there is no class {label!r}; the classes are {known}")
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
    check_not_seen(fitted, named, records.present[:0])
    copies = copies_in(fitted, named, allow_copies)
    nobody = np.empty(0, dtype=np.int64)
    return Request(
        nobody, nobody, [], (), 0, REFUSE, shuffled(added, fitted.key),
        None if classes.names == records.class_names else classes, copies, allow_copies,
    )  # fmt: skip


def check_not_seen(fitted: Fitted, given: Dataset, instead_of: NDArray[np.int64]) -> None:
    """Refuse new values that a frozen network may have seen, as far as its owner has said what it saw.

    It may have seen records that were forgotten or replaced since. The values of a record whose place is taken are no
    new ones: the record stays known as one that the network saw.
    """
    if not fitted.blueprint.frozen or fitted.blueprint.core is not None:
        return
    if fitted.choice.details.get(ELSEWHERE) != 0:
        raise DataError(
            "the extractor was pretrained on records that Frozen(pretrained_on=…) named and that are not in the model, "
            "which does not keep their list: nobody could tell whether new records are among them. Fit again with all "
            "records"
        )
    records, tombstones = fitted.records, fitted.tombstones
    core = fitted.core.copy()
    core[instead_of] = False
    known = {content.tobytes() for content in records.contents[core]}
    same = np.array([content.tobytes() in known for content in value_hashes(given.inputs)], dtype=bool)
    own = {id_hmac(fitted.key, id_, REPLACED) for id_ in records.ids[instead_of].tolist()}
    gone = [stone for id_ in fitted.left - own for stone in tombstones.stones.of(id_)]
    same |= replace(tombstones, stones=Stones(gone)).knows_values(fitted.key, given, records.columns)
    if same.any():
        raise DataError(
            f"the record {given.ids[same][0].item()!r} has the values of one that the extractor was "
            "pretrained on: it could not be forgotten exactly. Fit again with all records"
        )


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
    for what, new, known in (("ids", given.ids, records.ids), ("subject ids", given.subjects, records.subjects)):
        if (new is None) != (known is None):
            have, lack = ("new", "the model's") if known is None else ("model's", "the new ones")
            raise DataError(
                f"the {have} records say whom they are about, and {lack} do not: give subjects for all or for none"
            )
        if new is not None and known is not None and new.dtype.kind != known.dtype.kind:
            kinds = {"i": "integers", "U": "strings"}
            raise DataError(
                f"the {what} of the model are {kinds[known.dtype.kind]}, and the new ones {kinds[new.dtype.kind]}: "
                "use one kind"
            )
    if (given.weights is None) != (records.weights is None):
        have, lack = ("new", "the model's") if records.weights is None else ("model's", "the new ones")
        raise DataError(f"the {have} records have weights, and {lack} do not: give weights for all or for none")
    there = given.ids[records.rows(given.ids) >= 0]
    if len(there):
        raise DataError(
            f"{len(there):,} of the record ids are in the model already, such as {there[0].item()!r}: add new records "
            "alone, and use replace to correct one that is there"
        )
