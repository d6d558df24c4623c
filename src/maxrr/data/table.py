"""A CSV file: a header, then one record per line."""

import csv
import io
from array import array
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.dataset import Dataset
from maxrr.data.ids import check_ids_from, made_ids
from maxrr.data.labels import as_identifiers
from maxrr.data.train_test import Part, divide, pair
from maxrr.errors import DataError
from maxrr.files import open_regular


@dataclass(frozen=True)
class Table:
    """The columns of numbers, and those of texts by name. A record knows the line it came from."""

    path: Path
    columns: tuple[str, ...]
    numbers: NDArray[np.float64]  # (n, columns)
    texts: dict[str, list[str]]
    lines: Sequence[int]

    def as_type(self, dtype: Any) -> NDArray[Any]:
        """The numbers in another type; one that it cannot hold, NaN and infinity are `DataError`s."""
        with np.errstate(over="ignore", invalid="ignore"):
            inputs: NDArray[Any] = self.numbers.astype(dtype)
        held = np.isfinite(inputs) if inputs.dtype.kind == "f" else inputs == self.numbers
        wrong = np.argwhere(~held)
        if len(wrong):
            row, column = wrong[0].tolist()
            where, kind = f"line {self.lines[row]}, column {self.columns[column]!r}", np.dtype(dtype).name
            value = self.numbers[row, column]
            raise DataError(f"{self.path}: {where}: {value} is not a finite number in {kind}")
        return inputs


def read(
    path: Path, label: str, id: str, subject: str, ids_from: str | None = None, whole: bool = False
) -> tuple[Dataset, Dataset]:  # fmt: skip
    """Training and test records, split by id, from a CSV file in UTF-8 with a header.

    One column holds the labels, one the record ids, if they are not made by `ids_from`, and one may hold the subject
    ids. All others are inputs, stored as float32. Labels and ids that are all integers become integers. Blank lines
    and spaces around a value do not matter. The columns called 'id' and 'subject' may be missing, ones that were asked
    for by another name may not.
    """

    def check(header: list[str]) -> None:
        named = ", ".join(map(repr, header)) or "nothing"
        for name, usual in ((label, None), (id, "id"), (subject, "subject")):
            if name not in header and name != usual:
                raise DataError(
                    f"has no column {name!r}: its first line names {named}. Say which is the label, id or subject"
                )
        check_ids_from(id in header, ids_from, f"the column {id!r}, or another by id=… (--id)")

    table = parsed(path, (label, id, subject), check=check)
    for name, texts in table.texts.items():
        if "" in texts:
            raise DataError(f"{path}: line {table.lines[texts.index('')]} has nothing in column {name!r}")
    inputs = table.as_type(np.float32)
    _check_labels(path, table, label)
    identifiers = {name: _identifiers(path, texts, name) for name, texts in table.texts.items()}
    in_order = inputs[:, np.argsort(table.columns)]  # so that the order of columns is no part of an id
    ids = identifiers[id] if id in identifiers else made_ids([in_order], ids_from)[0]
    sides = divide(Part(inputs, identifiers[label], ids, identifiers.get(subject)))
    return pair(*sides, str(path), columns=table.columns, whole=whole)


def parsed(
    path: Path,
    text_columns: Collection[str],
    columns: Sequence[str] | None = None,
    check: Callable[[list[str]], None] | None = None,
) -> Table:
    """A CSV file in UTF-8 with a header: numbers, and texts in the `text_columns`, as far as they are there.

    Parameters
    ----------
    columns : list of str, optional
        Which columns of numbers there must be, in any order; they come in the order given here. Others are an error.
    check : function, optional
        Called with the header before anything else is read. Its `DataError` gets the name of the file.
    """
    with open_regular(path) as file:
        reader = csv.reader(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            if check:
                check(header)
            return _parsed(path, reader, header, text_columns, columns)
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: is not text in UTF-8: {error.reason} at byte {error.start}") from None
        except csv.Error as error:
            raise DataError(f"{path}: cannot be read as CSV: {error}") from None
        except DataError as error:
            raise type(error)(f"{path}: {error}") from None


def _parsed(
    path: Path, reader: Any, header: list[str], text_columns: Collection[str], columns: Sequence[str] | None
) -> Table:  # fmt: skip
    places = _places(header, text_columns, columns)
    texts: dict[str, list[str]] = {name: [] for name in text_columns if name in header and name not in (columns or ())}
    of_texts = {name: header.index(name) for name in texts}
    values, lines = array("d"), array("q")
    for row in reader:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise DataError(f"line {reader.line_num} has {len(cells)} values, but the header names {len(header)}")
        for name, place in of_texts.items():
            texts[name].append(cells[place])
        lines.append(reader.line_num)
        for place in places:
            try:
                values.append(number(cells[place]))
            except ValueError:
                where = f"line {reader.line_num}, column {header[place]!r}"
                raise DataError(
                    f"{where}: {cells[place]!r} is not a number. If the column says the class, the record or the "
                    "person, name it as label, id or subject"
                ) from None
    if not lines:
        raise DataError("has a header, but no records")
    numbers = np.array(values).reshape(len(lines), -1)
    return Table(path, tuple(header[place] for place in places), numbers, texts, lines)


def _places(header: list[str], text_columns: Collection[str], columns: Sequence[str] | None) -> list[int]:
    """Where the columns of numbers stand."""
    named = ", ".join(map(repr, header)) or "nothing"
    if len(set(header)) < len(header):
        raise DataError(f"names a column twice: its first line names {named}")
    if columns is None:
        places = [place for place, name in enumerate(header) if name not in text_columns]
        if not places:
            raise DataError(f"has no inputs: its first line names {named}")
        return places
    missing = [name for name in columns if name not in header]
    if missing:
        raise DataError(f"has no column {', '.join(map(repr, missing))}: its first line names {named}")
    unknown = [name for name in header if name not in columns and name not in text_columns]
    if unknown:
        wanted = ", ".join(map(repr, columns))
        raise DataError(f"has a column {', '.join(map(repr, unknown))}, which is unknown: the columns are {wanted}")
    return [header.index(name) for name in columns]


def number(text: str) -> float:
    """A number as it is written in a table, in plain digits: Python would read 2024_01 as 202401.

    >>> number("-2.5e3")
    -2500.0
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def _check_labels(path: Path, table: Table, label: str) -> None:
    """Refuse NaN and infinity among numbers: these are labels that are missing, not another class."""
    try:
        numbers = np.array([number(text) for text in table.texts[label]])
    except ValueError:
        return
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise DataError(f"{path}: line {table.lines[row]}, column {label!r}: {table.texts[label][row]!r} is no class")


def _identifiers(path: Path, texts: list[str], name: str) -> NDArray[Any]:
    try:
        return as_identifiers(texts, f"the values of column {name!r}")
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
