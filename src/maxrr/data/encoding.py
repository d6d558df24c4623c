"""Numbers for categories and missing values, by constants that are declared and never fitted.

An encoder, a scaler or a vocabulary that is fitted on records has seen them: forgetting one of them would have to
change it, and with it every input. What is declared here depends on no record.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import is_missing
from maxrr.data.labels import Cells, Misfit, class_name, not_a_number, numbers_of, plain, text_of
from maxrr.errors import DataError, MissingColumn
from maxrr.files.strict_json import from_plain, parse_json, to_plain

DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class Categories:
    """A column of categories: one input for each, which is 1 where a record is of it and 0 elsewhere.

    Parameters
    ----------
    categories : sequence of str or int
        All categories that there are. 1, 1.0, "1" and "1.0" are the same one, and so are True and "true": which of them
        a table has depends on the program that wrote it. Blanks around a text do not matter.
    other : bool
        Whether one more input says that a value is none of these. Without it such a value is an error.
    missing : bool
        Whether one more input says that there is no value. Without it a missing value is an error.

    Examples
    --------
    >>> Categories(["de", "fr"], other=True).encode(["fr", "it"]).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    categories: tuple[str | int, ...]
    other: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        given: Any = self.categories
        if isinstance(given, str) or not all(isinstance(each, (str, int)) for each in given):
            raise DataError(f"categories are a list of texts or whole numbers, not {self.categories!r:.80}")
        if len({category_of(each) for each in self.categories}) < len(self.categories) or not self.categories:
            raise DataError(f"categories must be different, and at least one, not {list(self.categories)!r:.80}")
        object.__setattr__(self, "categories", tuple(self.categories))

    def names(self, column: str) -> tuple[str, ...]:
        """What the inputs are called that a column becomes.

        Parameters
        ----------
        column : str
            The name of the column.

        Returns
        -------
        tuple of str
            One name per input, in their order.
        """
        extra = [word for word, there in (("other", self.other), ("missing", self.missing)) if there]
        return (*(f"{column}={text_of(each)}" for each in self.categories), *(f"{column} is {word}" for word in extra))

    def encode(self, cells: Cells) -> NDArray[np.float64]:
        """The inputs that a column becomes.

        Parameters
        ----------
        cells : sequence
            One value per record.

        Returns
        -------
        (records, inputs) array of float64
            A single 1 in each row.
        """
        places = {category_of(each): place for place, each in enumerate(self.categories)}
        other, missing = len(places), len(places) + self.other
        found = np.zeros((len(cells), missing + self.missing))
        for row, cell in enumerate(cells):
            if is_missing(cell):
                if not self.missing:
                    raise Misfit(row, "there is no value: declare it an input", "Categories([…], missing=True)")
                found[row, missing] = 1.0
                continue
            place = places.get(category_of(cell), other)
            if place == other and not self.other:
                raise Misfit(
                    row,
                    f"{text_of(cell)!r:.80} is none of the declared categories: declare it, or one input for all that "
                    "are not declared",
                    "Categories([…], other=True)",
                )
            found[row, place] = 1.0
        return found


