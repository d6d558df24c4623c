"""Tables, wherever they come from: which column says what, and the records that they hold."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.dataset import Dataset
from maxrr.data.encoding import Encoding
from maxrr.data.labels import Cells, IdsFrom, Misfit, check_ids_from, made_ids, numbers_of
from maxrr.data.train_test import Part
from maxrr.errors import DataError


@dataclass(frozen=True)
class Columns:
    """Which columns of a table say what, which are the inputs, and how these become numbers.

    Ids and subjects that are looked for under their usual names may be missing, the ids only if `ids_from` makes them.
    Columns to `drop` are passed over. All others are inputs.
    """

    label: str | None = "label"
    id: str | None = "id"
    subject: str | None = "subject"
    weight: str | None = None
    ids_from: IdsFrom | None = None
    encoding: Encoding = field(default_factory=Encoding)
    drop: tuple[str, ...] = ()

    @property
    def others(self) -> list[str]:
        """The columns that say something of a record and are no inputs."""
        return [name for name in (self.label, self.id, self.subject, self.weight) if name is not None]

    def check(self, header: Sequence[str]) -> None:
        """Refuse a table that lacks what was asked for."""
        named = ", ".join(map(repr, header)) or "nothing"
        asked = ("label", self.label), ("id", self.id), ("subject", self.subject), ("weight", self.weight)
        for kind, name in asked:
            if name is not None and name not in header and (name != kind or kind in ("label", "weight")):
                raise DataError(
                    f"has no column {name!r}: its columns are {named}. Say which of them is the {kind}: {kind}=…, "
                    f"in the shell --{kind}"
                )
        for name in self.drop:
            if name not in header:
                raise DataError(f"has no column {name!r} that could be dropped: its columns are {named}")
            if name in self.others:
                raise DataError(f"the column {name!r} is the label, id, subject or weight, and cannot be dropped")
        there = self.id is not None and self.id in header
        check_ids_from(there, self.ids_from, f"the column {self.id or 'id'!r}, or another by id=… (--id)")


@dataclass(frozen=True)
class Table:
    """The inputs, and columns of other things by name. A message calls a record by `where` it stands."""

    source: str
    columns: tuple[str, ...]
    numbers: NDArray[np.float64]  # (n, columns)
    others: dict[str, Cells]
    where: Callable[[int], str]

    def as_type(self, dtype: Any) -> NDArray[Any]:
        """The numbers in another type; one that it cannot hold, NaN and infinity are `DataError`s."""
        with np.errstate(over="ignore", invalid="ignore"):
            inputs: NDArray[Any] = self.numbers.astype(dtype)
        held = np.isfinite(inputs) if inputs.dtype.kind == "f" else inputs == self.numbers
        wrong = np.argwhere(~held)
        if len(wrong):
            row, column = wrong[0].tolist()
            where, kind = f"{self.where(row)}, column {self.columns[column]!r}", np.dtype(dtype).name
            value = self.numbers[row, column]
            raise DataError(f"{self.source}: {where}: {value} is not a finite number in {kind}")
        return inputs


def places_of(header: Sequence[str], others: Collection[str], columns: Sequence[str] | None) -> list[int]:
    """Where the columns of inputs stand."""
    named = ", ".join(map(repr, header)) or "nothing"
    if len(set(header)) < len(header):
        raise DataError(f"names a column twice: its columns are {named}")
    if columns is None:
        places = [place for place, name in enumerate(header) if name not in others]
        if not places:
            raise DataError(f"has no inputs: its columns are {named}")
        return places
    missing = [name for name in columns if name not in header]
    if missing:
        raise DataError(f"has no column {', '.join(map(repr, missing))}: its columns are {named}")
    unknown = [name for name in header if name not in columns and name not in others]
    if unknown:
        wanted = ", ".join(map(repr, columns))
        raise DataError(f"has a column {', '.join(map(repr, unknown))}, which is unknown: the columns are {wanted}")
    return [header.index(name) for name in columns]


def part_of(table: Table, wanted: Columns, others: dict[str, NDArray[Any]]) -> Part:
    """The records of a table, with what its other columns say of them."""
    inputs = table.as_type(np.float32)
    if wanted.id in others:
        ids = others[wanted.id]
    else:
        in_order = inputs[:, np.argsort(table.columns)]  # so that the order of columns is no part of an id
        (ids,) = made_ids([in_order], wanted.ids_from)
    labels = np.zeros(len(inputs), dtype=np.int64) if wanted.label is None else others[wanted.label]
    subjects, weights = (None if name is None else others.get(name) for name in (wanted.subject, wanted.weight))
    return Part(inputs, labels, ids, subjects, weights)


def weights_in(table: Table, name: str) -> NDArray[np.float64]:
    """The column of weights as numbers. Whether they are positive is seen later."""
    return weights_of(table.others[name], table.source, name, table.where)


def weights_of(cells: Cells, source: str, name: str, where: Callable[[int], str]) -> NDArray[np.float64]:
    """A column of weights as numbers, wherever its cells come from."""
    try:
        return numbers_of(cells)
    except Misfit as misfit:
        raise DataError(f"{source}: {where(misfit.row)}, column {name!r}: is no weight") from None


# Tables whose columns have changed places.


def in_order_of(known: tuple[str, ...] | None, dataset: Dataset) -> Dataset:
    """The records with their columns in the order that is known, where both have names for the same ones.

    >>> import numpy as np
    >>> table = Dataset(np.array([[1.0, 2.0]]), [0], ("yes",), [7], columns=("age", "income"))
    >>> in_order_of(("income", "age"), table).inputs
    array([[2., 1.]])
    """
    own = dataset.columns
    if known is None or own is None or own == known or set(own) != set(known):
        return dataset
    return replace(dataset, inputs=dataset.inputs[:, [own.index(name) for name in known]], columns=known)
