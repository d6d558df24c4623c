"""A CSV file: a header, then one record per line."""

import csv
import io
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxrr.data.dataset import Dataset
from maxrr.data.encoding import Encoding
from maxrr.data.labels import Cells, as_identifiers, labels_of_texts, not_a_number, number
from maxrr.data.table import Columns, Table, part_of, places_of, weights_in
from maxrr.data.train_test import SplitBy, divide, pair
from maxrr.errors import DataError
from maxrr.files import open_regular

T = TypeVar("T")


def read(
    path: Path, wanted: Columns, split_by: SplitBy = "subject", whole: bool = False
) -> tuple[Dataset, Dataset]:  # fmt: skip
    """Training and test records from a CSV file in UTF-8 with a header.

    Inputs are stored as float32. Ids that are all integers become integers; of labels see `labels_of_texts`. Blank
    lines and spaces around a value do not matter.
    """
    table = parsed(path, wanted.others, check=wanted.check, encoding=wanted.encoding, drop=wanted.drop)
    for name, texts in table.others.items():
        if "" in texts:
            raise DataError(f"{path}: {table.where(list(texts).index(''))} has nothing in column {name!r}")
    others = {
        name: _identifiers(table, name, label=name == wanted.label) for name in table.others if name != wanted.weight
    }  # fmt: skip
    if wanted.weight is not None:
        others[wanted.weight] = weights_in(table, wanted.weight)
    part = part_of(table, wanted, others)
    return pair(*divide(part, str(path), split_by), str(path), columns=table.columns, whole=whole)


def texts_in(
    path: Path, names: Collection[str], check: Callable[[list[str]], None]
) -> dict[str, list[str]]:  # fmt: skip
    """The columns of these names, as far as they are there, as texts. Others are not looked at."""

    def read(reader: Any, header: list[str]) -> dict[str, list[str]]:
        places_of(header, header, ())  # every name once
        found: dict[str, list[str]] = {name: [] for name in names if name in header}
        places = {name: header.index(name) for name in found}
        for cells in _lines(reader, header):
            for name, place in places.items():
                if not cells[place]:
                    raise DataError(f"line {reader.line_num} has nothing in column {name!r}")
                found[name].append(cells[place])
        return found

    return _opened(path, check, read)


def parsed(
    path: Path,
    text_columns: Collection[str],
    columns: Sequence[str] | None = None,
    check: Callable[[list[str]], None] | None = None,
    encoding: Encoding | None = None,
    drop: Sequence[str] = (),
) -> Table:
    """A CSV file in UTF-8 with a header: inputs, and texts in the `text_columns`, as far as they are there.

    Parameters
    ----------
    columns : list of str, optional
        Which columns of inputs there must be, in any order; they come in the order given here. Others are an error.
    check : function, optional
        Called with the header before anything else is read. Its `DataError` gets the name of the file.
    encoding : Encoding, optional
        How columns that are not plain numbers become inputs. In these an empty cell is a missing value.
    drop : sequence of str
        Columns that are passed over.
    """

    def read(reader: Any, header: list[str]) -> Table:
        return _parsed(path, reader, header, text_columns, columns, encoding or Encoding(), drop)

    return _opened(path, check, read)


def header_in(path: Path) -> list[str]:
    """What the columns of a CSV file are called."""
    return _opened(path, None, lambda _, header: header)


def _opened(path: Path, check: Callable[[list[str]], None] | None, read: Callable[[Any, list[str]], T]) -> T:
    """What `read` makes of the lines after the header. Errors get the name of the file."""
    with open_regular(path) as file:
        reader = csv.reader(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            if check:
                check(header)
            return read(reader, header)
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: is not text in UTF-8: {error.reason} at byte {error.start}") from None
        except csv.Error as error:
            raise DataError(f"{path}: cannot be read as CSV: {error}") from None
        except DataError as error:
            raise type(error)(f"{path}: {error}") from None


def _lines(reader: Any, header: list[str]) -> Iterator[list[str]]:
    """The cells of each line that has some."""
    for row in reader:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise DataError(f"line {reader.line_num} has {len(cells)} values, but the header names {len(header)}")
        yield cells


def _parsed(
    path: Path, reader: Any, header: list[str], text_columns: Collection[str], columns: Sequence[str] | None,
    encoding: Encoding, drop: Sequence[str],
) -> Table:  # fmt: skip
    inputs = [header[place] for place in places_of(header, [*text_columns, *drop], columns)]
    encoding.check_columns(inputs)
    plain = [name for name in inputs if name not in encoding.rules]
    texts: dict[str, list[str]] = {name: [] for name in text_columns if name in header and name not in (columns or ())}
    texts |= {name: [] for name in inputs if name in encoding.rules}
    places = [header.index(name) for name in plain]
    of_texts = {name: header.index(name) for name in texts}
    values, lines = array("d"), array("q")
    for cells in _lines(reader, header):
        for name, place in of_texts.items():
            texts[name].append(cells[place])
        lines.append(reader.line_num)
        for place in places:
            try:
                values.append(number(cells[place]))
            except ValueError:
                said = not_a_number(len(lines), cells[place]).told(header[place])
                raise DataError(f"line {reader.line_num}, column {header[place]!r}: {said}") from None
    if not lines:
        raise DataError("has a header, but no records")
    numbers = np.array(values).reshape(len(lines), -1)
    found = {name: texts.pop(name) for name in inputs if name in encoding.rules}

    def where(row: int) -> str:
        return f"line {lines[row]}"

    others: dict[str, Cells] = dict(texts)
    if not found:
        return Table(str(path), tuple(inputs), numbers, others, where)
    columns_of: dict[str, Cells] = {name: numbers[:, place] for place, name in enumerate(plain)}
    columns_of |= {name: [cell or None for cell in cells] for name, cells in found.items()}
    names, encoded = encoding.encode(inputs, columns_of.__getitem__, where)
    return Table(str(path), names, encoded, others, where)


def _identifiers(table: Table, name: str, *, label: bool) -> NDArray[Any]:
    texts, what = list(table.others[name]), f"the values of column {name!r}"
    try:
        return labels_of_texts(texts, what, table.where) if label else as_identifiers(texts, what)
    except DataError as error:
        raise DataError(f"{table.source}: {error}") from None
