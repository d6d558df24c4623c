"""`prepare`: draft how a source is read, and write it beside the source, to be looked at and edited.

What is drafted are constants from then on: nothing is fitted, and forgetting a record changes none of them. So they are
chosen coarsely (widths are powers of ten, a category that few people have is not named), the columns that have such
constants are listed, and that they were read off the records is a condition of every model.
"""

import json
import math
import os
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from maxrr.data.checks import as_array, is_missing, named
from maxrr.data.doubts import ID
from maxrr.data.encoding import Categories, Encoding, Number, category_of, list_of
from maxrr.data.labels import Cells, IdsFrom, Misfit
from maxrr.data.reading import Reading, beside
from maxrr.data.sources import read
from maxrr.data.tables import SUFFIXES, Columns, columns_in_csv, columns_of_frame, frame_in
from maxrr.data.train_test import SplitBy
from maxrr.errors import DataError, FileExists
from maxrr.files import write_atomically

FIRST_DAY = "2000-01-01"
RARE = 10  # people, or records where nobody is named: what fewer have in common is not written down
MOST = 50  # categories of a column
NAMED = 3  # rows of a column that a problem names
WAYS = (Number(), Number(days_since=FIRST_DAY))  # how a table writes numbers, and dates
WRITTEN = re.compile(r"[-+]?[\d.,]*\d|\d{1,4}(?P<mark>[./-])\d{1,2}(?P=mark)\d{1,4}\b.*")  # like a number or a date
WITH_UNIT = re.compile(rf"[€$£]?\s?({WRITTEN.pattern})(\s?[%€$£]|\s\w{{1,4}})?")
HEADER = "# How maxrr reads {name}. Edit it: every command and `maxrr.data.load` follow it.\n"
OF_TABLES = """# Columns that are not named here are inputs, as they are. All of this stays when records are forgotten.
"""
READ_OFF = "constants read off the records: a condition on receipts. Take out columns whose constants you set yourself"


@dataclass
class Draft:
    """A draft of how a table is read, with notes that say why, and the problems that prevent it."""

    found: Columns
    reading: Reading
    rules: dict[str, Categories | Number] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def drop(self, column: str, why: str) -> None:
        """Pass a column over."""
        self.reading = replace(self.reading, drop=(*self.reading.drop, column))
        self.notes["drop"] = "; ".join(filter(None, [self.notes.get("drop"), f"{column!r}: {why}"]))

    @cached_property
    def persons(self) -> np.ndarray:
        """For each record the number of its person; a number of its own where nobody is named."""
        name = self.reading.subject
        if name is None or name not in self.found.header:
            return np.arange(self.found.records)
        return np.unique([str(cell) for cell in self.found.cells(name)], return_inverse=True)[1]

    def people(self, rows: list[int]) -> int:
        """How many people these records are about."""
        return len(np.unique(self.persons[rows]))


