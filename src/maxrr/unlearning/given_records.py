"""What callers give, as records of the kind that a model was fitted on: arrays, data frames, names of classes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxrr.data import Dataset
from maxrr.data.checks import check_dense, check_identifiers
from maxrr.data.fields import Several, are_several, described, fields_of, packed
from maxrr.data.labels import as_classes
from maxrr.errors import DataError, MissingColumn, OtherShape, UnknownClass
from maxrr.plain_text import first_few
from maxrr.svm.calibration import best_classes
from maxrr.unlearning.state import ModelState

Ids = int | str | Sequence[int | str] | NDArray[Any]
"""Record ids or subject ids, integers or strings: one, or a list or array of them."""

Inputs = ArrayLike | Several
"""What the network takes, one record per row: pixels, token ids, rows of a table. Several inputs are a dictionary of
arrays, by the names of the network's arguments, or a tuple of arrays, in their order."""

Labels = ArrayLike
"""The class of each record: integers, booleans or strings."""

Kind = np.dtype[Any]
Shape = tuple[int, ...]

NUMBERS = "biufV"  # kinds of arrays that hold numbers; V where there are several inputs
KINDS = {
    "pixels": "pixels of 0 to 255 in uint8, which it divides by 255", "f": "floats, which it takes as they are",
    "i": "integers, which it takes as they are", "b": "booleans, which it takes as they are",
}  # fmt: skip


def as_dataset(
    X: Dataset | Inputs, y: Labels | None, ids: Ids | None, subjects: Ids | None, weights: ArrayLike | None = None
) -> tuple[Dataset, str]:
    """Make a Dataset of what the caller gave, and return the type of the caller's labels with it."""
    if isinstance(X, Dataset):
        if not all(given is None for given in (y, ids, subjects, weights)):
            raise ValueError("a Dataset has its own y, ids, subjects and sample_weight: leave these out")
        return X, "U"
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
    return Dataset(inputs, codes.astype(np.int64), known, names, whose, columns=columns, weights=own), labels.dtype.kind


