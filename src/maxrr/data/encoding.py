"""Numbers for categories and missing values, by constants that are declared and never fitted.

An encoder, a scaler or a vocabulary that is fitted on records has seen them: forgetting one of them would have to
change it, and with it every input. What is declared here depends on no record.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import is_missing
from maxrr.data.labels import FILLED, Cells, Misfit, class_name, numbers_of, plain, text_of
from maxrr.errors import DataError
from maxrr.files import read_regular
from maxrr.files.strict_json import parse_json

MISSING = "Categories([…], missing=True)", '{"categories": […], "missing": true}'
OTHER = "Categories([…], other=True)", '{"categories": […], "other": true}'
LARGEST_FILE = 1 << 24  # bytes of a file with an encoding: whatever is larger is another file


@dataclass(frozen=True)
class Categories:
    """A column of categories: one input for each, which is 1 where a record is of it and 0 elsewhere.

    Parameters
    ----------
    values : sequence of str or int
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

    values: Sequence[str | int]
    other: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.values, str) or not all(isinstance(each, (str, int)) for each in self.values):
            raise DataError(f"categories are a list of texts or whole numbers, not {self.values!r:.80}")
        if len({category_of(each) for each in self.values}) < len(self.values) or not self.values:
            raise DataError(f"categories must be different, and at least one, not {list(self.values)!r:.80}")
        check_flags(other=self.other, missing=self.missing)
        object.__setattr__(self, "values", tuple(self.values))

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
        return (*(f"{column}={text_of(each)}" for each in self.values), *(f"{column} is {word}" for word in extra))

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
        places = {category_of(each): place for place, each in enumerate(self.values)}
        other, missing = len(places), len(places) + self.other
        found = np.zeros((len(cells), missing + self.missing))
        for row, cell in enumerate(cells):
            if is_missing(cell):
                if not self.missing:
                    raise Misfit(row, "there is no value: declare that this is an input of its own", MISSING)
                found[row, missing] = 1.0
                continue
            place = places.get(category_of(cell), other)
            if place == other and not self.other:
                raise Misfit(
                    row,
                    f"{text_of(cell)!r:.80} is none of the declared categories: declare it, or one input for all that "
                    "are not declared",
                    OTHER,
                )
            found[row, place] = 1.0
        return found