def prepare(
    source: str | Path, *, label: str | None = None, id: str | None = None, subject: str | None = None,
    weight: str | None = None, drop: Sequence[str] = (), meta: str | Path | None = None,
    ids_from: IdsFrom | None = None, split_by: SplitBy = "subject",
) -> Path:  # fmt: skip
    """Write how a source is read into a file beside it, which `load` and every command follow.

    No record is in it, but categories and scales come from the table, and stay when records are forgotten. Those are
    left out that fewer than ten people have in common. The file lists the columns (`drafted`), and a model that is
    fitted so says it as a condition: take out of the list what you have replaced by constants of your own.

    Of a table, the inputs are drafted as well: texts become categories, dates the days since 2000-01-01, lists of
    numbers an input for each; from large numbers their middle is subtracted, and they are divided by a power of ten;
    what is missing is the middle, or 0, with an input that says so. Dates as 18.11.2026 and decimal commas are problems
    that are listed. Columns that look like ids, or in which nearly every text is another, are passed over. Look at the
    file, and edit it.

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
    notes, header = {"drafted": READ_OFF}, HEADER.format(name=path.name)
    with named(path):
        if path.suffix in SUFFIXES:
            draft = drafted(table_in(path), reading)
            if draft.problems:
                raise DataError("\n  ".join(["cannot be read as it is:", *draft.problems]))
            from_records = tuple(name for name, rule in draft.rules.items() if has_constants(rule))
            reading = replace(draft.reading, encoding=Encoding(draft.rules), drafted=from_records)
            notes, header = notes | draft.notes, header + OF_TABLES
    read(path, reading, True, None)  # which says what else is wrong
    write_atomically(target, (header + reading.to_toml(notes)).encode())
    return target


def has_constants(rule: Categories | Number) -> bool:
    """Whether a rule tells something of the values in a column, beyond their type."""
    return isinstance(rule, Categories) or rule.indicator or (rule.mean, rule.width) != (0.0, 1.0)


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
            again = repeated(cells) if name == draft.reading.id else []
            if again:
                some = ", ".join(f"{found.where(row)} has {str(cells[row])!r:.40}" for row in again[:NAMED])
                draft.problems.append(f"column {name!r} has ids again: {some} ({len(again):,} such values)")
    for name in found.header:
        if name not in (*draft.reading.others, *draft.reading.drop):
            draft_input(draft, name)
    return draft


def is_id(found: Columns, name: str) -> bool:
    """Whether a column has the name of an id, and another value for each record."""
    cells = [str(cell) for cell in found.cells(name)]
    return bool(ID.fullmatch(name.strip())) and "" not in cells and len(set(cells)) == len(cells)


def repeated(cells: Cells) -> list[int]:
    """Find the rows of ids that stand in a row before."""
    first = dict[str, int]()
    return [row for row, cell in enumerate(map(str, cells)) if cell and first.setdefault(cell, row) != row]


def is_gap(cell: Any) -> bool:
    """Whether a value is missing; in a file of text its cell is empty."""
    return is_missing(cell) or (isinstance(cell, str) and not cell)


def draft_input(draft: Draft, name: str) -> None:
    """Draft what a column becomes: numbers, dates, lists or categories, or nothing."""
    cells = [None if is_gap(cell) else cell for cell in as_array(draft.found.cells(name)).tolist()]
    there = [cell for cell in cells if cell is not None]
    if not there:
        draft.drop(name, "no record has a value")
    elif ID.fullmatch(name.strip()):
        draft.drop(name, "called like an id")
    elif (length := length_of(there)) is not None:
        draft.rules[name] = with_gaps(draft, Number(length=length), cells)
    elif not draft_numbers(draft, name, cells):
        draft_categories(draft, name, cells)


def draft_numbers(draft: Draft, name: str, cells: list[Any]) -> bool:
    """Draft a column of numbers or dates; where some are written in another way than the rest, that is a problem."""
    there = [cell for cell in cells if cell is not None]
    for way in WAYS:
        with suppress(Misfit):
            rule = with_gaps(draft, with_scale(draft, way, cells), cells)
            if rule != Number():
                draft.rules[name] = rule
            return True
    written = WITH_UNIT if len({str(cell) for cell in there}) > MOST else WRITTEN  # few may be categories: '2 beds'
    if 2 * sum(written.fullmatch(str(cell).strip()) is not None for cell in there) <= len(there):
        return False
    wrong = min((misfits(way, cells) for way in WAYS), key=len)
    some = ", ".join(f"{draft.found.where(row)} has {str(cells[row])!r:.40}" for row in wrong[:NAMED])
    draft.problems.append(
        f"column {name!r} looks like numbers or dates, but {some} ({len(wrong):,} such values): write numbers as 3.14 "
        "and dates as 2026-11-18, or name the column with drop (--drop)"
    )
    return True


def misfits(way: Number, cells: list[Any]) -> list[int]:
    """Find the rows of values that are not written in this way."""
    wrong = list[int]()
    for row, cell in enumerate(cells):
        with suppress(Misfit):
            if np.isfinite(replace(way, fill=0.0).encode([cell])).all():
                continue
        wrong.append(row)
    return wrong


def with_gaps(draft: Draft, rule: Number, cells: list[Any]) -> Number:
    """Add what stands for missing values; if enough people have some, add an input that says so."""
    missing = [row for row, cell in enumerate(cells) if cell is None]
    return replace(rule, fill=rule.mean, indicator=draft.people(missing) >= RARE) if missing else rule


def with_scale(draft: Draft, rule: Number, cells: list[Any]) -> Number:
    """Divide large or small numbers by a power of ten, after subtracting their middle, which is rounded to it.

    Both follow from where nine tenths of the numbers lie: not from those of a few people at either end. Where only a
    few people have a number at all, neither is drafted.
    """
    there = [row for row, cell in enumerate(cells) if cell is not None]
    numbers = rule.encode([cells[row] for row in there])
    if not (finite := np.isfinite(numbers)).all():
        raise Misfit(there[int(finite.argmin())], "the number is infinite")
    if draft.people(there) < RARE:
        return rule
    lowest, highest = np.quantile(numbers, (0.05, 0.95)).tolist()
    if power_of_ten(max(abs(lowest), abs(highest))) == 1.0:
        return rule
    width = power_of_ten((highest - lowest) / 2 or max(abs(lowest), abs(highest)))
    return replace(rule, mean=round((lowest + highest) / 2 / width) * width, width=width)


def draft_categories(draft: Draft, name: str, cells: list[Any]) -> None:
    """Draft categories for a column of texts: those that enough people have, and one for all others."""
    rows: dict[str, list[int]] = {}
    for row, cell in enumerate(cells):
        if cell is not None:
            rows.setdefault(category_of(cell), []).append(row)
    people = {category: draft.people(having) for category, having in rows.items() if len(having) >= RARE}
    common = [category for category, number in Counter(people).most_common(MOST) if number >= RARE]
    if not common or len(rows) > sum(map(len, rows.values())) // 2:
        draft.drop(name, f"{len(rows):,} different texts")
        return
    draft.rules[name] = Categories(tuple(sorted(common)), other=True, missing=True)


def length_of(cells: list[Any]) -> int | None:
    """Return the common length of lists of numbers; None if the values are not such lists."""
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


def power_of_ten(number: float) -> float:
    """The power of ten that a positive number begins with; 1 for those of about 1."""
    return 1.0 if number == 0.0 or 0.1 <= number <= 10.0 else 10.0 ** math.floor(math.log10(number))
