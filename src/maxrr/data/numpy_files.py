"""Records in files of NumPy: arrays in an .npz file, or an .npy file beside a table that says what its rows are."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.arrays import map_npy, names_in, read_npz
from maxrr.data.checks import check_blanks, check_inputs, named
from maxrr.data.dataset import Dataset
from maxrr.data.fields import packed
from maxrr.data.labels import check_ids_from, made_ids
from maxrr.data.reading import Reading
from maxrr.data.tables import columns_in, others_of
from maxrr.data.train_test import Part, divide, pair
from maxrr.errors import DataError

CHANNELS = (1, 3, 4)
WHOLE = {"X", "y", "ids", "subjects", "weights", "class_names"}
OF_SIDES = ("x", "y", "ids", "subjects", "weights")
SIDES = {"class_names", *(f"{kind}_{side}" for kind in OF_SIDES for side in ("train", "test"))}


def read_archive(path: Path, reading: Reading, whole: bool = False) -> tuple[Dataset, Dataset]:
    """Training and test records from an .npz file, whose arrays say by their names what they are.

    Either x_train, y_train, x_test and y_test, with ids_train and ids_test, or X and y with ids, which are split by
    subject or id; subjects and weights, or subjects_train and so on, if wanted. Where there are no ids they are made
    by `ids_from`, as row numbers those of test after those of train. class_names may name the classes
    that integer labels count.

    Inputs of a network that takes several, or integers as they are, have a name each behind that of the array: X.tokens
    and X.mask, or x_train.tokens and so on.
    """
    names = names_in(path)
    one = any(stem_of(name) == "X" for name in names)
    sides = [""] if one else ["_train", "_test"]
    _check_names(path, names, one)
    given = f"ids{sides[0]}" in names
    with named(path):
        reading.check_no_columns()
        check_ids_from(given, reading.ids_from, " and ".join(f"ids{side}" for side in sides))
    arrays = read_npz(path, names)
    for name in names:
        if name.startswith(("ids", "subjects")):
            check_blanks(arrays[name], f"{path}: {name}")
    classes = arrays.get("class_names")
    if classes is not None and (classes.ndim != 1 or classes.dtype.kind not in "UT"):
        raise DataError(f"{path}: class_names must be a list of strings, not {classes.dtype} of shape {classes.shape}")
    inputs = [_inputs(path, arrays, "X" if one else f"x{side}", side) for side in sides]
    ids = [arrays[f"ids{side}"] for side in sides] if given else made_ids(inputs, reading.ids_from)
    parts = [
        Part(each, arrays[f"y{side}"], own, arrays.get(f"subjects{side}"), arrays.get(f"weights{side}"))
        for each, own, side in zip(inputs, ids, sides, strict=True)
    ]
    train, test = divide(parts[0], str(path), reading.split_by) if one else parts
    return pair(train, test, str(path), None if classes is None else tuple(map(str, classes.tolist())), whole=whole)


def stem_of(name: str) -> str:
    """Return the records that an array is an input of: X for X.mask. Other names stay."""
    stem, dot, _ = name.partition(".")
    return stem if dot and stem in ("X", "x_train", "x_test") else name


def inputs_in(names: Collection[str], x: str) -> dict[str, str]:
    """Find the arrays that are each one input of the records x, by the name of the input."""
    return {name.removeprefix(f"{x}."): name for name in names if name != x and stem_of(name) == x}


def _check_names(path: Path, names: list[str], one: bool) -> None:
    """Refuse arrays that are missing, and those whose names mean nothing: they may be misspelt."""
    needed = {"X", "y"} if one else {"x_train", "y_train", "x_test", "y_test"}
    known = WHOLE if one else SIDES
    there = {stem_of(name) for name in names}
    missing = needed - there if needed & there else {"X", "y"}
    problems = [f"lacks {' and '.join(sorted(missing))}"] if missing else []
    problems += [f"has {name}, which means nothing here" for name in sorted(there - known)[:5]]
    problems += [f"has both {x} and {several[0]}" for x in names if (several := [*inputs_in(names, x).values()])]
    for kind in ("ids", "subjects", "weights"):
        if len({f"{kind}_train", f"{kind}_test"} & set(names)) == 1:
            problems.append(f"has {kind} for one side of train and test only")
    if problems:
        wanted = "X and y, or x_train, y_train, x_test and y_test"
        raise DataError(
            f"{path}: {'; '.join(problems)}. It must hold {wanted}, and may hold ids, subjects, "
            "weights and class_names: name the arrays so, as in np.savez(file, X=features, y=labels, ids=ids)"
        )


def _inputs(path: Path, arrays: dict[str, NDArray[Any]], x: str, side: str) -> NDArray[Any]:
    """The records of one side, if there is one label, id, subject and weight per record."""
    inputs = as_inputs(arrays[x], f"{path}: {x}") if x in arrays else several_inputs(arrays, x, path)
    for name in (f"y{side}", f"ids{side}", f"subjects{side}", f"weights{side}"):
        if name in arrays and arrays[name].shape != (len(inputs),):
            shape, count = arrays[name].shape, len(inputs)
            raise DataError(f"{path}: {name} has shape {shape}, but {x} has {count} records: one {name} per record")
    return inputs


def several_inputs(arrays: dict[str, NDArray[Any]], x: str, path: Path) -> NDArray[Any]:
    """Read inputs that have a name each, unchanged."""
    inputs = {name: arrays[array] for name, array in inputs_in(arrays, x).items()}
    with named(f"{path}: {x}"):
        return packed({name: part.astype(part.dtype.newbyteorder("="), copy=False) for name, part in inputs.items()})


def as_inputs(array: NDArray[Any], what: str) -> NDArray[Any]:
    """Convert an array to inputs: tables stay, and images get their channels first.

    (n, h, w) has one channel. Of four dimensions the last holds the channels if it is 1, 3 or 4 and the second is not;
    the second holds them otherwise. uint8 stays, as do float32 and float64; other numbers become float32, because a
    table may be of integers. Those that should stay have a name behind that of the array, such as X.tokens.
    """
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what} must hold numbers, not {array.dtype}")
    if array.ndim not in (2, 3, 4):
        raise DataError(f"{what} must be (n, d) or images (n, h, w), (n, c, h, w) or (n, h, w, c), not {array.shape}")
    if array.ndim == 3:
        array = array[:, None]
    elif array.ndim == 4 and array.shape[3] in CHANNELS and array.shape[1] not in CHANNELS:
        array = np.ascontiguousarray(np.moveaxis(array, 3, 1))
    kept = array.dtype == np.uint8 or (array.dtype.kind == "f" and array.dtype.itemsize in (4, 8))
    with np.errstate(over="ignore"):  # an overflow is infinite, and refused with the record's id
        return array.astype(array.dtype.newbyteorder("=") if kept else np.float32, copy=False)


def read_mapped(path: Path, reading: Reading, whole: bool = False) -> tuple[Dataset, Dataset]:
    """Training and test records: inputs from the .npy file, which is not loaded, the rest from the table's columns.

    The first line of the table is about the first row of the file, and so on. Other columns are not looked at.
    """
    if reading.meta is None or reading.drop or reading.encoding.rules:
        raise DataError(
            f"{path}: is a file of numbers alone: name the table that says what its rows are, meta='people.csv' "
            "(maxrr data prepare FILE --meta people.csv). Of that only the label, id, subject and weight are read"
        )
    inputs, meta = map_npy(path), path.parent / reading.meta
    with named(path):
        inputs = check_inputs(inputs)
    with named(meta):
        said = others_of(columns_in(meta, reading, only=reading.others, check=reading.check), reading)
    rows = len(said[reading.label or "label"])
    if rows != len(inputs):
        raise DataError(f"{meta}: is about {rows:,} records, and {path} has {len(inputs):,}: one line per record")
    ids = said[reading.id] if reading.id in said else made_ids([inputs], reading.ids_from)[0]
    subjects, weights = (None if name is None else said.get(name) for name in (reading.subject, reading.weight))
    part = Part(inputs, said[reading.label or "label"], ids, subjects, weights)
    sides = (part, part.at(np.zeros(rows, dtype=bool))) if whole else divide(part, str(meta), reading.split_by)
    return pair(*sides, str(path))