@dataclass(frozen=True)
class Number:
    """A column of numbers: (value − mean) / width, with a number for those that are missing.

    Parameters
    ----------
    fill : float, optional
        What stands for a missing value, before it is scaled. Without it a missing value is an error.
    indicator : bool
        Whether one more input says that the value is missing.
    mean, width : float
        Constants that you choose, such as the middle and half the range of what is possible; 0 and 1 by default.

    Examples
    --------
    >>> Number(fill=40, indicator=True, mean=40, width=20).encode(["60", None]).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    fill: float | None = None
    indicator: bool = False
    mean: float = 0.0
    width: float = 1.0

    def __post_init__(self) -> None:
        for name, given in (("fill", self.fill), ("mean", self.mean), ("width", self.width)):
            if not ((given is None and name == "fill") or is_finite(given)):
                raise DataError(f"{name} must be a finite number, not {given!r:.80}")
        if self.width <= 0.0:
            raise DataError(f"width must be a positive number, not {self.width!r}")
        check_flags(indicator=self.indicator)
        if self.indicator and self.fill is None:
            raise DataError("an indicator says that a value is missing: declare the fill that stands in its place, too")

    def names(self, column: str) -> tuple[str, ...]:
        """What the inputs are called that a column becomes.

        Parameters
        ----------
        column : str
            The name of the column.

        Returns
        -------
        tuple of str
            The column's own name, and that of the indicator if there is one.
        """
        return (column, f"{column} is missing") if self.indicator else (column,)

    def encode(self, cells: Cells) -> NDArray[np.float64]:
        """The inputs that a column becomes.

        Parameters
        ----------
        cells : sequence
            One value per record: numbers, or texts as a table writes them.

        Returns
        -------
        (records, inputs) array of float64
            The number, and 0 or 1 for the indicator if there is one.
        """
        numbers = numbers_of(cells)
        missing = np.isnan(numbers)
        if missing.any() and self.fill is None:
            raise Misfit(int(missing.argmax()), "there is no value: declare what stands for it", FILLED)
        filled = np.where(missing, 0.0 if self.fill is None else self.fill, numbers)
        with np.errstate(over="ignore"):  # what does not fit is infinite, and refused as an input
            scaled = (filled - self.mean) / self.width
        return np.stack([scaled, missing], axis=1) if self.indicator else scaled[:, None]


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
        """The encoding as JSON, as `from_json` and the option --encoding take it.

        Returns
        -------
        str
            A JSON object with one entry per encoded column.
        """
        return json.dumps({column: _facts_of(rule) for column, rule in self.rules.items()}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Encoding":
        """An encoding from JSON.

        Parameters
        ----------
        text : str
            An object with one entry per column: ``{"categories": […], "other": true, "missing": true}`` or
            ``{"fill": 0.0, "indicator": true, "mean": 0.0, "width": 1.0}``, of which parts may be left out.

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
        if not isinstance(declared, dict):
            raise DataError('an encoding is a JSON object with the names of columns, such as {"age": {"fill": 0.0}}')
        return cls({column: _rule_of(column, facts) for column, facts in declared.items()})

    @classmethod
    def read(cls, path: str | Path) -> "Encoding":
        """An encoding from a JSON file.

        Parameters
        ----------
        path : str or Path
            The file, in UTF-8.

        Returns
        -------
        Encoding
            The encoding, as by `from_json`.
        """
        try:
            return cls.from_json(read_regular(path, LARGEST_FILE).decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: is not text in UTF-8: {error.reason} at byte {error.start}") from None
        except DataError as error:
            raise DataError(f"{path}: {error}") from None

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse an encoding of a column that is not among the inputs of a table.

        Parameters
        ----------
        names : sequence of str
            The columns that are inputs.
        """
        absent = [column for column in self.rules if column not in names]
        if absent:
            raise DataError(
                f"the encoding declares {', '.join(map(repr, absent))}, but the inputs are "
                f"{', '.join(map(repr, names))}: correct the name, or leave it out"
            )

    def columns_of(self, inputs: Sequence[str]) -> list[str]:
        """The columns of a table that became these inputs.

        Parameters
        ----------
        inputs : sequence of str
            The names of the inputs.

        Returns
        -------
        list of str
            The names of the columns, each once.
        """
        origin = {name: column for column, rule in self.rules.items() for name in rule.names(column)}
        return list(dict.fromkeys(origin.get(name, name) for name in inputs))

    def encode(
        self, names: Sequence[str], cells: Callable[[str], Cells], where: Callable[[int], str]
    ) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """The inputs that the columns of a table become.

        Parameters
        ----------
        names : sequence of str
            The columns, in their order.
        cells : function
            From the name of a column to its values, one per record.
        where : function
            What to call a row in a message.

        Returns
        -------
        names : tuple of str
            What the inputs are called.
        inputs : (records, inputs) array of float64
            The inputs.
        """
        found: list[str] = []
        blocks = []
        for name in names:
            rule = self.rules.get(name, Number())
            try:
                blocks.append(rule.encode(cells(name)))
            except Misfit as misfit:
                raise DataError(f"{where(misfit.row)}, column {name!r}: {misfit.told(name)}") from None
            found += rule.names(name)
        return tuple(found), np.concatenate(blocks, axis=1)


def category_of(cell: Any) -> str:
    """One text for a category that programs write in several ways.

    >>> [category_of(cell) for cell in (1, "1.0", True, "true", " de ")]
    ['1', '1', 'True', 'True', 'de']
    """
    return class_name(str(cell).strip())


def is_finite(given: Any) -> bool:
    return not isinstance(given, bool) and isinstance(given, (int, float)) and math.isfinite(plain(given))


def check_flags(**flags: Any) -> None:
    for name, given in flags.items():
        if not isinstance(given, bool):
            raise DataError(f"{name} is true or false, not {given!r:.80}")


def _facts_of(rule: Categories | Number) -> dict[str, Any]:
    """What is declared, without what is left at its default."""
    if isinstance(rule, Categories):
        flags = {name: True for name in ("other", "missing") if getattr(rule, name)}
        return {"categories": list(rule.values), **flags}
    usual = Number()
    names = ("fill", "indicator", "mean", "width")
    return {name: getattr(rule, name) for name in names if getattr(rule, name) != getattr(usual, name)}


def _rule_of(column: str, facts: Any) -> Categories | Number:
    known = ("categories", "other", "missing"), ("fill", "indicator", "mean", "width")
    if isinstance(facts, dict) and "categories" in facts and set(facts) <= set(known[0]):
        values = facts["categories"]
        if isinstance(values, list):
            return _named(column, lambda: Categories(values, facts.get("other", False), facts.get("missing", False)))
    elif isinstance(facts, dict) and set(facts) <= set(known[1]):
        return _named(column, lambda: Number(**facts))
    raise DataError(
        f'column {column!r}: declare {{"categories": […], "other": false, "missing": false}} or '
        '{"fill": 0.0, "indicator": false, "mean": 0.0, "width": 1.0}, of which parts may be left out'
    )


def _named(column: str, make: Callable[[], Categories | Number]) -> Categories | Number:
    try:
        return make()
    except DataError as error:
        raise DataError(f"column {column!r}: {error}") from None
