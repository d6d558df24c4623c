"""What a dataset may hold, and what its owner is told otherwise."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

BLOCK_BYTES = 1 << 24  # features are read this much at a time: a memory map is never loaded whole
DTYPES = (np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64))


class DataError(ValueError):
    """Something is wrong with the data: what, with which record or file, and what to do."""


def some(values: NDArray[Any], most: int = 5) -> str:
    """The first few of `values` for a message.

    >>> some(np.arange(7), most=3)
    '0, 1, 2 and 4 more'
    """
    shown = ", ".join(repr(value) for value in values[:most].tolist())
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"


def blocks(features: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Consecutive rows, each block with the number of its first row."""
    step = max(1, BLOCK_BYTES // max(1, features[:1].nbytes))
    for start in range(0, len(features), step):
        yield start, features[start : start + step]


def check_keys(given: ArrayLike, what: str) -> NDArray[Any]:
    """A list of integers, as int64, or of strings."""
    array = np.asarray(given)
    if array.ndim != 1:
        raise DataError(f"{what} must be a list, not an array of shape {array.shape}")
    if array.size == 0 and array.dtype.kind == "f":  # what NumPy makes of []
        return array.astype(np.int64)
    if array.dtype.kind == "u" and array.max(initial=0) > np.iinfo(np.int64).max:
        raise DataError(f"{what} must fit in 64 bits with a sign, but one is {array.max()}: make them strings")
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind in "UT":
        return array.astype(np.str_)
    raise DataError(f"{what} must be all integers or all strings, not {array.dtype}")


def check_features(features: ArrayLike) -> NDArray[Any]:
    """Records of one shape: bytes, or floats. Not copied."""
    array = np.asanyarray(features)
    if array.dtype not in DTYPES:
        raise DataError(f"features must be uint8 (pixels), float32 or float64, not {array.dtype}: convert them")
    if array.ndim < 2 or 0 in array.shape[1:]:
        raise DataError(f"features must be (records, …) with at least one number a record, not of shape {array.shape}")
    return array


def check_unique(ids: NDArray[Any]) -> None:
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < len(ids):
        raise DataError(f"record ids must be unique, but these repeat: {some(values[counts > 1])}")


def check_labels(labels: ArrayLike, ids: NDArray[Any], class_names: tuple[str, ...]) -> NDArray[np.int64]:
    """One index into `class_names` a record."""
    array = np.asarray(labels)
    if array.dtype.kind not in "iu" and array.size:
        raise DataError(f"labels must be indices into class_names, not {array.dtype}")
    if array.shape != ids.shape:
        raise DataError(f"there are {len(ids)} records, but labels have shape {array.shape}: one label a record")
    if len(set(class_names)) < len(class_names) or not all(isinstance(name, str) for name in class_names):
        raise DataError(f"class names must be different strings, not {class_names!r}")
    outside = np.flatnonzero((array < 0) | (array >= len(class_names)))
    if len(outside):
        raise DataError(
            f"record {ids[outside[0]].item()!r} has label {array[outside[0]]}, outside the {len(class_names)} classes "
            f"(0 to {len(class_names) - 1}); {len(outside)} such records in all"
        )
    return array.astype(np.int64, copy=False)


def check_finite(features: NDArray[Any], ids: NDArray[Any]) -> None:
    if features.dtype.kind != "f":
        return
    for start, block in blocks(features):
        if not np.isfinite(block).all():
            row = start + int(np.argmin(np.isfinite(block).reshape(len(block), -1).all(axis=1)))
            raise DataError(f"record {ids[row].item()!r} has NaN or infinity among its features: repair or remove it")
