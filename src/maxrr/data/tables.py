"""Tables: CSV and Parquet files, frames of pandas and polars, Arrow tables. The same table gives the same records.

Frames are known by what they can do: none of these packages is needed, but pyarrow for Parquet files.
"""

import csv
import io
import re
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import as_array, check_blanks, named
from maxrr.data.dataset import Dataset
from maxrr.data.encoding import Encoding, encode
from maxrr.data.labels import (
    Cells,
    IdsFrom,
    Misfit,
    as_identifiers,
    index_labels,
    labels_of_texts,
    made_ids,
    not_a_number,
    number,
    numbers_of,
)
from maxrr.data.reading import Reading
from maxrr.data.train_test import Part
from maxrr.errors import DataError, MissingColumn, UnreadableFile
from maxrr.files import open_regular

SUFFIXES = (".csv", ".parquet")
UNKNOWN = "unknown"  # the class of records that have none


@dataclass(frozen=True)
class Columns:
    """The columns of a table as its source has them, by name. A message calls a record by `where` it stands."""

    header: list[str]
    cells: Callable[[str], Cells]
    where: Callable[[int], str]
    records: int


@dataclass(frozen=True)
class Inputs:
    """The inputs of a table: a name for each, and a number for each record."""

    names: tuple[str, ...]
    numbers: NDArray[np.float64]  # (records, inputs)
    where: Callable[[int], str]

    def as_type(self, dtype: Any) -> NDArray[Any]:
        """Convert the numbers to another type; refuse one that does not fit, NaN and infinity."""
        with np.errstate(over="ignore", invalid="ignore"):
            inputs: NDArray[Any] = self.numbers.astype(dtype)
        held = np.isfinite(inputs) if inputs.dtype.kind == "f" else inputs == self.numbers
        wrong = np.argwhere(~held)
        if len(wrong):
            row, column = wrong[0].tolist()
            value, kind = self.numbers[row, column], np.dtype(dtype).name
            raise DataError(f"{self.where(row)}, column {self.names[column]!r}: {value} is not finite in {kind}")
        return inputs


