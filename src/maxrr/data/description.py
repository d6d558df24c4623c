"""What is in a dataset, in numbers: among them records that are there twice."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxrr.data.dataset import Dataset
from maxrr.data.hashes import hash_rows
from maxrr.errors import DataError

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Description:
    """Counts are tuples: of one number for one dataset, of two where train and test were described together.

    Attributes
    ----------
    names : tuple of str
        Where the records came from.
    records : tuple of int
    shape : tuple of int
        Of one record.
    dtype : str
    balance : dict
        The records in each class.
    subjects : int or None
        How many people the records are about, in all; None if some are about nobody known.
    duplicate_groups, duplicate_records : int
        Sets of two or more records with equal inputs, to the byte, and the records in them, over all described.
    conflicting_groups : int
        Those of them with more than one label.
    shared_groups : int
        Those of them with records both in train and in test.
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
        dtype=train.inputs.dtype.name,
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


def _mixed(group: Ints, mark: Ints) -> int:
    """How many groups carry more than one mark."""
    pairs = np.unique(np.stack([group, mark], axis=1), axis=0)
    return int((np.bincount(pairs[:, 0]) > 1).sum())


def _subjects(parts: tuple[Dataset, ...]) -> int | None:
    subjects: set[int | str] = set()
    for part in parts:
        if part.subjects is None:
            return None
        subjects.update(part.subjects.tolist())
    return len(subjects)
