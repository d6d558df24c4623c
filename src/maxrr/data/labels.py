"""Labels and ids as sources write them, turned into class indices and into integers or strings."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxrr.data.checks import DataError, check_keys, some


def as_keys(texts: list[str]) -> NDArray[Any]:
    """Integers if every text is one as Python would print it, and the texts themselves otherwise.

    >>> as_keys(["10", "-9"]), as_keys(["10", "09"])
    (array([10, -9]), array(['10', '09'], dtype='<U2'))
    """
    try:
        numbers = np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(texts, dtype=np.str_)
    return numbers if list(map(str, numbers.tolist())) == texts else np.array(texts, dtype=np.str_)


def index_labels(
    train: ArrayLike, test: ArrayLike, class_names: tuple[str, ...] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
    """Class indices of both sides, and the names of the classes.

    Without names, the classes are the labels of the training records, sorted, integers as numbers. With names, integers
    are indices already and strings are looked up.

    >>> index_labels(["cat", "ant", "cat"], ["ant"], None)
    (array([1, 0, 1]), array([0]), ('ant', 'cat'))
    """
    of_train, of_test = check_keys(train, "labels"), check_keys(test, "labels")
    if len(of_test) and of_test.dtype.kind != of_train.dtype.kind:
        raise DataError("labels are integers on one side of train and test, and strings on the other: use one kind")
    if class_names is None:
        classes = np.unique(of_train)
        names = tuple(map(str, classes.tolist()))
    elif of_train.dtype.kind == "i":
        return of_train, of_test, class_names
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
