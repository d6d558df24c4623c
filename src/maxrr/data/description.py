"""What is in a dataset, in numbers: how many records of which class, and how many are there twice."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxrr.data.dataset import Dataset
from maxrr.data.fields import described
from maxrr.data.hashes import hash_rows
from maxrr.errors import DataError

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Description:
    """What is in a dataset, or in training and test records together.

    Where a field is a tuple, it has one entry per dataset that was described: one, or two for train and test.

    Attributes
    ----------
    names : tuple of str
        Where the records came from.
    records : tuple of int
        How many records there are.
    shape : tuple of int
        The shape of one record.
    dtype : str
        The type of its numbers; where a record has several inputs, the name, shape and type of each.
    balance : dict of str to tuple of int
        How many records each class has, by its name.
    subjects : int or None
        How many people the records are about, over all datasets; None if one has no subject ids.
    duplicate_groups : int
        How many groups of two or more records have the same inputs, byte for byte, over all datasets.
    duplicate_records : int
        How many records are in these groups.
    conflicting_groups : int
        How many of these groups have records of more than one class.
    shared_groups : int
        How many of these groups have records both in train and in test.
    """

    names: tuple[str, ...]
    records: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    balance: dict[str, tuple[int, ...]]
    subjects: int | None
    duplicate_groups: int
    duplicate_records: int
    conflicting_groups: int
    shared_groups: int


def describe(train: Dataset, test: Dataset | None = None) -> Description:
    """Describe one dataset, or training and test records together.

    Parameters
    ----------
    train
        The dataset.
    test : optional
        A second one, with records of the same shape and type, and the same classes.

    Returns
    -------
    Description
        Counts of records, classes, people and duplicates.

    Raises
    ------
    DataError
        The two datasets differ in shape, type or classes.

    Examples
    --------
    >>> twins = Dataset(np.array([[1.0], [2.0], [1.0]]), [0, 0, 1], ("no", "yes"), [10, 11, 12])
    >>> found = describe(twins)
    >>> found.balance, found.duplicate_records, found.conflicting_groups
    ({'no': (2,), 'yes': (1,)}, 2, 1)
    """
    parts = (train,) if test is None else (train, test)
    kinds = {(part.shape, part.inputs.dtype, part.class_names) for part in parts}
    if len(kinds) > 1:
        raise DataError("train and test differ in shape, type or classes: they cannot be described together")
    counts = np.stack([np.bincount(part.labels, minlength=len(part.class_names)) for part in parts], axis=1)
    group = _groups(parts)
    size = np.bincount(group)
    labels = np.concatenate([part.labels for part in parts])
    side = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return Description(
        names=tuple(part.name for part in parts),
        records=tuple(len(part) for part in parts),
        shape=train.shape,
        dtype=train.inputs.dtype.name if train.inputs.dtype.names is None else described(train.inputs.dtype, ()),
        balance={name: tuple(row) for name, row in zip(train.class_names, counts.tolist(), strict=True)},
        subjects=_subjects(parts),
        duplicate_groups=int((size > 1).sum()),
        duplicate_records=int(size[size > 1].sum()),
        conflicting_groups=_mixed(group, labels),
        shared_groups=_mixed(group, side),
    )


def _groups(parts: tuple[Dataset, ...]) -> Ints:
    """A number for each record, the same for records with equal inputs."""
    seen: dict[bytes, int] = {}
    digests = (digest.tobytes() for part in parts for digest in hash_rows(part.inputs))
    return np.array([seen.setdefault(digest, len(seen)) for digest in digests], dtype=np.int64)


def _mixed(group: Ints, value: Ints) -> int:
    """How many groups have records with different values."""
    pairs = np.unique(np.stack([group, value], axis=1), axis=0)
    return int((np.bincount(pairs[:, 0]) > 1).sum())


def _subjects(parts: tuple[Dataset, ...]) -> int | None:
    subjects: set[int | str] = set()
    for part in parts:
        if part.subjects is None:
            return None
        subjects.update(part.subjects.tolist())
    return len(subjects)
