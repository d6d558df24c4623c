"""A CSV file: a header, a label a line, numbers."""

import csv
from array import array
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import DataError
from maxrr.data.dataset import Dataset
from maxrr.data.labels import as_keys
from maxrr.data.sides import Part, divide, pair


def read(path: Path, label: str, id: str, subject: str) -> tuple[Dataset, Dataset]:
    """Training and test records, split by id, from a CSV file in UTF-8 with a header.

    One column holds the labels. One may hold the record ids, which are row numbers from 0 otherwise, and one the
    subject ids. All others are features, stored as float32. Labels and ids that are all integers become integers. Blank
    lines and spaces around a value do not matter. The columns called 'id' and 'subject' may be missing, ones that were
    asked for by another name may not.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _read(path, csv.reader(file, strict=True), label, id, subject)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not text in UTF-8: {error.reason} at byte {error.start}") from None
    except csv.Error as error:
        raise DataError(f"{path}: cannot be read as CSV: {error}") from None


def _read(path: Path, reader: Any, label: str, id: str, subject: str) -> tuple[Dataset, Dataset]:
    header = [name.strip() for name in next(reader, [])]
    _check_header(path, header, label, id, subject)
    keys: dict[str, list[str]] = {name: [] for name in (label, id, subject) if name in header}
    numeric = [column for column, name in enumerate(header) if name not in keys]
    values, lines = array("d"), array("q")
    for row in reader:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise DataError(
                f"{path}: line {reader.line_num} has {len(cells)} values, but the header names {len(header)}"
            )
        for name, texts in keys.items():
            text = cells[header.index(name)]
            if not text:
                raise DataError(f"{path}: line {reader.line_num} has nothing in column {name!r}")
            texts.append(text)
        lines.append(reader.line_num)
        for column in numeric:
            try:
                values.append(_number(cells[column]))
            except ValueError:
                where = f"line {reader.line_num}, column {header[column]!r}"
                raise DataError(f"{path}: {where}: {cells[column]!r} is not a number") from None
    if not lines:
        raise DataError(f"{path}: has a header, but no records")
    features = _as_float32(
        path, np.array(values).reshape(len(lines), -1), lines, [header[column] for column in numeric]
    )
    ids = as_keys(keys[id]) if id in keys else np.arange(len(lines))
    subjects = as_keys(keys[subject]) if subject in keys else None
    return pair(*divide(Part(features, as_keys(keys[label]), ids, subjects)), str(path))


def _check_header(path: Path, header: list[str], label: str, id: str, subject: str) -> None:
    named = ", ".join(map(repr, header)) or "nothing"
    for name, usual in ((label, None), (id, "id"), (subject, "subject")):
        if name not in header and name != usual:
            raise DataError(f"{path}: has no column {name!r}: its first line names {named}")
    if len(set(header)) < len(header):
        raise DataError(f"{path}: names a column twice: its first line names {named}")
    if not set(header) - {label, id, subject}:
        raise DataError(f"{path}: has no features: its first line names {named}")


def _number(text: str) -> float:
    if "_" in text:  # Python would read 2024_01 as 202401
        raise ValueError
    return float(text)


def _as_float32(path: Path, values: NDArray[np.float64], lines: Any, columns: list[str]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        features = values.astype(np.float32)
    wrong = np.argwhere(~np.isfinite(features))
    if len(wrong):
        row, column = wrong[0].tolist()
        where = f"line {lines[row]}, column {columns[column]!r}"
        raise DataError(f"{path}: {where}: {values[row, column]} is not a finite number in float32")
    return features