def from_frame(
    frame: Any, *, label: str | None = "label", id: str = "id", subject: str | None = "subject",
    weight: str | None = None, ids_from: IdsFrom | None = None, encoding: Encoding | None = None, name: str = "",
) -> Dataset:  # fmt: skip
    """The records of a data frame of pandas or polars, or of an Arrow table.

    Inputs become float32, as those of a CSV or Parquet file: the same table gives the same records.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
        One record per row. All columns that are not named below are inputs. The index of pandas is not looked at:
        `frame.reset_index()` makes a column of it.
    label : str or None
        The column with the class: integers, booleans or strings. None where the classes are not known, as for
        predictions.
    id : str
        The column with the record ids, integers or strings.
    subject : str or None
        The column that says whom a record is about. One called 'subject' may be missing.
    weight : str, optional
        The column that says how much a record counts.
    ids_from : "content" or "rows", optional
        How to name records where there is no column of ids, as in `load`.
    encoding : Encoding, optional
        How columns that are not plain numbers become inputs: categories, dates, lists, missing values.
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
    reading = Reading(label, id, subject, weight, ids_from=ids_from, encoding=encoding or Encoding())
    found = columns_of_frame(frame, id)
    with named("the frame"):
        reading.check(found.header)
        part, names = part_of(found, reading)
    codes, _, classes = index_labels(part.labels, [], (UNKNOWN,) if label is None else None)
    return Dataset(part.inputs, codes, classes, part.ids, part.subjects, name, names, part.weights)


# From columns to records


def part_of(found: Columns, reading: Reading) -> tuple[Part, tuple[str, ...]]:
    """Make records from a table, and return the names of their inputs with them."""
    others = others_of(found, reading)
    table = inputs_of(found, [*reading.others, *reading.drop], None, reading.encoding)
    inputs = table.as_type(np.float32)
    if reading.id in others:
        ids = others[reading.id]
    else:
        in_order = inputs[:, np.argsort(table.names)]  # so that the order of columns is no part of an id
        (ids,) = made_ids([in_order], reading.ids_from)
    labels = np.zeros(len(inputs), dtype=np.int64) if reading.label is None else others[reading.label]
    subjects, weights = (None if name is None else others.get(name) for name in (reading.subject, reading.weight))
    return Part(inputs, labels, ids, subjects, weights), table.names


def others_of(found: Columns, reading: Reading) -> dict[str, NDArray[Any]]:
    """Read the columns that are no inputs."""
    others: dict[str, NDArray[Any]] = {}
    for name in (name for name in reading.others if name in found.header):
        cells, what = found.cells(name), f"the values of column {name!r}"
        if isinstance(cells, list) and "" in cells:
            raise DataError(f"{found.where(cells.index(''))} has nothing in column {name!r}")
        if name == reading.weight:
            try:
                others[name] = numbers_of(cells)
            except Misfit as misfit:
                raise DataError(f"{found.where(misfit.row)}, column {name!r}: is no weight") from None
        elif not isinstance(cells, list):
            others[name] = as_array(cells)
            check_blanks(others[name], what)
        elif name == reading.label:
            others[name] = labels_of_texts(cells, what, found.where)
        else:
            others[name] = as_identifiers(cells, what)
    return others


def inputs_of(found: Columns, others: Collection[str], columns: Sequence[str] | None, encoding: Encoding) -> Inputs:
    """Encode the inputs of a table: all columns but `others`, or exactly the given ones in their order."""
    names = [found.header[place] for place in places_of(found.header, others, columns)]
    if not found.records:
        raise DataError("has no records")
    return Inputs(*encode(encoding, names, found.cells, found.where), found.where)


def places_of(header: Sequence[str], others: Collection[str], columns: Sequence[str] | None) -> list[int]:
    """Find where the columns of inputs stand."""
    words = ", ".join(map(repr, header)) or "nothing"
    if len(set(header)) < len(header):
        raise DataError(f"names a column twice: its columns are {words}")
    if columns is None:
        places = [place for place, name in enumerate(header) if name not in others]
        if not places:
            raise DataError(f"has no inputs: its columns are {words}")
        return places
    missing = [name for name in columns if name not in header]
    if missing:
        raise MissingColumn(f"has no column {', '.join(map(repr, missing))}: its columns are {words}")
    unknown = [name for name in header if name not in columns and name not in others]
    if unknown:
        wanted = ", ".join(map(repr, columns))
        raise DataError(f"has a column {', '.join(map(repr, unknown))}, which is unknown: the columns are {wanted}")
    return [header.index(name) for name in columns]


def in_order_of(known: tuple[str, ...] | None, dataset: Dataset) -> Dataset:
    """Sort the columns of records in the known order, where both have names for the same columns.

    >>> import numpy as np
    >>> table = Dataset(np.array([[1.0, 2.0]]), [0], ("yes",), [7], columns=("age", "income"))
    >>> in_order_of(("income", "age"), table).inputs
    array([[2., 1.]])
    """
    own = dataset.columns
    if known is None or own is None or own == known or set(own) != set(known):
        return dataset
    return replace(dataset, inputs=dataset.inputs[:, [own.index(name) for name in known]], columns=known)


# From files and frames to columns


def columns_of_frame(frame: Any, id: str | None = None) -> Columns:
    """The columns of a frame. A record is called by its id, where there is a column of ids."""
    header = names_of(frame)

    def where(row: int) -> str:
        if id is None or id not in header:
            return f"row {row}"
        return f"record {as_array(frame[id])[row : row + 1].tolist()[0]!r}"

    return Columns(header, lambda name: as_array(frame[name]), where, len(frame))


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


def columns_in(
    path: Path, reading: Reading, *, only: Collection[str] | None = None, check: Callable[[list[str]], None]
) -> Columns:
    """The columns of a CSV or Parquet file, or `only` those of some names. The names are checked before all else."""
    if path.suffix == ".csv":
        rules = reading.encoding.rules
        found = columns_in_csv(path, {*reading.others, *rules}, check, only, reading.drop)
        cells = found.cells
        return replace(
            found, cells=lambda name: [cell or None for cell in cells(name)] if name in rules else cells(name)
        )
    if path.suffix != ".parquet":
        raise UnreadableFile("cannot be read as a table of records: give a .csv or .parquet file")
    found = columns_of_frame(frame_in(path), reading.id)
    check(found.header)
    return found if only is None else replace(found, header=[name for name in found.header if name in only])


def columns_in_csv(
    path: Path, as_texts: Collection[str] | None, check: Callable[[list[str]], None],
    only: Collection[str] | None = None, drop: Collection[str] = (),
) -> Columns:  # fmt: skip
    """The columns of a CSV file in UTF-8 with a header: numbers, but for some, or all, that are taken as texts.

    Blank lines and spaces around a value do not matter.
    """
    with open_regular(path) as file:
        reader = csv.reader(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            if len(header) == 1 and re.search("[;\t]", header[0]):
                raise UnreadableFile("has semicolons or tabs between values: write it with commas")
            check(header)
            places_of(header, (), header)  # every name once
            wanted = {*(header if only is None else only)} - {*drop}
            places = {name: place for place, name in enumerate(header) if name in wanted}
            texts: dict[str, list[Any]] = {name: [] for name in places if as_texts is None or name in as_texts}
            numbers = {name: array("d") for name in places if name not in texts}
            lines = array("q")
            for cells in lines_of(reader, header):
                lines.append(reader.line_num)
                for name, column in texts.items():
                    column.append(cells[places[name]])
                for name, values in numbers.items():
                    try:
                        values.append(number(cells[places[name]]))
                    except ValueError:
                        said = not_a_number(len(lines), cells[places[name]]).told(name)
                        raise DataError(f"line {reader.line_num}, column {name!r}: {said}") from None
        except UnicodeDecodeError as error:
            raise UnreadableFile(f"is not text in UTF-8: {error.reason} at byte {error.start}") from None
        except csv.Error as error:
            raise UnreadableFile(f"cannot be read as CSV: {error}") from None
    found: dict[str, Cells] = {**texts, **{name: np.array(values) for name, values in numbers.items()}}
    return Columns(
        header if only is None else list(found), found.__getitem__, lambda row: f"line {lines[row]}", len(lines)
    )


def lines_of(reader: Any, header: list[str]) -> Iterator[list[str]]:
    """Yield the cells of each line that is not empty."""
    for row in reader:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise DataError(f"line {reader.line_num} has {len(cells)} values, but the header names {len(header)}")
        yield cells


def frame_in(path: Path) -> Any:
    """The table in a Parquet file, as Arrow has it."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise DataError("reading Parquet files needs pyarrow: pip install 'maxrr[parquet]'") from None
    with open_regular(path) as file:
        try:
            return ParquetFile(file).read()
        except (ArrowException, OSError, ValueError) as error:
            raise UnreadableFile(f"cannot be read as Parquet: {error}") from None
