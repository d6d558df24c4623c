"""What a model holds of its records, beside what the extractor makes of them.

Rows never move: a forgotten record's row is overwritten and stays empty, so that what else is known by row (the heads'
samples) keeps its place, and forgetting costs no copy of the others.
"""

import hmac
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.data.hashes import content_hash, framed, identifier_bytes, value_hashes
from maxrr.data.once import once
from maxrr.data.scratch import take
from maxrr.errors import DataError
from maxrr.unlearning.classes import Classes, without_name

Ids = NDArray[Any]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Digests = NDArray[np.uint8]


@dataclass(frozen=True, eq=False, repr=False)
class HeldRecords:
    """Records in the order of `shuffled`, then those that were added later; who of them is still there."""

    inputs: NDArray[Any] | None  # the raw records; None where their owner keeps them, as for a model on a disk
    dtype: np.dtype[Any]  # of a raw record
    shape: tuple[int, ...]
    labels: Ints
    ids: Ids
    subjects: Ids | None
    class_names: tuple[str, ...]
    hashes: Digests  # (n, 32), of the whole record
    contents: Digests  # (n, 32), of its values alone
    alive: Bools
    columns: tuple[str, ...] | None = None  # what the numbers of a record are called, in a table
    weights: NDArray[np.float64] | None = None  # how much each counts for the heads; None where all count the same

    @classmethod
    def of(cls, dataset: Dataset, *, copy: bool = True) -> "HeldRecords":
        """A copy of the records that nobody else can change, and that can be erased.

        Without a copy of the inputs, those of the dataset must be nobody else's.
        """
        return cls(
            np.array(dataset.inputs) if copy else dataset.inputs, dataset.inputs.dtype, dataset.shape,
            np.array(dataset.labels), np.array(dataset.ids),
            None if dataset.subjects is None else np.array(dataset.subjects), dataset.class_names,
            np.array(dataset.record_hashes()), np.array(value_hashes(dataset.inputs)),
            np.ones(len(dataset), dtype=bool), dataset.columns,
            None if dataset.weights is None else np.array(dataset.weights),
        )  # fmt: skip

    @once
    def _living_order(self) -> Ints:
        """The rows of the records that are there, in the order of their ids. Of others not even the place is kept."""
        rows = np.flatnonzero(self.alive)
        return rows[np.argsort(self.ids[rows], kind="stable")]

    def ids_and_hashes(self) -> tuple[Ids, Digests]:
        """Those of the records that are there, in the order of their rows."""
        rows = np.flatnonzero(self.alive)
        return self.ids[rows], self.hashes[rows]

    def rows(self, ids: Ids) -> Ints:
        """Where the records with these ids stand, −1 for those that are not here."""
        found = np.full(len(ids), -1, dtype=np.int64)
        order = self._living_order
        if len(order) and len(ids) and ids.dtype.kind == self.ids.dtype.kind:
            places = order[np.minimum(np.searchsorted(self.ids[order], ids), len(order) - 1)]
            found[self.ids[places] == ids] = places[self.ids[places] == ids]
        return found

    def of_subjects(self, subjects: Ids) -> Ints:
        """The rows of all records about these people."""
        if self.subjects is None:
            raise DataError("the records do not say whom they are about: they have no subject ids")
        return np.flatnonzero(self.alive & np.isin(self.subjects, subjects))

    def people_without(self, rows: Ints) -> list[Any]:
        """Whom no record is about once these rows are gone."""
        if self.subjects is None or not len(rows):
            return []
        staying = self.alive.copy()
        staying[rows] = False
        leaving: list[Any] = np.setdiff1d(self.subjects[rows], self.subjects[staying]).tolist()
        return leaving

    def retained(self) -> Dataset:
        """The records that are there, as a dataset of their own, in the order of their ids."""
        return self.select(np.flatnonzero(self.alive)).in_order()

    def select(self, rows: Ints) -> Dataset:
        """Some of them."""
        if self.inputs is None:
            raise DataError(
                "this needs the raw records, which a workspace does not keep: bring them with the request, as in "
                "workspace.unlearn(ids, records=dataset)"
            )
        subjects = None if self.subjects is None else self.subjects[rows]
        weights = None if self.weights is None else self.weights[rows]
        return Dataset(
            take(self.inputs, rows), self.labels[rows], self.class_names, self.ids[rows], subjects,
            columns=self.columns, weights=weights,
        )  # fmt: skip

    def held(self) -> frozenset[tuple[str, str, bytes]]:
        """The records that are there, by id, class and hash of their values."""
        rows = np.flatnonzero(self.alive)
        names = [self.class_names[label] for label in self.labels[rows].tolist()]
        found = zip(self.ids[rows].tolist(), names, self.contents[rows], strict=True)
        return frozenset((str(id_), name, content.tobytes()) for id_, name, content in found)

    @once
    def present(self) -> Ints:
        """The classes that have records, by number."""
        return np.flatnonzero(np.bincount(self.labels[self.alive], minlength=len(self.class_names)))

    def twins(self, rows: Ints) -> int:
        """How many other records have the very inputs of one of these."""
        if not len(rows):
            return 0
        # The first eight bytes of a hash tell nearly all records apart; the rest is looked at where they agree.
        first = self.contents.view(np.uint64)[:, 0]
        wanted = np.sort(first[rows])
        alike = wanted[np.minimum(np.searchsorted(wanted, first), len(wanted) - 1)] == first
        alike &= self.alive
        alike[rows] = False
        whole = {digest.tobytes() for digest in self.contents[rows]}
        return sum(digest.tobytes() in whole for digest in self.contents[alike])

    @once
    def content_hash(self) -> str:
        """One hash for all records that are there: that of the dataset of them."""
        names = tuple(self.class_names[label] for label in self.present.tolist())
        return content_hash(self.hashes[self._living_order], self.dtype, self.shape, names)

    def without(self, rows: Ints) -> "HeldRecords":
        """The same without these; `erase` of the result overwrites them, for this one too."""
        alive = self.alive.copy()
        alive[rows] = False
        lighter = replace(self, alive=alive)
        known = self._living_order
        lighter.__dict__["_living_order"] = known[alive[known]]  # found already, but for these
        return lighter

    def without_records(self) -> "HeldRecords":
        """The same without the raw records, as a disk holds it."""
        bare = replace(self, inputs=None)
        for name in {"_living_order", "present", "content_hash"} & self.__dict__.keys():
            bare.__dict__[name] = self.__dict__[name]  # found already, and the same
        return bare

    def without_names(self, gone: Ints) -> "HeldRecords":
        """The same without the names of classes that have no records left: they may be those of people."""
        names = [without_name(label) if label in gone else name for label, name in enumerate(self.class_names)]
        return replace(self, class_names=tuple(names))

    def with_classes(self, classes: Classes) -> "HeldRecords":
        """The same with more classes, and with other numbers for those that it has."""
        labels = classes.number_of[self.labels] if classes.renumbered else self.labels
        return replace(self, labels=labels, class_names=classes.names)

    def with_added(self, more: "HeldRecords") -> "HeldRecords":
        """The same with more records, which get the rows after the last."""
        subjects = None
        if self.subjects is not None and more.subjects is not None:
            subjects = np.concatenate([self.subjects, more.subjects])
        inputs = None
        if self.inputs is not None and more.inputs is not None:
            inputs = np.concatenate([self.inputs, more.inputs])
        weights = None
        if self.weights is not None and more.weights is not None:
            weights = np.concatenate([self.weights, more.weights])
        return HeldRecords(
            inputs, self.dtype, self.shape, np.concatenate([self.labels, more.labels]),
            np.concatenate([self.ids, more.ids]), subjects, self.class_names,
            np.concatenate([self.hashes, more.hashes]), np.concatenate([self.contents, more.contents]),
            np.concatenate([self.alive, more.alive]), self.columns, weights,
        )  # fmt: skip

    def with_records(self, dataset: Dataset) -> "HeldRecords":
        """The same with the raw records at hand, from a dataset that has every one of them unchanged.

        It may have others, such as those that were forgotten: they are not looked at.
        """
        order = self._living_order
        known = np.isin(self.ids[order], dataset.ids)
        if not known.all():
            raise DataError(
                f"{int((~known).sum()):,} of the {len(order):,} records of the model are not in this data: "
                "bring the data that it was fitted on"
            )
        retained = self.numbered_alike(dataset.select(self.ids[order]))
        if retained.content_hash() != self.content_hash:
            changed = int((retained.record_hashes() != self.hashes[order]).any(axis=1).sum())
            raise DataError(
                f"{changed:,} of the {len(order):,} records of the model differ from those in this data: "
                "bring them as they were fitted, and replaced ones as they are now"
            )
        inputs = np.zeros((len(self.ids), *self.shape), self.dtype)
        inputs[order] = retained.inputs
        return replace(self, inputs=inputs)

    def numbered_alike(self, dataset: Dataset) -> Dataset:
        """The same records with the classes of these, if they have no others, whichever order those stood in."""
        number = {self.class_names[label]: label for label in self.present.tolist()}
        used = {dataset.class_names[label] for label in np.unique(dataset.labels).tolist()}
        if not used <= number.keys():
            return dataset
        numbers = np.array([number.get(name, -1) for name in dataset.class_names], dtype=np.int64)
        return replace(dataset, labels=numbers[dataset.labels], class_names=self.class_names)

    def erase(self) -> None:
        """Overwrite everything that is left of records that are gone."""
        gone = ~self.alive
        for array in (self.inputs, self.labels, self.hashes, self.contents, self.weights):
            if array is not None:
                array[gone] = 0
        for ids in (self.ids, self.subjects):
            if ids is not None:
                ids[gone] = np.zeros(1, ids.dtype)[0]


def shuffled(dataset: Dataset, key: bytes) -> Dataset:
    """The records in an order that only the key knows: an empty row between two others then names nobody."""
    places = [hmac.digest(key, framed(b"row", identifier_bytes(id_)), "sha256") for id_ in dataset.ids.tolist()]
    return dataset.select(dataset.ids[sorted(range(len(places)), key=places.__getitem__)])