@dataclass(frozen=True)
class Number:
    """A column of numbers, dates or lists of numbers: (value − mean) / width, with a number for those that are missing.

    Parameters
    ----------
    fill : float, optional
        What stands for a missing value, before it is scaled. Without it a missing value is an error.
    indicator : bool
        Whether one more input says that the value is missing.
    mean, width : float
        Constants that you choose, such as the middle and half the range of what is possible; 0 and 1 by default.
    days_since : str, optional
        The values are dates, or dates with a time, as 2026-11-18 or in a type of their own, and the number is that of
        the days since this one.
    length : int, optional
        The values are lists of so many numbers, such as embeddings: each becomes that many inputs.

    Examples
    --------
    >>> Number(fill=40, indicator=True, mean=40, width=20).encode(["60", None]).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> Number(days_since="2026-01-01").encode(["2026-01-03"]).tolist()
    [[2.0]]
    >>> Number(length=2).encode([[1.5, 2.5]]).tolist()
    [[1.5, 2.5]]
    """

    fill: float | None = None
    indicator: bool = False
    mean: float = 0.0
    width: float = 1.0
    days_since: str | None = None
    length: int | None = None

    def __post_init__(self) -> None:
        for name, given in (("fill", self.fill), ("mean", self.mean), ("width", self.width)):
            if not ((given is None and name == "fill") or is_finite(given)):
                raise DataError(f"{name} must be a finite number, not {given!r:.80}")
        if self.width <= 0.0:
            raise DataError(f"width must be a positive number, not {self.width!r}")
        if self.indicator and self.fill is None:
            raise DataError("an indicator says that a value is missing: declare the fill that stands in its place, too")
        if self.length is not None and (self.length < 1 or self.days_since is not None):
            raise DataError("length is how many numbers each list has, 1 or more, and lists are of no dates")
        if self.days_since is not None:
            days(self.days_since, "1970-01-01")

    def names(self, column: str) -> tuple[str, ...]:
        """Name the inputs that a column becomes.

        Parameters
        ----------
        column : str
            The name of the column.

        Returns
        -------
        tuple of str
            The column's own name, or one for each number of a list, and that of the indicator if there is one.
        """
        each = [column] if self.length is None else [f"{column}[{place}]" for place in range(self.length)]
        return (*each, f"{column} is missing") if self.indicator else tuple(each)

    def encode(self, cells: Cells) -> NDArray[np.float64]:
        """Make inputs of a column.

        Parameters
        ----------
        cells : sequence
            One value per record: numbers, dates or lists, or texts as a table writes them.

        Returns
        -------
        (records, inputs) array of float64
            The numbers, and 0 or 1 for the indicator if there is one.
        """
        numbers = self._numbers(cells)
        missing = np.isnan(numbers).any(axis=1)
        if missing.any() and self.fill is None:
            raise Misfit(int(missing.argmax()), "there is no value: declare what stands for it", "Number(fill=0.0)")
        numbers[missing] = 0.0 if self.fill is None else self.fill
        with np.errstate(over="ignore"):  # what does not fit is infinite, and refused as an input
            scaled = (numbers - self.mean) / self.width
        return np.column_stack([scaled, missing]) if self.indicator else scaled

    def _numbers(self, cells: Cells) -> NDArray[np.float64]:
        """Convert the values to numbers, in one column or several; a missing value is NaN."""
        if self.length is not None:
            found = np.full((len(cells), self.length), np.nan)
            for row, cell in enumerate(cells):
                if not is_missing(cell):
                    found[row] = list_of(cell, self.length, row)
            return found
        if self.days_since is None:
            try:
                return numbers_of(cells)[:, None]
            except Misfit as misfit:
                raise not_a_number(misfit.row, cells[misfit.row]) from None
        found = np.full((len(cells), 1), np.nan)
        for row, cell in enumerate(cells):
            if not is_missing(cell):
                try:
                    found[row] = days(cell, self.days_since)
                except DataError as error:
                    raise Misfit(row, str(error)) from None
        return found


def days(cell: Any, since: str) -> float:
    """How many days a date is after another, with a fraction for its time.

    >>> days("2026-01-01T12:00", "2025-12-31")
    1.5
    """
    try:
        if isinstance(cell, str) and not DATE.match(cell):
            raise ValueError
        when = np.datetime64(cell.replace(tzinfo=None) if isinstance(cell, datetime) else cell, "us")
        found = (when - np.datetime64(since, "us")) / np.timedelta64(1, "D")
    except (TypeError, ValueError):
        raise DataError(f"{str(cell)!r:.80} is not a date such as 2026-11-18") from None
    return float(found)


