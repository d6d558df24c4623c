"""Records by the names of their columns, dictionaries or a frame, encoded as those that were fitted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import named
from maxrr.data.dataset import Dataset
from maxrr.data.encoding import Encoding
from maxrr.data.tables import Columns, columns_of_frame, inputs_of
from maxrr.errors import DataError


@dataclass(frozen=True)
class Rows:
    """Columns by their names, as a frame has them."""

    cells: dict[str, NDArray[Any]]
    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.cells[name]


def are_named(given: Any) -> bool:
    """Whether records come with the names of their columns: a dictionary, a list of these, or a frame."""
    if isinstance(given, (list, tuple)):
        return len(given) > 0 and isinstance(given[0], Mapping)
    return isinstance(given, Mapping) or hasattr(given, "columns")


def are_inputs(given: Any, inputs: Sequence[str]) -> bool:
    """Whether a frame has just these columns, in this order."""
    columns = getattr(given, "columns", None)
    return columns is not None and tuple(columns) == tuple(inputs)


def encoded(given: Any, inputs: Sequence[str], encoding: Encoding, kind: np.dtype[Any]) -> NDArray[Any]:
    """The inputs of records that come with the names of their columns, in any order."""
    if isinstance(given, Dataset):
        raise DataError("the records are a Dataset, whose inputs are encoded already: bring these, records.inputs")
    if isinstance(given, (list, tuple, Mapping)):
        rows = of_one_dictionary(given) if isinstance(given, Mapping) else of_dictionaries(given)
        found = Columns(list(rows.cells), rows.__getitem__, "row {}".format, len(rows))
    else:
        found = columns_of_frame(given)
    with named("the records"):
        return inputs_of(found, (), encoding.columns_of(inputs), encoding).as_type(kind)


def of_one_dictionary(given: Mapping[str, Any]) -> Rows:
    """One record, if its values are single ones, or a list of values for each column."""
    single = [name for name, value in given.items() if not isinstance(value, (list, tuple)) and np.ndim(value) == 0]
    if len(single) == len(given):
        return of_dictionaries([given])
    counts = {name: len(value) for name, value in given.items() if name not in single}
    if single or len(set(counts.values())) > 1:
        raise DataError(
            f"the columns of a dictionary are all single values, or lists of one length, not {single or counts!r:.80}"
        )
    (count,) = set(counts.values())
    return Rows({name: np.fromiter(value, dtype=object, count=count) for name, value in given.items()}, count)


def of_dictionaries(given: Sequence[Any]) -> Rows:
    """One record per dictionary."""
    names = given[0].keys()
    for row, each in enumerate(given):
        if not isinstance(each, Mapping) or each.keys() != names:
            raise DataError(f"record {row} does not have the columns {list(names)!r:.200}: None is a missing value")
    count = len(given)
    cells = {name: np.fromiter((each[name] for each in given), dtype=object, count=count) for name in names}
    return Rows(cells, count)
