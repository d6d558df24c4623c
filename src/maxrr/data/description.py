"""What is in a dataset, in numbers: how many records of which class, and how many are there twice."""

import re
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


# What may be wrong with the inputs of a table: columns that look like ids, and columns of very different scales.


ID = re.compile(r"(.*[_\W])?(id|uuid|guid|index)|unnamed: \d+|", re.IGNORECASE)
FEWEST = 20  # records: among fewer, whole numbers that happen to differ say nothing
APART = 100.0  # a network's first weights are as large for one column as for another: beyond this one drowns the rest


def doubts(table: Dataset) -> list[str]:
    """One sentence for each kind of doubt; none for images and arrays, whose inputs have no names.

    A model that gets an id learns it by heart, and a request to forget a person by it finds nobody.

    >>> doubts(Dataset(np.array([[7.0, 2e5], [8.0, 9e5]]), [0, 1], ("a", "b"), [1, 2], columns=("user_id", "income")))
    ["the inputs 'user_id' look like ids: name them with --id or --subject, or leave them out with --drop", \
"column 'income' varies 7e+05 times as much as column 'user_id': scale the columns to about 1, by constants that do \
not depend on the records"]
    """
    if table.columns is None or not len(table):
        return []
    columns, found = list(zip(table.columns, table.inputs.T, strict=True)), []
    if ids := [name for name, values in columns if ID.fullmatch(name.strip()) or are_numbered(values)]:
        named = ", ".join(map(repr, ids))
        found.append(
            f"the inputs {named} look like ids: name them with --id or --subject, or leave them out with --drop"
        )
    spreads = {name: float(values.std(dtype=np.float64)) for name, values in columns if values.min() < values.max()}
    if spreads:
        wide, narrow = max(spreads, key=spreads.__getitem__), min(spreads, key=spreads.__getitem__)
        if spreads[wide] > APART * spreads[narrow]:
            found.append(
                f"column {wide!r} varies {spreads[wide] / spreads[narrow]:.2g} times as much as column {narrow!r}: "
                "scale the columns to about 1, by constants that do not depend on the records"
            )
    return found


def are_numbered(values: np.ndarray) -> bool:
    """Whether these are whole numbers, all different."""
    many = len(values) >= FEWEST
    return many and bool((values == np.trunc(values)).all()) and len(np.unique(values)) == len(values)