def list_of(cell: Any, length: int, row: int) -> NDArray[np.float64]:
    """Read the numbers of a list, which a file of text has in brackets."""
    try:
        given = json.loads(cell) if isinstance(cell, str) else cell
        values = np.asarray(given)
        found = numbers_of(values if values.ndim == 1 and values.dtype.kind in "biuf" else list(given))
    except (TypeError, ValueError):
        raise Misfit(row, f"{str(cell)!r:.80} is not a list of numbers") from None
    if len(found) != length or np.isnan(found).any():
        raise Misfit(row, f"this is a list of {len(found)} numbers, or with one missing, where {length} are declared")
    return found


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become inputs, for columns that are not plain numbers. Nothing in it is fitted.

    Parameters
    ----------
    rules : dict of str to Categories or Number
        The columns that are encoded, by their names. All others are numbers, and used as they are.

    Examples
    --------
    >>> encoding = Encoding({"country": Categories(["de", "fr"]), "age": Number(fill=40.0, mean=40.0, width=20.0)})
    >>> encoding.to_json()
    '{"country": {"categories": ["de", "fr"]}, "age": {"fill": 40.0, "mean": 40.0, "width": 20.0}}'
    >>> Encoding.from_json(encoding.to_json()) == encoding
    True
    """

    rules: Mapping[str, Categories | Number] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for column, rule in dict[Any, Any](self.rules).items():
            if not (isinstance(column, str) and isinstance(rule, (Categories, Number))):
                raise DataError(
                    f"an encoding has Categories([…]) or Number(fill=…) by the name of a column, not "
                    f"{column!r:.40}: {rule!r:.40}"
                )

    def to_json(self) -> str:
        """Write the encoding as JSON, as `from_json` takes it.

        Returns
        -------
        str
            A JSON object with one entry per encoded column.
        """
        return json.dumps(as_plain(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Encoding":
        """Read an encoding from JSON.

        Parameters
        ----------
        text : str
            An object with one entry per column, with the parameters of `Categories` or of `Number`.

        Returns
        -------
        Encoding
            The encoding.

        Raises
        ------
        DataError
            It is no JSON, or declares something else.
        """
        try:
            declared = parse_json(text)
        except ValueError as error:
            raise DataError(f"an encoding is written in JSON: {error}") from None
        return encoding_of(declared)


def check_columns(encoding: Encoding, names: Sequence[str]) -> None:
    """Refuse an encoding of a column that is not among the inputs of a table."""
    absent = [column for column in encoding.rules if column not in names]
    if absent:
        raise MissingColumn(
            f"the encoding declares {', '.join(map(repr, absent))}, but the inputs are "
            f"{', '.join(map(repr, names))}: correct the name, or leave it out"
        )


def columns_of(encoding: Encoding, inputs: Sequence[str]) -> list[str]:
    """Find the columns of a table that became these inputs, each once."""
    origin = {name: column for column, rule in encoding.rules.items() for name in rule.names(column)}
    return list(dict.fromkeys(origin.get(name, name) for name in inputs))


def encode(
    encoding: Encoding, names: Sequence[str], cells: Callable[[str], Cells], where: Callable[[int], str]
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Make inputs of the columns of a table: what they are called, and their numbers (records × inputs).

    `cells` are the values of a column by its name, and `where` is what a message calls a row.
    """
    found: list[str] = []
    blocks = []
    for name in names:
        rule = encoding.rules.get(name, Number())
        try:
            blocks.append(rule.encode(cells(name)))
        except Misfit as misfit:
            raise DataError(f"{where(misfit.row)}, column {name!r}: {misfit.told(name)}") from None
        found += rule.names(name)
    return tuple(found), np.concatenate(blocks, axis=1)


def category_of(cell: Any) -> str:
    """Return one text for a category, however programs write it.

    >>> [category_of(cell) for cell in (1, "1.0", True, "true", " de ")]
    ['1', '1', 'True', 'True', 'de']
    """
    return class_name(str(cell).strip())


def is_finite(given: Any) -> bool:
    return not isinstance(given, bool) and isinstance(given, (int, float)) and math.isfinite(plain(given))


def as_plain(encoding: Encoding) -> dict[str, dict[str, Any]]:
    """Return the parameters of each column's rule that are not the defaults."""
    found = {}
    for column, rule in encoding.rules.items():
        usual = {each.name: each.default for each in fields(rule)}
        found[column] = {name: value for name, value in to_plain(rule).items() if value != usual[name]}
    return found


def encoding_of(declared: Any) -> Encoding:
    """Make the encoding that `as_plain` wrote; anything else is a `DataError`."""
    if not isinstance(declared, dict):
        raise DataError("an encoding has one entry for each column that is declared, by its name")
    rules: dict[str, Categories | Number] = {}
    for column, facts in declared.items():
        kind: Any = Categories if isinstance(facts, dict) and "categories" in facts else Number
        try:
            rules[column] = from_plain(kind, facts)
        except ValueError as error:
            raise DataError(f"column {column!r}: {error}") from None
    return Encoding(rules)
