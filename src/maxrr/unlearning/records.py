"""What a model holds of its records, beside what the extractor makes of them.

Rows never move: a forgotten record's row is overwritten and stays empty, so that what else is known by row (the heads'
samples) keeps its place, and forgetting costs no copy of the others. States with the same rows share arrays and
indexes; each has flags of its own, of who is there.
"""

import hmac
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.core.shards import Sharding
from maxrr.data import Dataset
from maxrr.data.arrays import take
from maxrr.data.hashes import content_hash, framed, identifier_bytes
from maxrr.data.labels import as_identifiers
from maxrr.errors import NoSubjects, OtherRecords, RecordsMissing, UnknownClass
from maxrr.once import once
from maxrr.plain_text import first_few
from maxrr.svm.problem import changed, cleared
from maxrr.unlearning.tombstones import content_hashes

Ids = NDArray[Any]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Digests = NDArray[np.uint8]

IDS, SUBJECTS, CONTENTS = "ids", "subjects", "contents"  # indexes
Index = dict[Any, list[int]]  # rows by what they hold


@dataclass(eq=False)
class Indexes:
    """Indexes over rows that several states share: each is built when first needed, and knows which rows are to be
    erased.

    All states with the same rows share them. Rows of records that are gone are found until they are erased: whoever
    asks knows who is there.
    """

    there: Bools  # rows that are not erased
    owed: set[int] = field(default_factory=set)  # rows to be erased once they are gone
    made: dict[str, Index] = field(default_factory=dict)
    person: Ints | None = None  # whom each row is about, by number


