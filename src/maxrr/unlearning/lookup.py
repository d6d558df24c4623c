"""From what callers name to rows: requests by id or subject, and records that take the place of others."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.data.checks import check_identifiers, listed
from maxrr.errors import DataError, NotHere
from maxrr.unlearning.aliases import Ids, Inputs
from maxrr.unlearning.matching import to_replace
from maxrr.unlearning.requests import RETAINED, RETRAIN, Request, Technique, check_policy
from maxrr.unlearning.returning import copies_in_place
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import REPLACED, id_hmac


def look_up(fitted: Fitted, ids: Ids | None, subjects: Ids | None, core_policy: str | Technique, refit: str) -> Request:
    """Rows and kinds of the records that a request names."""
    check_policy(core_policy, refit)
    if (ids is None) == (subjects is None):
        raise ValueError("a request names records by ids, or people by subjects: one of the two")
    if subjects is not None:
        ids = fitted.records.ids[fitted.records.of_subjects(np.unique(ids_of(subjects, "subject ids")))]
    wanted = np.unique(ids_of(ids, "record ids"))
    found = fitted.records.rows(wanted)
    missing, rows = wanted[found < 0], np.sort(found[found >= 0])
    gone = fitted.tombstones.knows(fitted.key, missing)
    before = tuple(id_hmac(fitted.key, id_) for id_ in missing[gone].tolist())
    left = 0 if not fitted.left else sum(
        bool({id_hmac(fitted.key, id_), id_hmac(fitted.key, id_, REPLACED)} & fitted.left) for id_ in wanted.tolist()
    )  # fmt: skip
    return Request(rows, rows[fitted.core[rows]], missing[~gone].tolist(), before, left, core_policy, refit)


def ids_of(given: Ids | None, what: str) -> NDArray[Any]:
    """Ids as a request may give them: one or many, also in a column of objects."""
    return check_identifiers(listed(given), what)


def look_up_for_replacing(
    fitted: Fitted, id_: int | str, inputs: Inputs, label: int | str | None, core_policy: str | Technique,
    allow_copies: str | None,
) -> Request:  # fmt: skip
    """The request to forget one record, with the one that takes its place; without that if there is no such record."""
    request = look_up(fitted, [id_], None, core_policy, RETAINED)
    if request.already_forgotten:
        raise NotHere(f"the record {np.asarray(id_).item()!r} was forgotten: there is nothing to replace")
    if not len(request.rows):
        return request
    added = rectified(fitted, request, inputs, label)
    same = np.array_equal(added.record_hashes(), fitted.records.hashes[request.rows])
    if same and not (request.left_in_extractor and request.policy == RETRAIN):  # which rids it of the old version
        raise DataError(f"the record {np.asarray(id_).item()!r} is just so already: there is nothing to replace")
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
