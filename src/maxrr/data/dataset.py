"""Records known by their ids, never by their row numbers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxrr.data import checks, hashes
from maxrr.data.arrays import scratch, take
from maxrr.data.fields import described
from maxrr.errors import DataError, NoSubjects, UnknownId, UnknownSubject
from maxrr.once import once

Ids = NDArray[Any]
"""Record or subject ids: a NumPy array of int64 or of strings, one per record."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Records of one shape with labels and ids, in memory or memory-mapped.

    Arrays are checked when the dataset is made and must not be changed afterwards. Inputs are not copied, but for
    several that are not in one array yet. A memory map is never loaded whole.

    Parameters
    ----------
    inputs : (n, …) array, or several
        Images (n, channels, height, width), tables (n, d), token ids (n, length). uint8 are pixels of 0 to 255, which
        networks divide by 255 as they read them; float16, float32 and float64 become the type that the network computes
        in; other integers and booleans reach it as they are. For a network with several inputs give a dictionary of
        arrays, by the names of its arguments, or a tuple of arrays, in their order: they are kept as one structured
        array, with one field for each.
    labels : (n,) array
        Indices into `class_names`.
    class_names : tuple of str
        The names of the classes, all different. A class may have no records.
    ids : (n,) array
        The record ids: unique, integers or strings.
    subjects : (n,) array, optional
        The person that each record is about, integers or strings. One person may have many records.
    name : str
        Where the records came from, for messages and reports. Hashes do not depend on it.
    columns : tuple of str, optional
        The names of the columns of a table, one per number of a record. Hashes do not depend on them.
    weights : (n,) array, optional
        How much each record counts where the heads are fitted: positive numbers, kept as float64. Where they are given,
        a record's hash covers its weight.
    drafted : int
        Of how many columns `maxrr.data.prepare` has read the encoding off the records: a condition of every model that
        is fitted on them.

    Raises
    ------
    DataError
        Arrays differ in length, ids repeat, labels are outside the classes, inputs have NaN or infinity, or a weight
        is not a positive number.

    Examples
    --------
    >>> data = Dataset(np.array([[0.5], [1.5], [2.5]]), [0, 1, 1], ("no", "yes"), ["a", "b", "c"])
    >>> data.without(["b"]).ids.tolist(), data.select(["c", "a"]).labels.tolist()
    (['a', 'c'], [1, 0])
    >>> Dataset({"ids": [[7, 3], [5, 0]], "mask": [[True, True], [True, False]]}, [0, 1], ("no", "yes"), ["a", "b"])
    <Dataset 2 records of ids int64 of shape (2,) and mask bool of shape (2,), 2 classes>
    """

    inputs: NDArray[Any]
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    ids: Ids
    subjects: Ids | None = None
    name: str = ""
    columns: tuple[str, ...] | None = None
    weights: NDArray[np.float64] | None = None
    drafted: int = 0

    def __post_init__(self) -> None:
        inputs = checks.check_inputs(self.inputs)
        ids = checks.check_identifiers(self.ids, "record ids")
        class_names = tuple(self.class_names)
        if len(ids) != len(inputs):
            raise DataError(f"there are {len(inputs)} records, but {len(ids)} ids: one id per record")
        checks.check_unique(ids)
        labels = checks.check_labels(self.labels, ids, class_names)
        subjects = None if self.subjects is None else checks.check_identifiers(self.subjects, "subject ids")
        if subjects is not None and len(subjects) != len(ids):
            raise DataError(f"there are {len(ids)} records, but {len(subjects)} subject ids: one per record, or none")
        checks.check_finite(inputs, ids)
        columns = None if self.columns is None else checks.check_columns(self.columns, inputs.shape[1:])
        weights = None if self.weights is None else checks.check_weights(self.weights, ids)
        ids.flags.writeable = False  # they are our own copy, and the index below relies on them
        checked = {
            "inputs": inputs, "labels": labels, "class_names": class_names, "ids": ids, "subjects": subjects,
            "columns": columns, "weights": weights,
        }  # fmt: skip
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        named = f"{self.name}: " if self.name else ""
        each = self.shape if self.inputs.dtype.names is None else described(self.inputs.dtype, self.shape)
        return f"<Dataset {named}{len(self)} records of {each}, {len(self.class_names)} classes>"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one record; () where it has several inputs: `inputs.dtype` has their types and shapes."""
        return self.inputs.shape[1:]

    @once
    def _order(self) -> NDArray[np.int64]:
        """Row numbers in the order of the ids."""
        return np.argsort(self.ids, kind="stable").astype(np.int64)

    def rows(self, ids: ArrayLike) -> NDArray[np.int64]:
        """Find the rows of the records with these ids.

        Parameters
        ----------
        ids
            One id or several.

        Returns
        -------
        ndarray
            One row number per id, in the order of `ids`.

        Raises
        ------
        DataError
            No record has one of these ids.
        """
        wanted = checks.check_identifiers(checks.listed(ids), "record ids")
        if not len(wanted):
            return np.empty(0, dtype=np.int64)
        if not len(self) or wanted.dtype.kind != self.ids.dtype.kind:
            raise UnknownId(f"no record has id {checks.some(wanted)}")
        found = self._order[np.minimum(np.searchsorted(self.ids, wanted, sorter=self._order), len(self) - 1)]
        unknown = self.ids[found] != wanted
        if unknown.any():
            raise UnknownId(f"no record has id {checks.some(wanted[unknown])}")
        return found

    def select(self, ids: ArrayLike) -> "Dataset":
        """The records with these ids.

        Parameters
        ----------
        ids
            One id or several. An unknown one is a `DataError`.

        Returns
        -------
        Dataset
            These records, in the order of `ids`.
        """
        return self._take(self.rows(ids))

    def without(self, ids: ArrayLike) -> "Dataset":
        """All records except those with these ids.

        Parameters
        ----------
        ids
            One id or several. An unknown one is a `DataError`.

        Returns
        -------
        Dataset
            The other records, in the order they have here.
        """
        kept = np.ones(len(self), dtype=bool)
        kept[self.rows(ids)] = False
        return self._take(np.flatnonzero(kept))

    def join(self, *others: "Dataset") -> "Dataset":
        """Append the records of other datasets. Classes are the same if they have the same name.

        Parameters
        ----------
        *others
            Datasets of the same kind of records: of one type and shape, with the same columns, and with subjects and
            weights if these have them.

        Returns
        -------
        Dataset
            All records. Classes that come with others stand after those that are here.

        Raises
        ------
        DataError
            Two records have one id, or the records are not of one kind: join only what one model could have.

        Examples
        --------
        >>> cats = Dataset(np.array([[0.5], [1.5]]), [0, 0], ("cat",), ["a", "b"])
        >>> more = Dataset(np.array([[2.5], [0.7]]), [0, 1], ("ant", "cat"), ["c", "d"])
        >>> both = cats.join(more)
        >>> both.class_names, both.labels.tolist()
        (('cat', 'ant'), [0, 0, 1, 0])
        """
        parts = (self, *others)
        for other in others:
            checks.check_same_inputs(self, other)
            checks.check_same_kind(self, other)
        names = tuple(dict.fromkeys(name for part in parts for name in part.class_names))
        places = {name: place for place, name in enumerate(names)}
        labels = [np.array([places[name] for name in part.class_names], np.int64)[part.labels] for part in parts]
        subjects = [part.subjects for part in parts if part.subjects is not None]
        weights = [part.weights for part in parts if part.weights is not None]
        return replace(
            self, inputs=stacked([part.inputs for part in parts]), labels=np.concatenate(labels), class_names=names,
            ids=np.concatenate([part.ids for part in parts]), subjects=np.concatenate(subjects) if subjects else None,
            columns=next((part.columns for part in parts if part.columns is not None), None),
            weights=np.concatenate(weights) if weights else None,
        )  # fmt: skip

    def in_order(self) -> "Dataset":
        """The same records sorted by id, integers as numbers and strings by code point.

        Returns
        -------
        Dataset
            The sorted records; this dataset itself if they are sorted already.
        """
        return self if np.array_equal(self._order, np.arange(len(self))) else self._take(self._order)

    def of_subjects(self, subjects: ArrayLike) -> Ids:
        """The ids of all records about these people.

        Parameters
        ----------
        subjects
            One subject id or several.

        Returns
        -------
        ndarray
            Record ids, in the order they have here.

        Raises
        ------
        DataError
            No record is about one of these subjects, or the dataset has no subject ids.
        """
        if self.subjects is None:
            raise NoSubjects("this dataset does not say whom its records are about: it has no subject ids")
        wanted = checks.check_identifiers(checks.listed(subjects), "subject ids")
        if len(wanted) and wanted.dtype.kind != self.subjects.dtype.kind:
            raise UnknownSubject(f"no record is about subject {checks.some(wanted)}")
        unknown = ~np.isin(wanted, self.subjects)
        if unknown.any():
            raise UnknownSubject(f"no record is about subject {checks.some(wanted[unknown])}")
        return self.ids[np.isin(self.subjects, wanted)]

    def record_hashes(self) -> NDArray[np.uint8]:
        """SHA-256 of each record: over id, subject, class name, weight if it has one, and inputs with type and shape.

        Returns
        -------
        ndarray of uint8, shape (n, 32)
            One hash per record, in the order they have here.
        """
        names = [self.class_names[label] for label in self.labels.tolist()]
        return hashes.record_hashes(self.inputs, names, self.ids, self.subjects, self.weights)

    def content_hash(self) -> str:
        """One hash over all records. It does not depend on their order, nor on classes without records.

        Returns
        -------
        str
            64 hexadecimal digits.
        """
        ordered = self.record_hashes()[self._order]
        names = tuple(self.class_names[label] for label in np.unique(self.labels).tolist())
        return hashes.content_hash(ordered, self.inputs.dtype, self.shape, names)

    def _take(self, rows: NDArray[np.int64]) -> "Dataset":
        subjects = None if self.subjects is None else self.subjects[rows]
        weights = None if self.weights is None else self.weights[rows]
        return replace(
            self, inputs=take(self.inputs, rows), labels=self.labels[rows], ids=self.ids[rows], subjects=subjects,
            weights=weights,
        )  # fmt: skip


def stacked(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    """Stack the rows of several arrays. Large results are never in memory at once."""
    found = scratch((sum(map(len, arrays)), *arrays[0].shape[1:]), arrays[0].dtype)
    start = 0
    for array in arrays:
        for row, block in checks.blocks(array):
            found[start + row : start + row + len(block)] = block
        start += len(array)
    return found