@dataclass(frozen=True, eq=False, repr=False)
class HeldRecords:
    """The records of a model in rows: first those of the last fit in shuffled order, then added ones; and which are
    alive.
    """

    inputs: NDArray[Any] | None  # the raw records; None where their owner keeps them, as for a model on a disk
    dtype: np.dtype[Any]  # of a raw record
    shape: tuple[int, ...]
    labels: Ints
    ids: Ids
    subjects: Ids | None
    class_names: tuple[str, ...]
    hashes: Digests  # (n, 32), of the whole record
    contents: Digests  # (n, 32), of its values alone
    alive: Bools  # who is still there
    columns: tuple[str, ...] | None = None  # what the numbers of a record are called, in a table
    weights: NDArray[np.float64] | None = None  # how much each counts for the heads; None where all count the same
    indexes: Indexes = field(init=False)  # shared by all states of the same rows

    def __post_init__(self) -> None:
        object.__setattr__(self, "indexes", Indexes(self.alive))

    @classmethod
    def of(cls, dataset: Dataset, *, copy: bool = True, before: "HeldRecords | None" = None) -> "HeldRecords":
        """Copy a dataset, so that nobody else can change the records, and they can be erased.

        Without a copy of the inputs, those of the dataset must be nobody else's. Hashes are those of the records
        `before`, where they are the same ones.
        """
        if before is None:
            hashes, contents = np.array(dataset.record_hashes()), content_hashes(dataset)
        else:
            rows = before.rows(dataset.ids)
            hashes, contents = before.hashes[rows], before.contents[rows]
        return cls(
            np.array(dataset.inputs) if copy else dataset.inputs, dataset.inputs.dtype, dataset.shape,
            np.array(dataset.labels), np.array(dataset.ids),
            None if dataset.subjects is None else np.array(dataset.subjects), dataset.class_names,
            hashes, contents, np.ones(len(dataset), dtype=bool), dataset.columns,
            None if dataset.weights is None else np.array(dataset.weights),
        )  # fmt: skip

    @property
    def text_ids(self) -> bool:
        """Whether ids are texts; otherwise they are integers."""
        return self.ids.dtype.kind == "U"

    @property
    def text_subjects(self) -> bool | None:
        """Whether subject ids are texts; None where there are none."""
        return None if self.subjects is None else self.subjects.dtype.kind == "U"

    @once
    def count(self) -> int:
        """How many records are there."""
        return int(np.count_nonzero(self.alive))

    @once
    def _living_order(self) -> Ints:
        """The rows of the records that are there, in the order of their ids."""
        rows = np.flatnonzero(self.alive)
        return rows[np.argsort(self.ids[rows], kind="stable")]

    def ids_and_hashes(self) -> tuple[Ids, Digests]:
        """The ids and hashes of the records that are there, in the order of their rows."""
        rows = np.flatnonzero(self.alive)
        return self.ids[rows], self.hashes[rows]

    # Looking up

    def _keys(self, name: str, rows: Ints) -> list[Any]:
        """Return the keys under which an index has these rows."""
        if name == CONTENTS:
            return [content.tobytes() for content in self.contents[rows]]
        names = self.ids if name == IDS else self.subjects
        assert names is not None
        found: list[Any] = names[rows].tolist()
        return found

    def _index(self, name: str) -> Index:
        """Return an index by its name, built when first asked for."""
        made = self.indexes.made
        if name not in made:
            rows = np.flatnonzero(self.indexes.there)
            made[name] = with_rows({}, self._keys(name, rows), rows)
        return made[name]

    def _rows_with(self, name: str, keys: list[Any]) -> Ints:
        """Return the rows, sorted, of the records that are there and have one of these keys."""
        index = self._index(name)
        rows = (row for key in keys for row in index.get(key, ()) if self.alive[row])
        return np.array(sorted(rows), dtype=np.int64)

    def rows(self, ids: Ids) -> Ints:
        """Return the row of each of these ids; −1 for an id that no record has."""
        found, index = np.full(len(ids), -1, dtype=np.int64), self._index(IDS)
        for place, id_ in enumerate(ids.tolist()):
            for row in index.get(id_, ()):
                if self.alive[row]:
                    found[place] = row
        return found

    def shards(self, sharding: Sharding, rows: Ints) -> Ints:
        """The shards that the records of these rows are in."""
        return sharding.of(self.ids[rows], None if self.subjects is None else self.subjects[rows])

    def of_subjects(self, subjects: Ids) -> Ints:
        """The rows of all records about these people."""
        if self.subjects is None:
            raise NoSubjects("the records do not say whom they are about: they have no subject ids")
        return self._rows_with(SUBJECTS, np.unique(subjects).tolist())

    def people_of(self, rows: Bools) -> Bools:
        """Return which people these rows are about, by the number of the person. The records must have subject ids."""
        assert self.subjects is not None
        if self.indexes.person is None:
            self.indexes.person = np.unique(self.subjects, return_inverse=True)[1]
        found = np.zeros(int(self.indexes.person.max(initial=-1)) + 1, dtype=bool)
        found[self.indexes.person[rows]] = True
        return found

    def people_without(self, rows: Ints) -> list[Any]:
        """The people whom no record is about once these rows are gone."""
        if self.subjects is None or not len(rows):
            return []
        leaving, people = set(rows.tolist()), sorted(set(self.subjects[rows].tolist()))
        return [person for person in people if leaving.issuperset(self._rows_with(SUBJECTS, [person]).tolist())]

    def retained(self) -> Dataset:
        """The records that are there, as a dataset of their own, in the order of their ids."""
        return self.select(np.flatnonzero(self.alive)).in_order()

    def select(self, rows: Ints) -> Dataset:
        """The records of some rows."""
        if self.inputs is None:
            raise RecordsMissing(
                "this needs the raw records, which a workspace does not keep: say how they are read, by a function, as "
                "in Workspace.open(folder, records=load_training), or in the place of the records in Workspace.create"
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
    def counts(self) -> Ints:
        """How many records each class has, by its number."""
        return np.bincount(self.labels[self.alive], minlength=len(self.class_names))

    @once
    def present(self) -> Ints:
        """The classes that have records, by number."""
        return np.flatnonzero(self.counts)

    def counts_without(self, rows: Ints) -> Ints:
        """How many records each class has once these rows are gone."""
        return self.counts - np.bincount(self.labels[rows], minlength=len(self.counts))

    def twins(self, rows: Ints) -> int:
        """How many other records have the very inputs of one of these."""
        if not len(rows):
            return 0
        return len(self._rows_with(CONTENTS, list(set(self._keys(CONTENTS, rows))))) - len(rows)

    @once
    def content_hash(self) -> str:
        """The hash over all records that are there, as `Dataset.content_hash` has it."""
        names = tuple(self.class_names[label] for label in self.present.tolist())
        return content_hash(self.hashes[self._living_order], self.dtype, self.shape, names)

    def without(self, rows: Ints) -> "HeldRecords":
        """Return the records without some rows. `erase` overwrites these in both, once the result is taken over."""
        lighter = changed(self, alive=cleared(self.alive, rows))
        lighter.__dict__["counts"] = self.counts_without(rows)
        return lighter

    def without_inputs(self) -> "HeldRecords":
        """Return the records without their raw inputs, as a disk holds them."""
        bare = changed(self, inputs=None)
        for name in {"_living_order", "counts", "present", "content_hash"} & self.__dict__.keys():
            bare.__dict__[name] = self.__dict__[name]  # found already, and the same
        return bare

    def without_names(self, gone: Ints) -> "HeldRecords":
        """Replace the names of classes without records: a name may be that of a person."""
        names = [f"(forgotten class {label})" if label in gone else name for label, name in enumerate(self.class_names)]
        return changed(self, class_names=tuple(names))

    def with_added(self, more: "HeldRecords") -> "HeldRecords":
        """Return the records with more of them, which get the rows after the last."""
        names = ("inputs", "labels", "ids", "subjects", "hashes", "contents", "alive", "weights")
        ours = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        longer: dict[str, Any] = {name: np.concatenate([part, getattr(more, name)]) for name, part in ours.items()}
        found = replace(self, **longer)
        found.indexes.owed.update(self.indexes.owed)
        new = np.arange(len(self.ids), len(found.ids))
        for name, index in self.indexes.made.items():
            found.indexes.made[name] = with_rows(index, found._keys(name, new), new)
        return found

    def with_records(self, dataset: Dataset) -> "HeldRecords":
        """Return the records with their raw inputs, from a dataset that has every one of them unchanged.

        The dataset may have others, such as those that were forgotten: they are not looked at.
        """
        order = self._living_order
        known = np.isin(self.ids[order], dataset.ids)
        if not known.all():
            missing = f"{int((~known).sum()):,} of the {len(order):,} records of the model"
            raise OtherRecords(f"{missing} are not in this data: bring the data that it was fitted on")
        retained = self.numbered_alike(dataset.select(self.ids[order]))
        if retained.content_hash() != self.content_hash:
            differing = int((retained.record_hashes() != self.hashes[order]).any(axis=1).sum())
            raise OtherRecords(
                f"{differing:,} of the {len(order):,} records of the model differ from those in this data: "
                "bring them as they were fitted, and replaced ones as they are now"
            )
        inputs = np.zeros((len(self.ids), *self.shape), self.dtype)
        inputs[order] = retained.inputs
        return changed(self, inputs=inputs)

    def numbered_alike(self, dataset: Dataset) -> Dataset:
        """Number the classes of a dataset as these records have them; refuse classes that these records lack."""
        number = {self.class_names[label]: label for label in self.present.tolist()}
        used = [dataset.class_names[label] for label in np.unique(dataset.labels).tolist()]
        if new := [name for name in used if name not in number]:
            raise UnknownClass(
                f"the model has no records of class {new[0]!r}, but of {first_few(list(number))}: bring records of "
                "these, or fit again on the old and the new ones together"
            )
        numbers = np.array([number.get(name, -1) for name in dataset.class_names], dtype=np.int64)
        return replace(dataset, labels=numbers[dataset.labels], class_names=self.class_names)

    def owe(self, rows: Ints) -> None:
        """Mark rows to be erased once their records are gone, also if erasing is interrupted."""
        self.indexes.owed.update(rows.tolist())

    def gone(self) -> Ints:
        """The rows, sorted, that are to be erased: their records are gone."""
        return np.array(sorted(row for row in self.indexes.owed if not self.alive[row]), dtype=np.int64)

    def erase(self) -> None:
        """Overwrite the rows of records that are gone, and take them out of the indexes."""
        gone = self.gone()
        if not len(gone):
            return
        self.indexes.there = cleared(self.indexes.there, gone)
        for name, index in self.indexes.made.items():
            for key in set(self._keys(name, gone)) & index.keys():
                left = [row for row in index.pop(key) if self.indexes.there[row]]
                if left:
                    index[key] = left
        for array in (self.inputs, self.labels, self.hashes, self.contents, self.weights):
            if array is not None:
                array[gone] = 0
        for ids in (self.ids, self.subjects):
            if ids is not None:
                ids[gone] = "" if ids.dtype.kind == "U" else 0
        self.indexes.owed.clear()  # those that are there still were of a request that failed


def of_kind(ids: Ids, *, text: bool) -> Ids:
    """Convert ids to texts, or to integers where every text is one; other texts stay texts."""
    if (ids.dtype.kind == "U") == text:
        return ids
    return ids.astype(np.str_) if text else as_identifiers(ids.tolist())


def with_rows(index: Index, keys: list[Any], rows: Ints) -> Index:
    """Return an index with more rows, leaving the one before as it is."""
    more: Index = {}
    for key, row in zip(keys, rows.tolist(), strict=True):
        more.setdefault(key, []).append(row)
    return index | {key: [*index.get(key, ()), *new] for key, new in more.items()}


def shuffled(dataset: Dataset, key: bytes) -> Dataset:
    """Sort records by a keyed hash, so that an erased row is not named by its neighbours."""
    places = [hmac.digest(key, framed(b"row", identifier_bytes(id_)), "sha256") for id_ in dataset.ids.tolist()]
    return dataset.select(dataset.ids[sorted(range(len(places)), key=places.__getitem__)])
