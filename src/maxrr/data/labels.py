"""Labels and ids as sources write them, turned into class indices and into integers or strings."""

import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxrr.data.checks import as_array, check_blanks, check_identifiers, some
from maxrr.data.numbers import TRUTHS, Cells, number, text_of
from maxrr.errors import DataError

KINDS = {"i": "integers", "b": "booleans", "U": "strings"}


def as_identifiers(texts: list[str], what: str = "ids") -> NDArray[Any]:
    """Integers if every text is one as Python would print it, and the texts themselves otherwise.

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
) -> NDArray[Any]:  # fmt: skip
    """Labels as a file of text has them: whole numbers are integers, also 1.0, and true and false are booleans.

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
    """The numbers, if all texts are some."""
    try:
        return [number(text) for text in texts]
    except ValueError:
        return []


def class_name(text: str) -> str:
    """What `labels_of_texts` calls a class that a file of text calls so.

    >>> class_name("1.0"), class_name("true"), class_name("007")
    ('1', 'True', '007')
    """
    return TRUTHS[text][1] if text in TRUTHS else text_of(text)


def identifiers_of_cells(cells: Cells, what: str, *, labels: bool = False) -> NDArray[Any]:
    """Labels or ids of a table whose columns have types, as the same table has them in a file of text.

    Decimals without fraction digits are integers (of labels also 1.00), and days are texts: 2024-12-31. What is neither
    stays as it is; others look at it. Texts with blanks around them are a `DataError`.
    """
    array = as_array(cells)
    check_blanks(array, what)
    if array.dtype == np.dtype("datetime64[D]"):
        array = array.astype(object)
    if array.dtype.kind != "O" or array.ndim != 1:
        return array
    found = np.empty(len(array), dtype=object)
    found[:] = [_identifier(cell, labels) for cell in array.tolist()]
    return found


def _identifier(cell: Any, label: bool) -> Any:
    if type(cell) is date:
        return cell.isoformat()
    if isinstance(cell, Decimal) and cell.is_finite() and cell == cell.to_integral_value():
        exponent = cell.as_tuple().exponent
        return int(cell) if label or (isinstance(exponent, int) and exponent >= 0) else cell
    return cell


def as_classes(given: ArrayLike, what: str = "labels") -> NDArray[Any]:
    """What a caller calls the class of each record: integers, as int64, booleans, or strings.

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
        array = np.asarray(array) if kinds and (numbers or flags) else check_identifiers(list(array), what)
    if array.dtype.kind == "b" and array.ndim == 1:
        return array
    if array.dtype.kind == "f" and array.ndim == 1 and array.size:
        exact = 2.0 ** (np.finfo(array.dtype).nmant + 1)
        wrong = ~np.isfinite(array) | (array != np.trunc(array)) | (np.abs(array) >= exact)
        if wrong.any():
            raise DataError(
                f"{what} must be integers, booleans or strings, and row {wrong.argmax()} has {array[wrong][0]}: "
                "name the classes, and leave out records whose class is not known"
            )
        return array.astype(np.int64)
    return check_identifiers(array, what)


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
        raise DataError(f"label {some(unknown)} is of no known class: the classes are those of the training records")
    order = np.argsort(classes)
    return np.asarray(order[np.searchsorted(classes, labels, sorter=order)], dtype=np.int64)