def not_of_numbers(frame: Any) -> str:
    """Say which columns of a frame hold no numbers, and what to do about them."""
    wrong = [str(name) for name in frame.columns if np.asarray(frame[name]).dtype.kind not in NUMBERS]
    return (
        f"the columns {first_few(wrong)} are not of numbers, or not all of one kind: make a Dataset of the frame, with "
        "maxrr.data.from_frame(frame, label=…, id=…, encoding=…), and fit that. Or leave out what is no input"
    )


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of a frame's columns; None where they are not all strings."""
    names = tuple(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


# Numbers as the model has them


def to_replace(given: Inputs, kind: Kind, shape: Shape) -> NDArray[Any]:
    """Make an array of one record, in the model's type if that holds its numbers unchanged."""
    check_dense(given)
    if isinstance(given, Mapping):
        given = {name: np.asarray(part)[None] for name, part in given.items()}
    elif kind.names is not None and isinstance(given, tuple):
        given = tuple(np.asarray(part)[None] for part in given)
    else:
        given = np.asarray(given)[None]
    return matched(given, kind, shape, learn=True)


def matched(given: Inputs, kind: Kind, shape: Shape, *, learn: bool) -> NDArray[Any]:
    """Convert records to the model's shape and type, each input by itself; refuse numbers that would change.

    Those to predict, and not to `learn`, may be floats of any length.
    """
    check_dense(given)
    if kind.names is None:
        if isinstance(given, Mapping):
            raise DataError(f"the model's network takes one input, {described(kind, shape)}: bring one array")
        return converted(np.asarray(given), kind, shape, "", learn=learn)
    array = packed(given) if are_several(given) else np.asarray(given)
    found = {} if array.dtype.names is None else {name: array[name] for name in array.dtype.names}
    if set(found) != set(kind.names):
        raise DataError(
            f"the model's network takes {described(kind, ())}: bring a dictionary of arrays with these names, or a "
            f"tuple where they are numbers, not {first_few(list(found)) or 'one array'}"
        )
    parts = {name: converted(found[name], *fields_of(kind)[name], f" {name!r}", learn=learn) for name in kind.names}
    return array if all(part is found[name] for name, part in parts.items()) else packed(parts)


def converted(part: NDArray[Any], kind: Kind, shape: Shape, name: str, *, learn: bool) -> NDArray[Any]:
    """Convert one input to the model's shape and type; for predictions floats may have any length.

    Whole numbers may be learned as floats; bytes are pixels, which networks divide by 255, and never anything else.
    """
    if part.shape[1:] != shape:
        if part.shape == shape:
            raise OtherShape(f"this is one record{name} of shape {shape}: add an axis in front, as in record[None]")
        raise OtherShape(f"the records{name} have shape {part.shape[1:]}, but the model was fitted on {shape}")
    whole = learn and kind.kind == "f" and part.dtype.kind in "biu" and part.dtype != np.uint8
    if word(part.dtype) != word(kind) and not whole:
        raise OtherShape(f"the records{name} are {part.dtype}, and the model has {KINDS[word(kind)]}: bring the same")
    if not learn and (part.dtype == kind or kind.kind == "f"):
        return part
    with np.errstate(over="ignore", invalid="ignore"):
        found = part.astype(kind)
        back = found.astype(part.dtype) if kind.kind == "f" else found  # because == rounds
    if not np.array_equal(back, part, equal_nan=kind.kind == "f"):
        raise DataError(
            f"the records{name} are {part.dtype}, and the model holds {kind}, which would change their numbers. "
            f"Convert them yourself, with astype({kind.name!r}), or fit again"
        )
    return found


def word(kind: Kind) -> str:
    """Name what networks make of numbers of a type: "pixels", or the kind of the type."""
    return "pixels" if kind == np.uint8 else kind.kind


# Predicting


def unlabelled(array: NDArray[Any]) -> Dataset:
    """Make a Dataset of records whose classes and ids are not known."""
    return Dataset(array, np.zeros(len(array), dtype=np.int64), ("unknown",), np.arange(len(array)))


def decisions(fitted: ModelState, X: Dataset | Inputs) -> NDArray[np.float64]:
    """The scores of records that are of the kind that a model was fitted on."""
    known = fitted.records
    names = column_names(X) if not isinstance(X, Dataset) else X.columns
    if names is not None and known.columns is not None and names != known.columns:
        missing = [name for name in known.columns if name not in names]
        strange = [name for name in names if name not in known.columns]
        lack = f"the records have no column {first_few(missing)}" if missing else ""
        more = f"the model was fitted without a column {first_few(strange)}" if strange else ""
        wrong = ", and ".join(filter(None, [lack, more])) or "the columns stand in another order"
        raise MissingColumn(f"{wrong}: bring those that the model was fitted on, in the same order")
    array = matched(X.inputs if isinstance(X, Dataset) else X, known.dtype, known.shape, learn=False)
    if not len(array):
        raise DataError("there are no records here: bring one or more")
    if not isinstance(X, Dataset):
        records = unlabelled(array)
    else:
        records = X if array.dtype == X.inputs.dtype else replace(X, inputs=array)
    return np.asarray(fitted.heads.decision_function(fitted.blueprint.embed_to_predict(fitted.extractor, records)))


def classified_rightly(
    fitted: ModelState, X: Dataset | Inputs, y: Labels | None
) -> tuple[NDArray[np.str_], NDArray[np.bool_]]:
    """Return the true class of each record by name, and whether the model classifies the record rightly."""
    best = best_classes(decisions(fitted, X))
    if isinstance(X, Dataset):
        if y is not None:
            raise ValueError("a Dataset has its own labels: leave y out")
        truth = np.array(X.class_names)[X.labels]
    elif y is None or np.asarray(y).shape != best.shape:
        raise DataError(f"there are {len(best)} records: give one label per record as y, in a list or an array")
    else:
        truth = np.array([str(label) for label in as_classes(y).tolist()])
    names = np.array(fitted.head_classes)
    if len(truth) and not np.isin(truth, names).any():
        raise UnknownClass(
            f"the records are of classes such as {truth[0].item()!r}, and the model's are {first_few(names.tolist())}: "
            "give labels as in classes_"
        )
    return truth, names[best] == truth
