"""Labels and ids as sources write them, turned into class indices and into integers or strings."""

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxrr.data.checks import as_array, check_identifiers, is_missing, some
from maxrr.data.hashes import value_hashes
from maxrr.errors import DataError, MissingIds, UnknownClass

# Ids for records whose source has none.


IdsFrom = Literal["content", "rows"]
"""How to make ids for records that have none: from a hash of their inputs, or from row numbers."""

DIGITS = 20  # hexadecimal: among a billion records two that differ share them with a probability of a millionth


def check_ids_from(there: bool, ids_from: str | None, what: str) -> None:
    """Refuse a source without ids if `ids_from` does not say how to make them, and one with ids if it does."""
    if ids_from is not None and ids_from not in get_args(IdsFrom):
        raise DataError(f"ids_from is one of {', '.join(map(repr, get_args(IdsFrom)))}, not {ids_from!r}")
    if there and ids_from is not None:
        raise DataError(f"its records have ids of their own ({what}): leave ids_from (--ids-from) out")
    if not there and ids_from is None:
        raise MissingIds(
            f"it does not say what its records are called. Requests name records by ids: give {what}, or "
            "ids_from='content' (--ids-from content), an id from each record's own numbers, or "
            "ids_from='rows' (--ids-from rows), row numbers, which name other records as soon as a line is deleted"
        )


def made_ids(parts: Sequence[NDArray[Any]], ids_from: str | None) -> list[NDArray[Any]]:
    """Make ids for records that have none, unique over all parts."""
    counts = np.cumsum([len(part) for part in parts])
    ids = content_ids(parts) if ids_from == "content" else np.arange(counts[-1])
    return np.split(ids, counts[:-1])


