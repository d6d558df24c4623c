"""Tombstones: what stays of forgotten records, so that whoever has such a record and the model's key recognises it.

A tombstone has three HMACs: of the id, of the whole record, and of its values. None tells anything without the key;
with it they recognise a request for what is gone already, and a dataset that brings it back. An id is the same whether
it is written as a number or as text, and values are the same in whichever type they are stored: a forgotten record is
recognised in another format, too. Columns that have names are hashed in the order of these. A copy with other values,
even in the last digit, is not recognised.

Of a person whose last record is forgotten, an HMAC of the subject id stays, with the number and time of the request.
"""

import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.data.hashes import framed, value_hashes
from maxrr.data.tables import in_order_of
from maxrr.unlearning.receipts import Receipt

K = TypeVar("K")
V = TypeVar("V")

MANY = 500  # recent entries: then they join the older ones


class Layered(Mapping[K, V]):
    """A mapping that never changes: one with more entries shares the older ones, and copies the few recent.

    >>> few = Layered({"a": 1})
    >>> more = few.with_more({"b": 2, "a": 3})
    >>> dict(few), dict(more)
    ({'a': 1}, {'a': 3, 'b': 2})
    """

    __slots__ = ("_older", "_recent")

    def __init__(self, older: Mapping[K, V] | None = None, recent: Mapping[K, V] | None = None) -> None:
        self._older, self._recent = older or {}, recent or {}
        if len(self._recent) > MANY:
            self._older, self._recent = {**self._older, **self._recent}, {}

    def with_more(self, more: Mapping[K, V]) -> "Layered[K, V]":
        """Return a mapping with more entries."""
        return Layered(self._older, {**self._recent, **more}) if more else self

    def __getitem__(self, key: K) -> V:
        return self._recent[key] if key in self._recent else self._older[key]

    def __iter__(self) -> Iterator[K]:
        return iter({**self._older, **self._recent})

    def __len__(self) -> int:
        return len(self._older) + sum(key not in self._older for key in self._recent)


class Tombstone(NamedTuple):
    """A forgotten record: the HMACs of its id, of the whole record, and of its values."""

    id: bytes
    record: bytes
    content: bytes


def id_hmac(key: bytes, id_: int | str, *, replaced: bool = False) -> bytes:
    """Return the HMAC of the id of a forgotten record, or of a replaced record, whose id stays in use.

    1 and '1' are one id: a table with a single id that is no number has texts for all.
    """
    purpose = b"replaced" if replaced else b"id"
    return hmac.digest(key, framed(purpose, str(id_).encode("utf-8", "surrogatepass")), "sha256")


def tombstones_of(
    key: bytes, ids: NDArray[Any], hashes: NDArray[np.uint8], contents: NDArray[np.uint8], *, replaced: bool = False
) -> list[Tombstone]:
    """Make the tombstones of records. Of a replaced record only the values are forgotten: its id stays in use."""
    return [
        Tombstone(
            id_hmac(key, id_, replaced=replaced),
            hmac.digest(key, framed(b"record", record.tobytes()), "sha256"),
            content_hmac(key, content),
        )
        for id_, record, content in zip(ids.tolist(), hashes, contents, strict=True)
    ]


def content_hashes(dataset: Dataset) -> NDArray[np.uint8]:
    """Hash the values of each record, whatever the order of columns that have names."""
    order = None if dataset.columns is None else tuple(sorted(dataset.columns))
    return np.array(value_hashes(in_order_of(order, dataset).inputs))


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


def ticket_hmac(key: bytes, ticket: str) -> str:
    """The HMAC of an operator's ticket, as receipts have it."""
    return hmac.digest(key, framed(b"ticket", ticket.encode("utf-8", "surrogatepass")), "sha256").hex()


class Tombstones(Set[Tombstone]):
    """The forgotten records of a model, by the HMACs of their ids: one that was replaced several times has several."""

    __slots__ = ("_by_id", "_count")

    def __init__(self, given: Iterable[Tombstone] = (), before: "Tombstones | None" = None) -> None:
        self._by_id: Layered[bytes, tuple[Tombstone, ...]] = Layered() if before is None else before._by_id
        self._count: int = 0 if before is None else before._count
        new: dict[bytes, tuple[Tombstone, ...]] = {}
        for stone in given:
            known = new.get(stone.id) or self.of(stone.id)
            if stone not in known:
                new[stone.id] = (*known, stone)
                self._count += 1
        self._by_id = self._by_id.with_more(new)

    def with_more(self, more: Iterable[Tombstone]) -> "Tombstones":
        """Return a copy with more tombstones."""
        return Tombstones(more, self)

    def of(self, id_hmac: bytes) -> tuple[Tombstone, ...]:
        """The tombstones of one record, by the HMAC of its id."""
        return self._by_id.get(id_hmac, ())

    def knows(self, key: bytes, ids: NDArray[Any], *, replaced: bool = False) -> NDArray[np.bool_]:
        """Return which of these ids were forgotten; with `replaced`, which had other values before."""
        return np.array([bool(self.of(id_hmac(key, id_, replaced=replaced))) for id_ in ids.tolist()], dtype=bool)

    def knows_values(self, key: bytes, dataset: Dataset) -> NDArray[np.bool_]:
        """Which records have the values of forgotten ones."""
        if not self._by_id:
            return np.zeros(len(dataset), dtype=bool)
        known = {stone.content for stone in self}
        return np.array([content_hmac(key, digest) in known for digest in content_hashes(dataset)], dtype=bool)

    def __contains__(self, stone: object) -> bool:
        return isinstance(stone, Tombstone) and stone in self.of(stone.id)

    def __iter__(self) -> Iterator[Tombstone]:
        for stones in self._by_id.values():
            yield from stones

    def __len__(self) -> int:
        return self._count


class OnReceipt(NamedTuple):
    """Which of some ids a receipt names, and as what. Each field has one answer per id.

    Attributes
    ----------
    forgotten : array of bool
        Which ids this request forgot.
    replaced : array of bool
        Which records this request replaced.
    before : array of bool
        Which ids were asked for and had been forgotten before.
    """

    forgotten: NDArray[np.bool_]
    replaced: NDArray[np.bool_]
    before: NDArray[np.bool_]


def on_receipt(key: bytes, receipt: Receipt, ids: Sequence[int | str]) -> OnReceipt:
    """Find which of these ids a receipt names, by the HMACs that only the key can make."""
    now, earlier = set(receipt.tombstones), set(receipt.earlier_tombstones)
    forgotten, replaced = ([id_hmac(key, id_, replaced=each).hex() for id_ in ids] for each in (False, True))
    before = [bool({one, other} & earlier) for one, other in zip(forgotten, replaced, strict=True)]
    masks = [each in now for each in forgotten], [each in now for each in replaced], before
    return OnReceipt(*(np.array(mask, dtype=bool) for mask in masks))
