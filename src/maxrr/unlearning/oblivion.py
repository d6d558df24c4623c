"""What stays of a forgotten record: that it was, for whoever holds it and the model's key.

For each an HMAC of its id, of the whole record, and of its features. None tells anything without the key; with it they
recognise a request for what is gone already, and a dataset that brings it back.
"""

import hmac
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.data.hashes import framed, hash_rows, key_bytes


class Mark(NamedTuple):
    """A forgotten record."""

    id: bytes
    record: bytes
    content: bytes


def id_mark(key: bytes, id_: int | str) -> bytes:
    """The HMAC of a record id: 1 and '1' differ."""
    return hmac.digest(key, framed(b"id", key_bytes(id_)), "sha256")


def marks(
    key: bytes, ids: NDArray[Any], hashes: NDArray[np.uint8], contents: NDArray[np.uint8]
) -> list[Mark]:  # fmt: skip
    """The marks of records, from their ids and hashes."""
    return [
        Mark(
            id_mark(key, id_),
            hmac.digest(key, framed(b"record", record.tobytes()), "sha256"),
            hmac.digest(key, framed(b"content", content.tobytes()), "sha256"),
        )
        for id_, record, content in zip(ids.tolist(), hashes, contents, strict=True)
    ]


@dataclass(frozen=True, repr=False)
class Oblivion:
    """The forgotten records of a model."""

    marks: frozenset[Mark] = frozenset()

    def knows(self, key: bytes, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of these ids were forgotten."""
        known = {mark.id for mark in self.marks} if len(ids) else set()
        return np.array([id_mark(key, id_) in known for id_ in ids.tolist()], dtype=bool)

    def brought_back(self, key: bytes, dataset: Dataset) -> tuple[int, int]:
        """How many of these records were forgotten, and how many have the features of one under another id."""
        if not self.marks:
            return 0, 0
        records = {mark.record for mark in self.marks}
        owners: dict[bytes, set[bytes]] = {}
        for mark in self.marks:
            owners.setdefault(mark.content, set()).add(mark.id)
        same = other = 0
        for mark in marks(key, dataset.ids, dataset.record_hashes(), hash_rows(dataset.features)):
            if mark.record in records:
                same += 1
            elif mark.content in owners and mark.id not in owners[mark.content]:
                other += 1
        return same, other
