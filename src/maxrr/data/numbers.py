"""Numbers as tables write them, and what to say of what is none."""

import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import is_missing

Cells = Sequence[Any] | NDArray[Any]
"""The values of one column, one per record."""

# How programs write a float without fraction.
WHOLE, LARGE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+"), re.compile(r"-?[1-9](\.[0-9]+)?e\+[0-9]{1,3}")
TRUTHS = {text: each for each in (("true", "True", "TRUE"), ("false", "False", "FALSE")) for text in each}
"""How programs write booleans, each with its other spellings."""


FILLED = "Number(fill=0.0)", '{"fill": 0.0}'  # what to declare where values are missing


class Misfit(ValueError):  # noqa: N818 (it becomes a DataError once it is known where)
    """A value that has no encoding, in this row. `rule` would give it one: in Python, and in JSON."""

    def __init__(self, row: int, words: str, rule: tuple[str, str] | None = None) -> None:
        super().__init__(words)
        self.row, self.rule = row, rule

    def told(self, column: str) -> str:
        """What is wrong in a column, and what to declare."""
        if self.rule is None:
            return str(self)
        in_python, in_json = self.rule
        return (
            f"{self}: encoding=Encoding({{{column!r}: {in_python}}}) (a file for --encoding has "
            f"{{{json.dumps(column, ensure_ascii=False)}: {in_json}}})"
        )


def numbers_of(cells: Cells) -> NDArray[np.float64]:
    """Numbers, with NaN for those that are missing. Texts are read as in a table."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
        return cells.astype(np.float64)
    found = np.empty(len(cells))
    for row, cell in enumerate(cells):
        try:
            found[row] = math.nan if is_missing(cell) else number(cell) if isinstance(cell, str) else plain(cell)
        except (TypeError, ValueError):
            raise not_a_number(row, cell) from None
    return found


def plain(cell: Any) -> float:
    """A number that is one: what could be made into a number, such as a date or a list of one, is not.

    An integer that no float can hold is infinite, as its digits in a file of text are.
    """
    if not isinstance(cell, (bool, int, float, Decimal, np.bool_, np.number)):
        raise TypeError(f"{type(cell).__name__} is not a number")
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def number(text: str) -> float:
    """A number as it is written in a table, in plain digits: Python would read 2024_01 as 202401. True is 1.

    >>> number("-2.5e3"), number("true")
    (-2500.0, 1.0)
    """
    if text in TRUTHS:
        return float(text.lower() == "true")
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def text_of(cell: Any) -> str:
    """A category or a class as a text. A whole number has one: an integer, a float, and either as Python prints it.

    A column with missing values makes 1.0 of the number 1, and a file of text then has that. Other spellings, such as
    1E+16 or 007, are texts of their own.

    >>> [text_of(cell) for cell in (1, 1.0, "1.0", 1e16, "1e+16", "1E+16", "1.5", "007", "v1.0")]
    ['1', '1', '1', '10000000000000000', '10000000000000000', '1E+16', '1.5', '007', 'v1.0']
    """
    text = str(cell)
    if digits := WHOLE.fullmatch(text):  # as texts: beyond 2⁵³, floats do not tell whole numbers apart
        return "0" if digits[1] == "-0" else digits[1]
    if LARGE.fullmatch(text) and (number := float(text)).is_integer() and Decimal(str(number)) == Decimal(text):
        return str(int(number))
    return text


def not_a_number(row: int, cell: Any) -> Misfit:
    """What to do about a value that is no number."""
    if not isinstance(cell, str):
        said = f"a {type(cell).__name__} is not a number: make it one, such as the days since a fixed day for a date"
        return Misfit(row, said)
    if not cell:
        return Misfit(row, "'' is not a number: declare what stands for a missing value", FILLED)
    return Misfit(
        row,
        f"{str(cell)!r:.80} is not a number. If the column says the class, the record or the person, name it as label, "
        "id or subject; if these are categories, declare them",
        (f"Categories([{str(cell)!r:.80}, …])", f'{{"categories": [{json.dumps(cell, ensure_ascii=False):.80}, …]}}'),
    )
