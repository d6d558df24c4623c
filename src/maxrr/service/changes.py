"""Additions and corrections as requests: what they say as records, and how each is carried out once.

A batch of the workspace forgets, and knows its tickets. A change has none: its effect is there once because an id is
taken once, and a record is not replaced by itself. The receipt of one that a killed worker had committed is found among
those that came after the request was begun.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.errors import IdTaken, NoChange, OtherShape
from maxrr.progress import Progress
from maxrr.service.states import ADD, RECTIFY
from maxrr.unlearning import MaxRR, Receipt
from maxrr.unlearning.record_kind import RecordKind
from maxrr.workspace import Workspace


def arguments(model: MaxRR, kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `MaxRR.plan` takes for a request of this kind, but the policy.

    Raises
    ------
    maxrr.errors.DataError
        What it brings does not fit the records of the model.
    """
    if kind == ADD:
        return {"add": newcomers(model.kind_, body)}
    if kind == RECTIFY:
        return {"ids": body["id"], "inputs": records_of(model.kind_, [body["record"]])[0], "label": body["label"]}
    return {"ids": body.get("ids"), "subjects": body.get("subjects")}


def records_of(kind: RecordKind, given: Any) -> NDArray[Any]:
    """Return records that came as nested lists of numbers.

    Raises
    ------
    maxrr.errors.OtherShape
        They are not like those of the model.
    """
    if kind.dtype.names is not None:
        raise OtherShape("the records of this model have several inputs: use the shell or Python")
    try:
        records = np.asarray(given, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        records = np.empty(0)
    with np.errstate(all="ignore"):
        held = records.astype(kind.dtype)
    if records.shape[1:] != kind.shape or (kind.dtype.kind != "f" and (held != records).any()):
        raise OtherShape(f"the records of this model are {kind}: send a list of such lists of numbers that these hold")
    return held


def newcomers(kind: RecordKind, body: Mapping[str, Any]) -> Dataset:
    """Return the records to add."""
    names = {name: place for place, name in enumerate(dict.fromkeys(map(str, body["labels"])))}
    labels = np.array([names[str(label)] for label in body["labels"]])
    return kind.conform(Dataset(records_of(kind, body["records"]), labels, (*names,), body["ids"], body["subjects"]))


def carry_out(
    workspace: Workspace, kind: str, body: Mapping[str, Any], policy: str, begun: int, progress: Progress
) -> Receipt:  # fmt: skip
    """Carry out an addition or a correction, or find the receipt of it; `begun` is how many there were before."""
    model = workspace.model
    asked = arguments(model, kind, body)
    try:
        if kind == ADD:
            return model.add(asked["add"], progress=progress)
        return model.replace(asked["ids"], asked["inputs"], asked["label"], core_policy=policy, progress=progress)
    except (IdTaken, NoChange):
        for number in range(begun + 1, workspace.status().requests + 1):
            receipt = workspace.receipt(number).receipt
            if kind == ADD and receipt.added == len(body["ids"]):
                return receipt
            if kind == RECTIFY and model.on_receipt(receipt, [body["id"]]).replaced[0]:
                return receipt
        raise
