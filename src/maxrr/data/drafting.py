"""`prepare`: draft how a source is read, and write it beside the source, to be looked at and edited.

What is drafted are constants from then on: nothing is fitted, and forgetting a record changes none of them. So they are
chosen coarsely: widths are powers of ten, and a category that few records have is not named.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from maxrr.data.checks import as_array, is_missing, named
from maxrr.data.doubts import ID
from maxrr.data.encoding import Categories, Encoding, Number, category_of, days, list_of
from maxrr.data.labels import IdsFrom, Misfit, numbers_of
from maxrr.data.reading import Reading, beside
from maxrr.data.sources import read
from maxrr.data.tables import SUFFIXES, Columns, columns_in_csv, columns_of_frame, frame_in
from maxrr.data.train_test import SplitBy
from maxrr.errors import DataError, FileExists
from maxrr.files import write_atomically

FIRST_DAY = "2000-01-01"
RARE = 5  # records: a category that fewer have says too much of them
MOST = 50  # categories of a column
HEADER = """# How maxrr reads {name}. Edit it: every command and `maxrr.data.load` follow it.
# Columns that are not named here are inputs, as they are. All of this stays when records are forgotten.
"""


@dataclass
class Draft:
    """How a table is read, as far as it is known, why, and what stands against it."""

    found: Columns
    reading: Reading
    rules: dict[str, Categories | Number] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def drop(self, column: str, why: str) -> None:
        """Pass a column over."""
        self.reading = replace(self.reading, drop=(*self.reading.drop, column))
        self.notes["drop"] = "; ".join(filter(None, [self.notes.get("drop"), f"{column}: {why}"]))


def prepare(
    source: str | Path, *, label: str | None = None, id: str | None = None, subject: str | None = None,
    weight: str | None = None, drop: Sequence[str] = (), meta: str | Path | None = None,
    ids_from: IdsFrom | None = None, split_by: SplitBy = "subject",
) -> Path:  # fmt: skip
    """Write how a source is read into a file beside it, which `load` and every command follow.

    No record is in it, but categories are values that occur in the table, and stay when records are forgotten.

    Of a table, the inputs are drafted as well: texts become categories, dates the days since 2000-01-01, lists of
    numbers an input for each, what is missing 0 with an input that says so; large numbers are divided by a power of
    ten. Columns that look like ids, or in which nearly every text is another, are passed over. Look at the file, and
    edit it.

    Parameters
    ----------
    source : str or Path
        A .csv, .parquet, .npz or .npy file. There must be no such file beside it yet.
    label, id, subject, weight : str, optional
        The columns of a table that say the class, the record id, the person, and how much a record counts. If not
        given, those called label, id and subject.
    drop : list of str
        Columns that are passed over.
    meta : str or Path, optional
        The table with the labels and ids of an .npy file.
    ids_from : "content" or "rows", optional
        How to name records that have no ids, as in `load`; "content" for a table without ids.
    split_by : {"subject", "id"}
        What decides which records are for testing.

    Returns
    -------
    Path
        The file that was written: the source's name with .toml behind it.

    Raises
    ------
    DataError
        Something stands against it: all of it is listed, and nothing is written.
    """
    path = Path(source)
    target = beside(path)
    if not path.is_file():
        raise DataError(f"{source}: is no file, and nothing has to be said of how it is read")
    if target.exists():
        raise FileExists(f"{target}: is there already: edit it, or delete it to have another drafted")
    near = None if meta is None else os.path.relpath(Path(meta).absolute(), path.absolute().parent)
    usual = Reading()
    reading = Reading(
        label or usual.label, id or usual.id, subject or usual.subject, weight, tuple(drop), ids_from, split_by, near
    )
    notes: dict[str, str] = {}
    with named(path):
        if path.suffix in SUFFIXES:
            draft = drafted(table_in(path), reading)
            if draft.problems:
                raise DataError("\n  ".join(["cannot be read as it is:", *draft.problems]))
            reading, notes = replace(draft.reading, encoding=Encoding(draft.rules)), draft.notes
    read(path, reading, True, None)  # which says what else is wrong
    write_atomically(target, (HEADER.format(name=path.name) + reading.to_toml(notes)).encode())
    return target


def table_in(path: Path) -> Columns:
    """The columns of a file as they are, those of a CSV file as texts."""
    if path.suffix == ".csv":
        return columns_in_csv(path, None, lambda header: None)
    return columns_of_frame(frame_in(path))


def drafted(found: Columns, reading: Reading) -> Draft:
    """Draft how a table is read: what its columns say, and what the others become."""
    draft = Draft(found, reading)
    if len(set(found.header)) < len(found.header):
        draft.problems.append("it names a column twice")
        return draft
    if reading.id not in found.header and reading.ids_from is None:
        name = next((name for name in found.header if is_id(found, name) and name not in reading.others), None)
        if name is None:
            draft.reading = replace(reading, ids_from="content")
            draft.notes["ids_from"] = "there is no column of ids: they are made of each record's own numbers"
        elif reading.id == "id":
            draft.reading = replace(reading, id=name)
            draft.notes["id"] = "all different, and called like an id"
    try:
        draft.reading.check(found.header)
    except DataError as error:
        draft.problems.append(str(error))
    for name in draft.reading.others:
        if name in found.header:
            cells = found.cells(name)
            gaps = [row for row, cell in enumerate(cells) if is_gap(cell)]
            if gaps:
                draft.problems.append(f"column {name!r} has no value for {len(gaps):,} records: {found.where(gaps[0])}")
    for name in found.header:
        if name not in (*draft.reading.others, *draft.reading.drop):
            draft_input(draft, name)
    return draft


def is_id(found: Columns, name: str) -> bool:
    """Whether a column is called like an id, and says something else of each record."""
    cells = [str(cell) for cell in found.cells(name)]
    return bool(ID.fullmatch(name.strip())) and "" not in cells and len(set(cells)) == len(cells)


def is_gap(cell: Any) -> bool:
    """Whether there is no value: in a file of text a cell is empty then."""
    return is_missing(cell) or (isinstance(cell, str) and not cell)


def draft_input(draft: Draft, name: str) -> None:
    """Draft what a column becomes: numbers, dates, lists or categories, or nothing."""
    cells = [None if is_gap(cell) else cell for cell in as_array(draft.found.cells(name)).tolist()]
    there = [cell for cell in cells if cell is not None]
    gaps: dict[str, Any] = {"fill": 0.0, "indicator": True} if len(there) < len(cells) else {}
    if not there:
        draft.drop(name, "no record has a value")
    elif ID.fullmatch(name.strip()):
        draft.drop(name, "called like an id")
    elif (length := length_of(there)) is not None:
        draft.rules[name] = Number(length=length, **gaps)
    elif (numbers := as_numbers(there)) is not None:
        rule = Number(width=width_of(numbers), **gaps)
        if rule != Number():
            draft.rules[name] = rule
    elif (dates := as_dates(there)) is not None:
        draft.rules[name] = Number(days_since=FIRST_DAY, width=width_of(dates), **gaps)
    else:
        draft_categories(draft, name, cells)


def draft_categories(draft: Draft, name: str, cells: list[Any]) -> None:
    """Draft categories for a column of texts: those that enough records have, and one for all others."""
    numeric = [row for row, cell in enumerate(cells) if cell is not None and as_numbers([cell]) is None]
    there = [category_of(cell) for cell in cells if cell is not None]
    if 0 < len(numeric) <= len(there) // 10:
        row = numeric[0]
        draft.problems.append(
            f"column {name!r} has {len(numeric):,} values that are no numbers among others that are: "
            f"{draft.found.where(row)} has {str(cells[row])!r:.40}. Correct them, or name the column with drop (--drop)"
        )
        return
    common = [each for each, records in Counter(there).most_common(MOST) if records >= RARE]
    if not common or len(set(there)) > len(there) // 2:
        draft.drop(name, f"{len(set(there)):,} different texts")
        return
    draft.rules[name] = Categories(tuple(sorted(common)), other=True, missing=len(there) < len(cells))


def length_of(cells: list[Any]) -> int | None:
    """How long lists are, if all values are lists of numbers of one length."""
    first = cells[0]
    if isinstance(first, str) and not first.startswith("["):
        return None
    try:
        length = len(json.loads(first) if isinstance(first, str) else first)
        for row, cell in enumerate(cells):
            list_of(cell, length, row)
    except (ValueError, TypeError):  # a `Misfit` among them
        return None
    return length


def as_numbers(cells: list[Any]) -> np.ndarray | None:
    """The values as numbers, if all of them are some."""
    try:
        return numbers_of(cells)
    except Misfit:
        return None


def as_dates(cells: list[Any]) -> np.ndarray | None:
    """The values as days, if all of them are dates."""
    try:
        return np.array([days(cell, FIRST_DAY) for cell in cells])
    except DataError:
        return None


def width_of(numbers: np.ndarray) -> float:
    """A power of ten by which large or small numbers are divided: 1 where they are about 1."""
    largest = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0))
    return 1.0 if largest == 0.0 or 0.1 <= largest <= 10.0 else 10.0 ** math.floor(math.log10(largest))
