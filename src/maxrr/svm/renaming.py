"""Other labels for the classes of a fitted model, in the same order."""

import copy
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from maxrr.svm.estimator import LinearSVM


def renamed(model: LinearSVM, labels: NDArray[Any]) -> LinearSVM:
    """The same model, with a label for each of its classes, those without samples included. They stay sorted."""
    other = copy.copy(model)
    other._state = replace(model._fitted, classes=labels)
    return other


def labels_of(model: LinearSVM) -> NDArray[Any]:
    """The labels of all classes that the model has or had, sorted."""
    return model._fitted.classes.copy()
