"""Data frames: pandas, polars and Arrow tables, and Parquet files, which are read as the latter.

Frames are known by what they can do: none of these packages is needed.
"""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.arrays import EXPANSION, SMALL
from maxrr.data.checks import MissingIdsError, as_array
from maxrr.data.dataset import Dataset
from maxrr.data.encoding import Encoding
from maxrr.data.labels import Cells, IdsFrom, identifiers_of_cells, index_labels
from maxrr.data.table import Columns, Table, part_of, places_of, weights_in
from maxrr.data.train_test import Part, SplitBy, divide, pair
from maxrr.errors import DataError
from maxrr.files import open_regular

UNKNOWN = "unknown"  # the class of records that have none


def from_frame(
    frame: Any, *, label: str | None = "label", id: str = "id", subject: str | None = "subject",
    weight: str | None = None, columns: Sequence[str] | None = None, ids_from: IdsFrom | None = None,
    encoding: Encoding | None = None, name: str = "",
) -> Dataset:  # fmt: skip
    """The records of a data frame of pandas or polars, or of an Arrow table.

    Inputs become float32, as those of a CSV or Parquet file: the same table gives the same records.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
        One record per row. The index of pandas is not looked at: `frame.reset_index()` makes a column of it.
    label : str or None
        The column with the class: integers, booleans or strings. None where the classes are not known, as for
        predictions.
    id : str
        The column with the record ids, integers or strings.
    subject : str or None
        The column that says whom a record is about. One called 'subject' may be missing.
    weight : str, optional
        The column that says how much a record counts.
    columns : list of str, optional
        The columns that are inputs, in this order; by default all others.
    ids_from : "content" or "rows", optional
        How to name records where there is no column of ids, as in `load`.
    encoding : Encoding, optional
        How columns that are not plain numbers become inputs: categories, missing values.
    name : str
        Where the records came from, for messages and reports.

    Returns
    -------
    Dataset
        All records. `train_and_test` splits it.

    Raises
    ------
    DataError
        A column is not there, or something in it has no meaning here; the message names the record and the column.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"visit": ["v1", "v2"], "ill": [True, False], "age": [30, 40]})
    >>> records = from_frame(frame, label="ill", id="visit")
    >>> records.ids.tolist(), records.class_names, records.inputs.tolist()
    (['v1', 'v2'], ('False', 'True'), [[30.0], [40.0]])
    """
    wanted = Columns(label, id, subject, weight, ids_from, encoding or Encoding())
    try:
        part, names = part_of_frame(frame, "the frame", wanted, columns)
    except MissingIdsError as error:
        raise MissingIdsError(
            f"{error}. The index of a frame is not used: reset_index() makes a column of it"
        ) from None
    codes, _, classes = index_labels(part.labels, [], (UNKNOWN,) if label is None else None)
    return Dataset(part.inputs, codes, classes, part.ids, part.subjects, name, names, part.weights)


def part_of_frame(
    frame: Any, source: str, wanted: Columns, columns: Sequence[str] | None = None
) -> tuple[Part, tuple[str, ...]]:  # fmt: skip
    """The records of a frame, and what their inputs are called."""
    header = names_of(frame)
    if columns is not None:
        absent = [name for name in columns if name not in header]
        if absent:
            raise DataError(f"{source}: has no column {', '.join(map(repr, absent))}")
        taken = [name for name in columns if name in wanted.others]
        if taken:
            raise DataError(
                f"{source}: {taken[0]!r} cannot be an input: it is the label, id, subject or weight of the records. "
                "Leave it out of the columns, or say by label=…, id=…, subject=… or weight=… which column is"
            )
        header = [*(name for name in wanted.others if name in header), *columns]
    table = table_of(
        frame, source, header, wanted.others, check=wanted.check, encoding=wanted.encoding, id=wanted.id,
        drop=wanted.drop,
    )  # fmt: skip
    others = {
        name: identifiers_of_cells(cells, f"{source}: the values of column {name!r}", labels=name == wanted.label)
        for name, cells in table.others.items() if name != wanted.weight
    }  # fmt: skip
    if wanted.weight is not None:
        others[wanted.weight] = weights_in(table, wanted.weight)
    return part_of(table, wanted, others), table.columns


