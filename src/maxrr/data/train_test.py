"""From the records that a source holds to a training and a test dataset that belong together."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import some
from maxrr.data.dataset import Dataset
from maxrr.data.fields import described
from maxrr.data.labels import index_labels
from maxrr.errors import DataError

TEST_SHARE = 0.2


@dataclass(frozen=True)
class Part:
    """Records as a source has them: labels are integers or strings of its own."""

    inputs: NDArray[Any]
    labels: NDArray[Any]
    ids: NDArray[Any]
    subjects: NDArray[Any] | None = None

    def at(self, side: NDArray[np.bool_]) -> "Part":
        subjects = None if self.subjects is None else self.subjects[side]
        return Part(self.inputs[side], self.labels[side], self.ids[side], subjects)

    def and_those_of(self, other: "Part") -> "Part":
        """All of both, which must be of one kind."""
        mine, theirs = ([part.inputs, part.labels, part.ids, part.subjects] for part in (self, other))
        return Part(
            *(None if one is None or two is None else np.concatenate([one, two]) for one, two in
              zip(mine, theirs, strict=True))  # type: ignore[arg-type]
        )  # fmt: skip


def is_test(ids: NDArray[Any]) -> NDArray[np.bool_]:
    """Which records are for testing, about a fifth, where a source does not say so itself.

    A record's side follows from its id alone, so that no other record can move it: the first eight bytes of the id's
    SHA-256, as a big-endian integer, lie in the first fifth of their range.

    >>> np.flatnonzero(is_test(np.arange(20))).tolist()
    [8, 9]
    """
    threshold = int(TEST_SHARE * 2**64)
    digests = (hashlib.sha256(str(id_).encode("utf-8", "surrogatepass")).digest() for id_ in ids.tolist())
    return np.array([int.from_bytes(digest[:8], "big") < threshold for digest in digests], dtype=bool)


def divide(whole: Part) -> tuple[Part, Part]:
    """Training and test records by `is_test`."""
    test = is_test(whole.ids)
    return whole.at(~test), whole.at(test)


def pair(
    train: Part, test: Part, source: str, class_names: tuple[str, ...] | None = None,
    columns: tuple[str, ...] | None = None, *, whole: bool = False,
) -> tuple[Dataset, Dataset]:  # fmt: skip
    """Both sides as datasets of the same classes, kinds and shapes, without a common id. Errors name the source.

    `whole` puts every record on the first side.
    """
    try:
        if not len(train.ids) and not whole:
            raise DataError(f"no record is for training, and {len(test.ids)} are for testing")
        if train.inputs.shape[1:] != test.inputs.shape[1:] or train.inputs.dtype != test.inputs.dtype:
            one, other = (described(part.inputs.dtype, part.inputs.shape[1:]) for part in (train, test))
            raise DataError(f"training records are {one}, but test records {other}")
        if whole:
            train, test = train.and_those_of(test), test.at(np.zeros(len(test.ids), dtype=bool))
        of_train, of_test, names = index_labels(train.labels, test.labels, class_names)
        first = Dataset(train.inputs, of_train, names, train.ids, train.subjects, f"{source} (train)", columns)
        second = Dataset(test.inputs, of_test, names, test.ids, test.subjects, f"{source} (test)", columns)
        if len(second) and first.ids.dtype.kind != second.ids.dtype.kind:
            raise DataError("record ids are integers on one side of train and test, and strings on the other")
        both = np.intersect1d(first.ids, second.ids)
        if len(both):
            raise DataError(f"these record ids are both in train and in test: {some(both)}")
    except DataError as error:
        raise DataError(f"{source}: {error}") from None
    return first, second
