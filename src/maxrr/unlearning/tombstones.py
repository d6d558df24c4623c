"""Tombstones: what stays of forgotten records, so that whoever has such a record and the model's key recognises it.

A tombstone has three HMACs: of the id, of the whole record, and of its values. None tells anything without the key;
with it they recognise a request for what is gone already, and a dataset that brings it back. An id is the same whether
it is written as a number or as text, and values are the same in whichever type they are stored: a forgotten record is
recognised in another format, too. Columns are hashed in the order that they had; where that changed since, and they
have names, the earlier orders are kept, and a record is looked for in each of them. A copy with other values, even in
the last digit, is not recognised.

Of a person whose last record is forgotten, an HMAC of the subject id stays, with the number and time of the request.
"""

import hmac
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.data.hashes import framed, value_hashes
from maxrr.data.table import in_order_of
from maxrr.unlearning.layers import Layered

Columns = tuple[str, ...] | None  # None where they have no names

FORGOTTEN, REPLACED = b"id", b"replaced"  # what an HMAC of an id says: do not bring it back; its old values are gone


class Tombstone(NamedTuple):
    """A forgotten record: the HMACs of its id, of the whole record, and of its values."""

    id: bytes
    record: bytes
    content: bytes


def id_hmac(key: bytes, id_: int | str, purpose: bytes = FORGOTTEN) -> bytes:
    """The HMAC of a record id. 1 and '1' are one id: a table with a single id that is no number has texts for all."""
    return hmac.digest(key, framed(purpose, str(id_).encode("utf-8", "surrogatepass")), "sha256")


def tombstones_of(
    key: bytes, ids: NDArray[Any], hashes: NDArray[np.uint8], contents: NDArray[np.uint8], purpose: bytes = FORGOTTEN
) -> list[Tombstone]:  # fmt: skip
    """The tombstones of records, from their ids and hashes. Of a replaced record only the values go: its id stays."""
    return [
        Tombstone(
            id_hmac(key, id_, purpose),
            hmac.digest(key, framed(b"record", record.tobytes()), "sha256"),
            content_hmac(key, content),
        )
        for id_, record, content in zip(ids.tolist(), hashes, contents, strict=True)
    ]


def content_hmac(key: bytes, content: NDArray[np.uint8]) -> bytes:
    """The HMAC of a record's values, from their hash."""
    return hmac.digest(key, framed(b"content", content.tobytes()), "sha256")


class Forgotten(NamedTuple):
    """When the last record about a person was forgotten: the number of the request, and its time.

    The number is 0 where the request was answered by a model of which a workspace was made since: it counts anew.
    """

    number: int
    time: str


def subject_hmac(key: bytes, subject: int | str) -> str:
    """The HMAC of a subject id, as receipts have it. 1 and '1' are one person."""
    return hmac.digest(key, framed(b"subject", str(subject).encode("utf-8", "surrogatepass")), "sha256").hex()


class Stones(Set[Tombstone]):
    """Tombstones, known by the HMACs of their ids: of a record that was replaced several times there are several."""

    __slots__ = ("_by_id", "_size")

    def __init__(self, given: Iterable[Tombstone] = ()) -> None:
        self._by_id: Layered[bytes, tuple[Tombstone, ...]] = Layered()
        self._size = 0
        self._take(given)

    def _take(self, more: Iterable[Tombstone]) -> None:
        fresh: dict[bytes, tuple[Tombstone, ...]] = {}
        for stone in more:
            known = fresh.get(stone.id) or self._by_id.get(stone.id, ())
            if stone not in known:
                fresh[stone.id] = (*known, stone)
                self._size += 1
        self._by_id = self._by_id.with_more(fresh)

    def with_more(self, more: Iterable[Tombstone]) -> "Stones":
        """The same with more."""
        found = Stones()
        found._by_id, found._size = self._by_id, self._size
        found._take(more)
        return found

    def of(self, id_hmac: bytes) -> tuple[Tombstone, ...]:
        """Those of one record, by the HMAC of its id."""
        found: tuple[Tombstone, ...] = self._by_id.get(id_hmac, ())
        return found

    def __contains__(self, stone: object) -> bool:
        return isinstance(stone, Tombstone) and stone in self.of(stone.id)

    def __iter__(self) -> Iterator[Tombstone]:
        for stones in self._by_id.values():
            yield from stones

    def __len__(self) -> int:
        return self._size


@dataclass(frozen=True, repr=False)
class Tombstones:
    """The forgotten records of a model."""

    stones: Stones = field(default_factory=Stones)
    orders: tuple[Columns, ...] = ()  # of columns, in which values were hashed before those of the model changed

    def knows(self, key: bytes, ids: NDArray[Any], purpose: bytes = FORGOTTEN) -> NDArray[np.bool_]:
        """Which of these ids were forgotten; or, for the purpose REPLACED, which had other values before."""
        return np.array([bool(self.stones.of(id_hmac(key, id_, purpose))) for id_ in ids.tolist()], dtype=bool)

    def knows_values(self, key: bytes, dataset: Dataset, columns: Columns) -> NDArray[np.bool_]:
        """Which records have the values of forgotten ones, for a model whose records have these columns."""
        known = {stone.content for stone in self.stones}
        found = np.zeros(len(dataset), dtype=bool)
        for hmacs in self.value_hmacs(key, dataset, columns):
            found |= np.array([each in known for each in hmacs], dtype=bool)
        return found

    def value_hmacs(self, key: bytes, dataset: Dataset, columns: Columns) -> Iterator[list[bytes]]:
        """The HMACs of the values of all records, in every form in which a tombstone may have them."""
        for order in {columns, *self.orders} if self.stones else ():
            inputs = in_order_of(order, dataset).inputs
            for halved in (False, True):
                yield [content_hmac(key, digest) for digest in value_hashes(inputs, halved=halved)]

    def hashed_in(self, before: Columns, now: Columns) -> "Tombstones":
        """The same for a model whose columns were others before, or stood in another order."""
        if not self.stones or before == now or before in self.orders:
            return self
        return replace(self, orders=(*self.orders, before))
