"""An .npy file of embeddings, or of other inputs, with a table beside it that says what its rows are."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data import csv_file, parquet
from maxrr.data.arrays import map_npy
from maxrr.data.checks import check_inputs
from maxrr.data.dataset import Dataset
from maxrr.data.frames import cells_of, names_of
from maxrr.data.labels import as_identifiers, identifiers_of_cells, labels_of_texts, made_ids
from maxrr.data.table import Columns, weights_of
from maxrr.data.train_test import Part, SplitBy, divide, pair
from maxrr.errors import DataError


def read(
    path: Path, meta: Path, wanted: Columns, split_by: SplitBy = "subject", whole: bool = False
) -> tuple[Dataset, Dataset]:  # fmt: skip
    """Training and test records: inputs from the .npy file, which is not loaded, the rest from the table's columns.

    The first line of the table is about the first row of the file, and so on. Other columns are not looked at.
    """
    try:
        inputs = check_inputs(map_npy(path))
    except DataError as error:
        raise DataError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from None
    said = columns_in(meta, wanted)
    if wanted.label not in said:
        raise DataError(f"{meta}: has no column {wanted.label!r}: say which is the label")
    rows = len(next(iter(said.values())))
    if rows != len(inputs):
        raise DataError(f"{meta}: is about {rows:,} records, and {path} has {len(inputs):,}: one line per record")
    ids = said[wanted.id] if wanted.id in said else made_ids([inputs], wanted.ids_from)[0]
    subjects, weights = (None if name is None else said.get(name) for name in (wanted.subject, wanted.weight))
    part = Part(inputs, said[wanted.label], ids, subjects, weights)
    sides = (part, part.at(np.zeros(rows, dtype=bool))) if whole else divide(part, str(meta), split_by)
    return pair(*sides, str(path))


def columns_in(meta: Path, wanted: Columns) -> dict[str, NDArray[Any]]:
    """What a table says of the records, by the names of its columns."""
    if meta.suffix == ".csv":
        found: dict[str, Any] = {}
        for name, cells in csv_file.texts_in(meta, wanted.others, wanted.check).items():
            read = labels_of_texts if name == wanted.label else as_identifiers
            try:
                found[name] = cells if name == wanted.weight else read(cells, f"the values of column {name!r}")
            except DataError as error:
                raise DataError(f"{meta}: {error}") from None
    elif meta.suffix == ".parquet":
        frame = parquet.frame_in(meta)
        header = names_of(frame)
        try:
            wanted.check(header)
        except DataError as error:
            raise type(error)(f"{meta}: {error}") from None
        found = {name: cells_of(frame, name) for name in wanted.others if name in header}
        for name in found.keys() - {wanted.weight}:
            what = f"{meta}: the values of column {name!r}"
            found[name] = identifiers_of_cells(found[name], what, labels=name == wanted.label)
    else:
        raise DataError(f"{meta}: cannot be read as a table of records: give a .csv or .parquet file")
    if wanted.weight in found:
        cells = found[wanted.weight]
        found[wanted.weight] = weights_of(cells, str(meta), wanted.weight, lambda row: f"row {row}")
    return found