def content_ids(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Make an id from the numbers of each record, which does not depend on its place or type.

    It is the beginning of the hash by which forgotten values are recognised, `maxrr.data.hashes.value_hashes`. Equal
    records cannot be told apart: they are counted in the order in which they stand, with -2, -3 and so on behind.

    >>> content_ids([np.array([[1.0], [2.0], [1.0]])]).tolist()
    ['cba91d7ebb8b92eaa325', 'dca31754bd8d861460e7', 'cba91d7ebb8b92eaa325-2']
    """
    seen: dict[str, int] = {}
    ids = []
    for part in parts:
        for value in value_hashes(part):
            digest = value.tobytes().hex()[:DIGITS]
            seen[digest] = seen.get(digest, 0) + 1
            ids.append(digest if seen[digest] == 1 else f"{digest}-{seen[digest]}")
    return np.array(ids, dtype=np.str_)


# Numbers as tables write them, and what to say of what is none.


Cells = Sequence[Any] | NDArray[Any]
"""The values of one column, one per record."""

WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")  # how programs write a float without fraction
TRUTHS = {text: each for each in (("true", "True", "TRUE"), ("false", "False", "FALSE")) for text in each}
"""How programs write booleans, each with its other spellings."""


class Misfit(ValueError):
    """A value that has no encoding, in this row. `rule` would give it one."""

    def __init__(self, row: int, words: str, rule: str = "") -> None:
        super().__init__(words)
        self.row, self.rule = row, rule

    def told(self, column: str) -> str:
        """Say what is wrong in a column, and what to declare."""
        how = f": encoding=Encoding({{{column!r}: {self.rule}}})" if self.rule else ""
        return f"{self}{how}. `maxrr.data.prepare` (maxrr data prepare) drafts it for the whole table"


def numbers_of(cells: Cells) -> NDArray[np.float64]:
    """Convert cells to numbers, with NaN for missing ones. Texts are read as in a table."""
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
    """Convert a value that is a number to a float; refuse dates, lists and texts.

    An integer that no float can hold is infinite, as its digits in a file of text are.
    """
    if not isinstance(cell, (bool, int, float, Decimal, np.bool_, np.number)):
        raise TypeError(f"{type(cell).__name__} is not a number")
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def number(text: str) -> float:
    """Read a number as a table writes it, in plain digits: Python would read 2024_01 as 202401. True is 1.

    >>> number("-2.5e3"), number("true")
    (-2500.0, 1.0)
    """
    if text in TRUTHS:
        return float(text.lower() == "true")
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def text_of(cell: Any) -> str:
    """Write a category or a class as a text; a whole number has one text, whether it is an integer or a float.

    A column with missing values makes 1.0 of the number 1, and a file of text then has that. Other spellings, such as
    1e+16 or 007, are texts of their own.

    >>> [text_of(cell) for cell in (1, 1.0, "1.0", 1e16, "1.5", "007", "v1.0")]
    ['1', '1', '1', '1e+16', '1.5', '007', 'v1.0']
    """
    text = str(cell)
    if digits := WHOLE.fullmatch(text):  # as texts: beyond 2⁵³, floats do not tell whole numbers apart
        return "0" if digits[1] == "-0" else digits[1]
    return text


def not_a_number(row: int, cell: Any) -> Misfit:
    """Return the error for a value that is no number, with advice on what to declare."""
    if not isinstance(cell, str) and hasattr(cell, "__len__"):
        said = "this is a list, and not a number: declare how long lists are"
        return Misfit(row, said, f"Number(length={len(cell)})")
    if not isinstance(cell, str):
        said = f"a {type(cell).__name__} is not a number: if these are dates, declare the days since a fixed day"
        return Misfit(row, said, 'Number(days_since="2000-01-01")')
    if not cell:
        return Misfit(row, "there is no value: declare what stands for it")
    said = (
        f"{str(cell)!r:.80} is not a number. If the column says the class, the record or the person, name it as label, "
        "id or subject; if these are categories, declare them"
    )
    return Misfit(row, said, f"Categories([{str(cell)!r:.80}, …])")


KINDS = {"i": "integers", "b": "booleans", "U": "strings"}


def as_identifiers(texts: list[str], what: str = "ids") -> NDArray[Any]:
    """Convert texts to integers, if Python would print every one of them so; otherwise keep them.

    >>> as_identifiers(["10", "-9"]), as_identifiers(["10", "09"])
    (array([10, -9]), array(['10', '09'], dtype='<U2'))
    """
    try:
        numbers = np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        return check_identifiers(texts, what)
    return numbers if list(map(str, numbers.tolist())) == texts else check_identifiers(texts, what)


def labels_of_texts(
    texts: list[str], what: str = "labels", where: Callable[[int], str] = "row {}".format
) -> NDArray[Any]:
    """Convert the labels of a file of text: whole numbers, also 1.0, to integers, and true and false to booleans.

    So they are the labels that the same table has in a frame, where columns have types. 007 stays a text. NaN and
    infinity among numbers are labels that are missing, not another class, and a `DataError`.

    >>> labels_of_texts(["1.0", "0.0"]), labels_of_texts(["true", "false"]), labels_of_texts(["1", "0.5"])
    (array([1, 0]), array([ True, False]), array(['1', '0.5'], dtype='<U3'))
    """
    if texts and all(text in TRUTHS for text in texts):
        return np.array([text.lower() == "true" for text in texts])
    infinite = next((row for row, each in enumerate(_numbers_in(texts)) if not math.isfinite(each)), None)
    if infinite is not None:
        raise DataError(f"{where(infinite)} has {texts[infinite]!r} among {what}, which is no class")
    whole = as_identifiers([text_of(text) for text in texts], what)
    return whole if whole.dtype.kind == "i" else as_identifiers(texts, what)


def _numbers_in(texts: list[str]) -> list[float]:
    """Read all texts as numbers; none if one of them is no number."""
    try:
        return [number(text) for text in texts]
    except ValueError:
        return []


def class_name(text: str) -> str:
    """Return the name that `labels_of_texts` gives a class, from its spelling in a file of text.

    >>> class_name("1.0"), class_name("true"), class_name("007")
    ('1', 'True', '007')
    """
    return TRUTHS[text][1] if text in TRUTHS else text_of(text)


def as_classes(given: ArrayLike) -> NDArray[Any]:
    """Convert a caller's classes to int64, booleans or strings.

    Whole numbers written as floats are integers, as long as floats of that type tell them from their neighbours: up to
    2⁵³ for float64. No other number is the name of a class, and NaN is none at all.

    >>> as_classes([1.0, 0.0, 1.0]), as_classes([True, False])
    (array([1, 0, 1]), array([ True, False]))
    """
    array = given if isinstance(given, (list, tuple)) else as_array(given)
    if isinstance(array, np.ndarray) and array.dtype.kind == "O" and array.ndim == 1:
        array = array.tolist()
    if not isinstance(array, np.ndarray):
        kinds = {type(item) for item in array}
        numbers = all(issubclass(kind, (int, float, np.number)) and not issubclass(kind, bool) for kind in kinds)
        flags = all(issubclass(kind, (bool, np.bool_)) for kind in kinds)
        array = np.asarray(array) if kinds and (numbers or flags) else check_identifiers(list(array), "labels")
    if array.dtype.kind == "b" and array.ndim == 1:
        return array
    if array.dtype.kind == "f" and array.ndim == 1 and array.size:
        exact = 2.0 ** (np.finfo(array.dtype).nmant + 1)
        wrong = ~np.isfinite(array) | (array != np.trunc(array)) | (np.abs(array) >= exact)
        if wrong.any():
            raise DataError(
                f"labels must be integers, booleans or strings, and row {wrong.argmax()} has {array[wrong][0]}: "
                "name the classes, and leave out records whose class is not known"
            )
        return array.astype(np.int64)
    return check_identifiers(array, "labels")


def index_labels(
    train: ArrayLike, test: ArrayLike, class_names: tuple[str, ...] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
    """Class indices of both sides, and the names of the classes.

    Without names, the classes are the labels of the training records, sorted, integers as numbers. With names, integers
    are indices already and strings are looked up.

    >>> index_labels(["cat", "ant", "cat"], ["ant"], None)
    (array([1, 0, 1]), array([0]), ('ant', 'cat'))
    """
    of_train, of_test = as_classes(train), as_classes(test)
    if len(of_test) and of_test.dtype.kind != of_train.dtype.kind:
        one, other = (KINDS[labels.dtype.kind] for labels in (of_train, of_test))
        raise DataError(f"labels are {one} on one side of train and test, and {other} on the other: use one kind")
    if class_names is None:
        classes = np.unique(of_train)
        names = tuple(map(str, classes.tolist()))
    elif of_train.dtype.kind in "bi":
        return of_train.astype(np.int64), of_test.astype(np.int64), class_names
    else:
        classes, names = np.array(class_names, dtype=np.str_), class_names
    return _positions(of_train, classes), _positions(of_test, classes), names


def _positions(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Where each label stands among the classes."""
    if not len(labels):
        return np.empty(0, dtype=np.int64)
    unknown = np.setdiff1d(labels, classes)
    if len(unknown):
        raise UnknownClass(f"label {some(unknown)} is of no known class: the classes are those of the training records")
    order = np.argsort(classes)
    return np.asarray(order[np.searchsorted(classes, labels, sorter=order)], dtype=np.int64)
