"""What a state says of records: the scores of its heads, and the classes by the names that callers use."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.errors import DataError
from maxrr.plain_text import first_few
from maxrr.unlearning.aliases import Inputs
from maxrr.unlearning.given_records import column_names, unlabelled
from maxrr.unlearning.matching import to_predict
from maxrr.unlearning.state import Fitted


def decisions(fitted: Fitted, X: Dataset | Inputs) -> NDArray[np.float64]:
    """The scores of records that are of the kind that a model was fitted on."""
    known = fitted.records
    names = column_names(X) if not isinstance(X, Dataset) else X.columns
    if names is not None and known.columns is not None and names != known.columns:
        raise DataError(
            f"the columns are {first_few(names)}, but the model was fitted on {first_few(known.columns)}: bring the "
            "same ones in the same order"
        )
    array = to_predict(X.inputs if isinstance(X, Dataset) else X, known.dtype, known.shape)
    if not isinstance(X, Dataset):
        records = unlabelled(array)
    else:
        records = X if array.dtype == X.inputs.dtype else replace(X, inputs=array)
    return np.asarray(fitted.heads.decision_function(fitted.blueprint.embed(fitted.extractor, records)))


def best_heads(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The class with the highest score of each record, by its place among those that have records."""
    return scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(np.int64)


def called(fitted: Fitted, truth: NDArray[Any], by_names: bool) -> NDArray[Any]:
    """The model's classes as the true ones are called: by labels, or by names."""
    labels, names = np.asarray(fitted.labels[fitted.codes]), np.array(fitted.head_classes)
    if by_names or (truth.dtype.kind == "U" != labels.dtype.kind and np.isin(truth, names).any()):
        return names
    if (truth.dtype.kind == "U") != (labels.dtype.kind == "U"):
        raise DataError(
            f"y has labels such as {truth[0].item()!r}, and the model's classes are called {first_few(labels.tolist())}"
            ": give labels as fit was given them. Those of a Dataset are numbers, places in its class names"
        )
    return labels
