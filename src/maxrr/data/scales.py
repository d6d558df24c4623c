"""Whether the columns of a table are of one scale, which networks rely on."""

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import blocks
from maxrr.data.dataset import Dataset

APART = 100.0  # a network's first weights are as large for one column as for another: beyond this one drowns the rest
ADVICE = "scale the columns to about 1, by constants that do not depend on the records"


def unevenness(records: Dataset) -> str:
    """What a network will make little of, and what to do; nothing where columns are alike, or records are images.

    Columns that are constant do not count.

    >>> table = Dataset(np.array([[0.1, 2e5], [0.2, 9e5]]), [0, 1], ("a", "b"), [1, 2], columns=("share", "income"))
    >>> unevenness(table).partition(":")[0]
    "column 'income' varies 7e+06 times as much as column 'share'"
    """
    if len(records.shape) != 1 or records.inputs.dtype.kind != "f" or not len(records):
        return ""
    mean, deviation = _moments(records)
    varying = np.flatnonzero(deviation > 0.0)
    if not len(varying):
        return ""
    wide, narrow = (varying[pick(deviation[varying])] for pick in (np.argmax, np.argmin))
    if deviation[wide] > APART * deviation[narrow]:
        ratio = deviation[wide] / deviation[narrow]
        return f"{_named(records, wide)} varies {ratio:.2g} times as much as {_named(records, narrow)}: {ADVICE}"
    far = np.abs(mean[varying]) / deviation[varying]
    if far.max() > APART:
        column = varying[np.argmax(far)]
        return (
            f"{_named(records, column)} is about {mean[column]:.3g} everywhere, give or take {deviation[column]:.2g}: "
            f"{ADVICE}"
        )
    return ""


def _moments(records: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each column, a block at a time."""
    count = len(records)
    mean = sum(block.sum(axis=0, dtype=np.float64) for _, block in blocks(records.inputs)) / count
    squares = sum(((block - mean) ** 2).sum(axis=0) for _, block in blocks(records.inputs))
    constant = records.inputs.min(axis=0) == records.inputs.max(axis=0)
    return np.asarray(mean), np.where(constant, 0.0, np.sqrt(np.asarray(squares) / count))


def _named(records: Dataset, column: np.int64) -> str:
    return f"column {column}" if records.columns is None else f"column {records.columns[column]!r}"
