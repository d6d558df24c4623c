"""A fitted model as plain arrays, and back. What can be computed again from the samples is left out."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.svm import validation
from maxrr.svm.arrays import Bools, Floats
from maxrr.svm.estimator import FittedState, LinearSVM
from maxrr.svm.heads import Solution, Work, heads_needed
from maxrr.svm.problem import ClassWeight, Head, Samples, weigh


def taken(model: LinearSVM) -> list[tuple[Any, Head]]:
    """Return the heads of a fitted model, each with its class, and without what can be computed again."""
    fitted = model._fitted
    return [
        (validation.plain(fitted.classes[head.positive]), replace(head, known=None, screen=None))
        for head in fitted.solution.heads
    ]


def restored(
    C: float, features: NDArray[Any], labels: NDArray[Any], held: Bools, heads: list[tuple[Any, Head]],
    *, sample_weight: Floats | None = None, class_weight: ClassWeight | None = None,
    copy_X: bool = True,
) -> LinearSVM:  # fmt: skip
    """The model that these heads were taken from, each with its class. Rows that are not held may hold anything.

    `sample_weight` has one number for each row, and is None for a model without weights. Without a copy
    the model works on the array of features itself, where it can.
    """
    classes = np.unique(labels[held])
    codes = np.where(held, np.searchsorted(classes, labels), -1).astype(np.int64)
    X = features if not copy_X and validation.can_keep(features) else validation.owned(features)
    X[~held] = 0.0
    by_class = validation.class_weights(class_weight)
    weights = np.ones(len(held)) if sample_weight is None else np.where(held, sample_weight, 1.0)
    penalties = weigh(C, by_class, labels.tolist(), validation.sample_weights(weights, len(held)))
    penalties.erase(np.flatnonzero(~held))
    samples = Samples(X, *validation.sizes(X), codes, held.copy(), penalties)
    solved = [replace(head, positive=int(np.searchsorted(classes, label))) for label, head in heads]
    if [head.positive for head in solved] != heads_needed(samples):
        raise ValueError("the heads are not those of the samples' classes")
    model = LinearSVM(C=C, class_weight=class_weight)
    model.n_features_in_ = X.shape[1]
    model._state = FittedState(C, by_class, classes, Solution(samples, tuple(solved), Work()))
    return model
