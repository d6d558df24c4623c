"""Arrays in an .npz file."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import DataError
from maxrr.data.dataset import Dataset
from maxrr.data.sides import Part, divide, pair

CHANNELS = (1, 3, 4)
WHOLE = {"X", "y", "ids", "subjects", "class_names"}
SIDES = {f"{kind}_{side}" for kind in ("x", "y", "ids", "subjects") for side in ("train", "test")} | {"class_names"}


def read(path: Path) -> tuple[Dataset, Dataset]:
    """Training and test records from an .npz file, whose arrays say by their names what they are.

    Either x_train, y_train, x_test and y_test, with ids_train and ids_test, subjects_train and subjects_test if wanted,
    or X and y, with ids and subjects if wanted, which are split by id. In both cases class_names may name the classes
    that integer labels count. Ids are row numbers where they are not given, those of test after those of train.
    """
    arrays = _arrays(path)
    names = arrays.get("class_names")
    if names is not None and (names.ndim != 1 or names.dtype.kind not in "UT"):
        raise DataError(f"{path}: class_names must be a list of strings, not {names.dtype} of shape {names.shape}")
    if "X" in arrays:
        parts = divide(_part(path, arrays, "X", "y", "ids", "subjects", first=0))
    else:
        train = _part(path, arrays, "x_train", "y_train", "ids_train", "subjects_train", first=0)
        test = _part(path, arrays, "x_test", "y_test", "ids_test", "subjects_test", first=len(train.ids))
        parts = train, test
    return pair(*parts, str(path), None if names is None else tuple(map(str, names.tolist())))


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path}: is not an .npz archive, or is truncated")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except Exception as error:  # a damaged file fails in zipfile, zlib, struct or NumPy, as it happens
        if "allow_pickle" in str(error):
            raise DataError(f"{path}: holds Python objects, which are not read: store numbers and strings") from None
        raise DataError(f"{path}: cannot be read as .npz: {error}") from None
    needed = {"X", "y"} if "X" in arrays else {"x_train", "y_train", "x_test", "y_test"}
    known = WHOLE if "X" in arrays else SIDES
    problems = [f"lacks {name}" for name in sorted(needed - set(arrays))]
    problems += [f"has {name}, which means nothing here" for name in sorted(set(arrays) - known)]
    for kind in ("ids", "subjects"):
        if len({f"{kind}_train", f"{kind}_test"} & set(arrays)) == 1:
            problems.append(f"has {kind} for one side of train and test only")
    if problems:
        wanted = "X and y, or x_train, y_train, x_test and y_test"
        raise DataError(
            f"{path}: {'; '.join(problems)}. It must hold {wanted}; ids, subjects and class_names may follow"
        )
    return arrays


def _part(path: Path, arrays: dict[str, NDArray[Any]], x: str, y: str, ids: str, subjects: str, first: int) -> Part:
    features = as_features(arrays[x], f"{path}: {x}")
    count = len(features)
    part = Part(features, arrays[y], arrays.get(ids, np.arange(first, first + count)), arrays.get(subjects))
    for name, array in ((y, part.labels), (ids, part.ids), (subjects, part.subjects)):
        if array is not None and array.shape != (count,):
            raise DataError(f"{path}: {name} has shape {array.shape}, but {x} has {count} records: one {name} a record")
    return part


def as_features(array: NDArray[Any], what: str) -> NDArray[Any]:
    """Tables as they are, images with channels first.

    (n, h, w) has one channel. Of four dimensions the last holds the channels if it is 1, 3 or 4 and the second is not;
    the second holds them otherwise. uint8 stays, as do float32 and float64; other numbers become float32.
    """
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what} must hold numbers, not {array.dtype}")
    if array.ndim not in (2, 3, 4):
        raise DataError(
            f"{what} must be a table (n, d) or images (n, h, w), (n, c, h, w) or (n, h, w, c), not {array.shape}"
        )
    if array.ndim == 3:
        array = array[:, None]
    elif array.ndim == 4 and array.shape[3] in CHANNELS and array.shape[1] not in CHANNELS:
        array = np.ascontiguousarray(np.moveaxis(array, 3, 1))
    kept = array.dtype == np.uint8 or (array.dtype.kind == "f" and array.dtype.itemsize in (4, 8))
    with np.errstate(over="ignore"):  # an overflow is infinite, and refused with the record's id
        return array.astype(array.dtype.newbyteorder("=") if kept else np.float32, copy=False)
