"""From the records that a source holds to a training and a test dataset that belong together."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from maxrr.data.arrays import take
from maxrr.data.checks import check_identifiers, named, some
from maxrr.data.dataset import Dataset
from maxrr.data.fields import described
from maxrr.data.labels import as_classes, index_labels
from maxrr.errors import DataError, IdTaken

TEST_SHARE = 0.2
SplitBy = Literal["subject", "id"]
"""What decides whether a record is for testing: the person whom it is about, or the record's own id."""


@dataclass(frozen=True)
class Part:
    """Records as a source has them: labels are integers or strings of its own."""

    inputs: NDArray[Any]
    labels: NDArray[Any]
    ids: NDArray[Any]
    subjects: NDArray[Any] | None = None
    weights: NDArray[Any] | None = None

    def at(self, side: NDArray[np.bool_]) -> "Part":
        subjects = None if self.subjects is None else self.subjects[side]
        weights = None if self.weights is None else self.weights[side]
        return Part(take(self.inputs, side), self.labels[side], self.ids[side], subjects, weights)

    def and_those_of(self, other: "Part") -> "Part":
        """Append the records of another part of the same kind."""
        mine, theirs = ([part.inputs, part.labels, part.ids, part.subjects, part.weights] for part in (self, other))
        return Part(
            *(None if one is None or two is None else np.concatenate([one, two]) for one, two in
              zip(mine, theirs, strict=True))  # type: ignore[arg-type]
        )  # fmt: skip


def check_split_by(split_by: str) -> None:
    if split_by not in get_args(SplitBy):
        raise DataError(f"split_by is one of {', '.join(map(repr, get_args(SplitBy)))}, not {split_by!r}")


def is_test(ids: NDArray[Any]) -> NDArray[np.bool_]:
    """Which records are for testing, about a fifth, where a source does not say so itself.

    A record's side follows from its id alone, or its subject id, so that no other record can move it: the first
    eight bytes of the id's SHA-256, as a big-endian integer, lie in the first fifth of their range.

    >>> np.flatnonzero(is_test(np.arange(20))).tolist()
    [8, 9]
    """
    threshold = int(TEST_SHARE * 2**64)
    digests = (hashlib.sha256(str(id_).encode("utf-8", "surrogatepass")).digest() for id_ in ids.tolist())
    return np.array([int.from_bytes(digest[:8], "big") < threshold for digest in digests], dtype=bool)


def divide(whole: Part, source: str, split_by: str = "subject") -> tuple[Part, Part]:
    """Divide records into training and test by `is_test`, with all records of a person on one side.

    Labels and ids are looked at before, while rows are still those of the source: messages name them.
    """
    with named(source):
        whole = replace(
            whole,
            labels=as_classes(whole.labels),
            ids=check_identifiers(whole.ids, "record ids"),
            subjects=None if whole.subjects is None else check_identifiers(whole.subjects, "subject ids"),
        )
    test = is_test(whole.subjects if split_by == "subject" and whole.subjects is not None else whole.ids)
    return whole.at(~test), whole.at(test)


def train_and_test(records: Dataset, split_by: SplitBy = "subject") -> tuple[Dataset, Dataset]:
    """Split records into those for training and about a fifth for testing, as `load` does.

    Parameters
    ----------
    records : Dataset
        The records.
    split_by : {"subject", "id"}
        What decides: a hash of the person whom a record is about, so that one person's records are on one side, or of
        the record's id. Records without subjects are split by id.

    Returns
    -------
    train, test : Dataset
        The records of each side, in the order they have here.

    Examples
    --------
    >>> frame = Dataset(np.arange(20.0)[:, None], [0] * 20, ("only",), np.arange(20))
    >>> train_and_test(frame)[1].ids.tolist()
    [8, 9]
    """
    check_split_by(split_by)
    by_subject = split_by == "subject" and records.subjects is not None
    test = is_test(records.subjects if by_subject and records.subjects is not None else records.ids)
    return records.select(records.ids[~test]), records.select(records.ids[test])


def pair(
    train: Part, test: Part, source: str, class_names: tuple[str, ...] | None = None,
    columns: tuple[str, ...] | None = None, *, whole: bool = False, drafted: int = 0,
) -> tuple[Dataset, Dataset]:  # fmt: skip
    """Both sides as datasets of the same classes, kinds and shapes, without a common id. Errors name the source.

    `whole` puts every record on the first side.
    """
    with named(source):
        if not len(train.ids) and not whole:
            raise DataError(f"no record is for training, and {len(test.ids)} are for testing")
        if train.inputs.shape[1:] != test.inputs.shape[1:] or train.inputs.dtype != test.inputs.dtype:
            one, other = (described(part.inputs.dtype, part.inputs.shape[1:]) for part in (train, test))
            raise DataError(f"training records are {one}, but test records {other}")
        if whole:
            train, test = train.and_those_of(test), test.at(np.zeros(len(test.ids), dtype=bool))
        of_train, of_test, names = index_labels(train.labels, test.labels, class_names)
        first, second = (
            Dataset(
                part.inputs, codes, names, part.ids, part.subjects, f"{source} ({side})", columns, part.weights,
                drafted,
            )
            for part, codes, side in ((train, of_train, "train"), (test, of_test, "test"))
        )  # fmt: skip
        if len(second) and first.ids.dtype.kind != second.ids.dtype.kind:
            raise DataError("record ids are integers on one side of train and test, and strings on the other")
        both = np.intersect1d(first.ids, second.ids)
        if len(both):
            raise IdTaken(f"these record ids are both in train and in test: {some(both)}")
    return first, second
