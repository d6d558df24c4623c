"""Checks of the arrays that attacks take."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def finite(values: ArrayLike, name: str, dimensions: int = 1) -> Floats:
    """The values as float64: of that many dimensions, not empty, and none of them NaN or infinite.

    >>> finite([1, 2], "scores")
    array([1., 2.])
    >>> finite([1.0, float("nan")], "scores")
    Traceback (most recent call last):
    ValueError: scores must be finite, got nan at [1]
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != dimensions or not array.size:
        raise ValueError(f"{name} must have {dimensions} dimension(s) and not be empty, got shape {array.shape}")
    usable = np.isfinite(array)
    if not usable.all():
        where = np.argwhere(~usable)[0]
        raise ValueError(f"{name} must be finite, got {array[tuple(where)]} at {where.tolist()}")
    return array


def same_shape(one: NDArray[np.generic], other: NDArray[np.generic], names: str) -> None:
    """Refuse two arrays that do not belong together."""
    if one.shape != other.shape:
        raise ValueError(f"{names} must have the same shape, got {one.shape} and {other.shape}")
