"""What callers give, as records: arrays, data frames, and what they call the classes."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxrr.data import Dataset
from maxrr.data.checks import check_dense, check_identifiers
from maxrr.data.fields import are_several, packed
from maxrr.data.labels import as_classes
from maxrr.errors import DataError
from maxrr.plain_text import first_few
from maxrr.unlearning.aliases import Ids, Inputs, Labels
from maxrr.unlearning.state import Fitted

NUMBERS = "biufV"  # kinds of arrays that hold numbers; V where there are several inputs


def as_dataset(
    X: Dataset | Inputs, y: Labels | None, ids: Ids | None, subjects: Ids | None, weights: ArrayLike | None = None
) -> tuple[Dataset, NDArray[Any] | None]:
    """Records, and what the caller calls their classes; None for those of a Dataset, known by their places."""
    if isinstance(X, Dataset):
        if not all(given is None for given in (y, ids, subjects, weights)):
            raise ValueError(
                "a Dataset has its own labels, ids, subjects and weights: leave y, ids, subjects and sample_weight out"
            )
        return X, None
    if y is None:
        raise ValueError("an array of records needs their labels y, or pass a Dataset")
    check_dense(X)
    inputs = packed(X) if are_several(X) else np.asanyarray(X)  # a memory map stays one
    if inputs.dtype.kind not in NUMBERS and hasattr(X, "columns"):
        raise DataError(not_of_numbers(X))
    labels, codes = np.unique(as_classes(y), return_inverse=True)
    names = np.arange(len(inputs)) if ids is None else check_identifiers(ids, "record ids")
    whose = None if subjects is None else check_identifiers(subjects, "subject ids")
    known = tuple(map(str, labels.tolist()))
    columns, own = column_names(X), None if weights is None else np.asarray(weights)
    return Dataset(inputs, codes.astype(np.int64), known, names, whose, columns=columns, weights=own), labels


def not_of_numbers(frame: Any) -> str:
    """Which column of a frame holds no numbers, and what to do about it."""
    wrong = (str(name) for name in frame.columns if np.asarray(frame[name]).dtype.kind not in NUMBERS)
    name = next(wrong, None)
    which = "the columns are of several kinds" if name is None else f"the column {name!r} is not of numbers"
    encoding = "" if name is None else f", encoding=Encoding({{{name!r}: Categories([…])}})"
    return (
        f"{which}: make a Dataset of the frame, with maxrr.data.from_frame(frame, label=…, id=…{encoding}), and fit "
        "that. Or leave out what is no input"
    )


def to_add(
    fitted: Fitted, X: Dataset | Inputs, y: Labels | None, ids: Ids | None, subjects: Ids | None,
    weights: ArrayLike | None,
) -> Dataset:  # fmt: skip
    """Records for a model that has others, with the names of its classes for those that it knows."""
    if not isinstance(X, Dataset) and ids is None:
        raise ValueError("new records need ids of their own, which no other record has: give ids=…, or a Dataset")
    dataset, labels = as_dataset(X, y, ids, subjects, weights)
    if labels is None or labels.dtype.kind == "U":
        return dataset
    if (labels.dtype.kind == "b") != (fitted.labels.dtype.kind == "b"):  # Python takes True for 1
        raise DataError(
            f"y has labels such as {labels[0].item()!r}, and the model's classes are called "
            f"{first_few(fitted.labels.tolist())}: give labels of the kind that fit was given"
        )
    present = fitted.records.present.tolist()
    names = {fitted.labels[number].item(): fitted.records.class_names[number] for number in present}
    unknown = [label for label in labels.tolist() if label not in names]
    if unknown and fitted.by_place:
        raise DataError(
            f"there is no class {unknown[0]!r}: labels are places in the model's class names. Name a new class by a "
            "string, or bring a Dataset"
        )
    return replace(dataset, class_names=tuple(names.get(label, str(label)) for label in labels.tolist()))


def column_names(X: Any) -> tuple[str, ...] | None:
    """What a data frame calls its columns, if it calls them by words."""
    names = tuple(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def labels_to_score(y: Labels | None, records: int) -> NDArray[Any]:
    """The classes that a caller says records have, one for each."""
    shape = np.asarray(y).shape
    if y is None or shape != (records,):
        raise DataError(f"y has shape {shape}, and there are {records} records: give one label per record")
    return as_classes(y)


def unlabelled(array: NDArray[Any]) -> Dataset:
    """Records of which nothing else is known."""
    return Dataset(array, np.zeros(len(array), dtype=np.int64), ("unknown",), np.arange(len(array)))