def table_of(
    frame: Any, source: str, header: Sequence[str], others: Collection[str], columns: Sequence[str] | None = None, *,
    check: Callable[[Sequence[str]], None] | None = None, encoding: Encoding | None = None, id: str | None = None,
    drop: Sequence[str] = (),
) -> Table:  # fmt: skip
    """Inputs, and the columns called `others` as far as they are there. See `maxrr.data.csv_file.parsed`."""
    how = encoding or Encoding()
    try:
        if check:
            check(header)
        inputs = [header[place] for place in places_of(header, [*others, *drop], columns)]
        how.check_columns(inputs)
        found: dict[str, Cells] = {
            name: cells_of(frame, name) for name in others if name in header and name not in (columns or ())
        }

        def where(row: int) -> str:
            return (
                f"row {row}"
                if id is None or id not in found
                else f"record {np.asarray(found[id])[row : row + 1].tolist()[0]!r}"
            )

        if not len(frame):
            raise DataError("has no records")
        names, numbers = how.encode(inputs, lambda name: cells_of(frame, name), where)
    except DataError as error:
        raise type(error)(f"{source}: {error}") from None
    return Table(source, names, numbers, found, where)


def names_of(frame: Any) -> list[str]:
    """What the columns of a frame are called."""
    if callable(getattr(frame, "collect", None)) or not hasattr(frame, "columns"):
        raise DataError(
            f"records come from a frame of pandas or polars or an Arrow table, not from a {type(frame).__name__}: "
            "collect() a lazy one, and give arrays to Dataset"
        )
    names = list(getattr(frame, "column_names", frame.columns))
    if not all(isinstance(name, str) for name in names):
        raise DataError(f"the names of columns must be strings, not {names!r:.80}: rename them")
    return names


def cells_of(frame: Any, name: str) -> NDArray[Any]:
    """The values of one column. What is no number, and what has missing values, is an array of objects or of NaN."""
    return as_array(frame[name])


CELL = 8  # bytes that a value takes in memory, about


def read_parquet(
    path: Path, wanted: Columns, split_by: SplitBy = "subject", whole: bool = False
) -> tuple[Dataset, Dataset]:  # fmt: skip
    """Training and test records from a Parquet file. Inputs are stored as float32."""
    part, columns = part_of_frame(frame_in(path), str(path), wanted)
    return pair(*divide(part, str(path), split_by), str(path), columns=columns, whole=whole)


def frame_in(path: Path) -> Any:
    """The table in a Parquet file, as Arrow has it.

    Raises
    ------
    DataError
        It is damaged, or a small file that would fill the memory; or pyarrow is not installed.
    """

    def read(opened: Any) -> Any:
        whole = opened.metadata.num_rows * opened.metadata.num_columns * CELL
        if whole > max(SMALL, EXPANSION * path.stat().st_size):
            raise DataError(
                f"{path}: would unpack to {whole:,} bytes, many times its size. If it is yours, read it with "
                "pandas or polars, and use maxrr.data.from_frame"
            )
        return opened.read()

    return _open_parquet(path, read)


def header_of_parquet(path: Path) -> list[str]:
    """What the columns of a Parquet file are called."""
    return list(_open_parquet(path, lambda opened: opened.schema_arrow.names))


def _open_parquet(path: Path, read: Callable[[Any], Any]) -> Any:
    """What `read` makes of a Parquet file. Errors get its name."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise DataError("reading Parquet files needs pyarrow: pip install 'maxrr[parquet]'") from None
    with open_regular(path) as file:
        try:
            return read(ParquetFile(file))
        except (ArrowException, OSError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path}: cannot be read as Parquet: {error}") from None
