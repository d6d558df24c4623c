"""What stays of a forgotten record: that it was, for whoever holds it and the model's key.

For each an HMAC of its id and one of its features. Neither tells anything without the key; with it they recognise a
request for what is gone already, and a dataset that brings it back.
"""

import hmac
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.hashes import framed, hash_rows, key_bytes

Names = frozenset[tuple[bytes, bytes]]


def id_mark(key: bytes, id_: int | str) -> bytes:
    """The HMAC of a record id: 1 and '1' differ."""
    return hmac.digest(key, framed(b"id", key_bytes(id_)), "sha256")


def content_mark(key: bytes, content: bytes) -> bytes:
    """The HMAC of a record's features, given by their hash."""
    return hmac.digest(key, framed(b"content", content), "sha256")


@dataclass(frozen=True)
class Oblivion:
    """The forgotten records of a model, each a pair of marks."""

    pairs: Names = frozenset()

    def __len__(self) -> int:
        return len(self.pairs)

    def with_records(self, key: bytes, ids: NDArray[Any], contents: NDArray[np.uint8]) -> "Oblivion":
        """The same and these."""
        fresh = {
            (id_mark(key, id_), content_mark(key, digest.tobytes()))
            for id_, digest in zip(ids.tolist(), contents, strict=True)
        }
        return Oblivion(self.pairs | fresh)

    def knows(self, key: bytes, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of these ids were forgotten."""
        marks = {mark for mark, _ in self.pairs}
        return np.array([id_mark(key, id_) in marks for id_ in ids.tolist()], dtype=bool)

    def brought_back(self, key: bytes, ids: NDArray[Any], features: NDArray[Any]) -> tuple[int, int]:
        """How many of these records were forgotten, and how many have the features of one under another id."""
        if not self.pairs:
            return 0, 0
        contents = {content for _, content in self.pairs}
        same = other = 0
        for id_, digest in zip(ids.tolist(), hash_rows(features), strict=True):
            content = content_mark(key, digest.tobytes())
            if content in contents:
                if (id_mark(key, id_), content) in self.pairs:
                    same += 1
                else:
                    other += 1
        return same, other
