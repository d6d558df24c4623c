"""Checks of what callers hand in, and the messages for what cannot be used."""

import math
import warnings
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from maxrr.svm.arrays import (
    LARGEST_PENALTY,
    LONGEST,
    NO_EXPONENT,
    SMALLEST,
    SMALLEST_PENALTY,
    AnyArray,
    Bools,
    Floats,
    Ints,
    blocks,
    is_narrow,
    is_torch,
    on_accelerator,
    to_numpy,
    wide,
)

DENSE = (
    "pass a dense array, {}. If that does not fit into memory, make fewer columns first by something that has not seen "
    "the samples, such as sklearn.random_projection.SparseRandomProjection(256, dense_output=True, random_state=0)"
)
FLOATS = (np.float16, np.float32, np.float64)
KINDS = {"b": "truth", "i": "number", "u": "number", "f": "number"}  # of labels; True is not the class 1
LARGE = 1 << 29  # bytes that samples take in float64; more of them are read in blocks, and a narrower type is kept


def penalty(C: object) -> float:
    """C as a float."""
    if not isinstance(C, Real) or not 0.0 < float(C) < math.inf:
        raise ValueError(f"C must be a positive, finite number, not {C!r}")
    if not SMALLEST_PENALTY <= float(C) <= LARGEST_PENALTY:
        raise ValueError(f"C must be between {SMALLEST_PENALTY:.0e} and {LARGEST_PENALTY:.0e}, not {C!r}")
    return float(C)


def class_weights(given: object) -> dict[Any, float] | None:
    """Weights by class, if they are fixed numbers."""
    if given is None:
        return None
    if isinstance(given, str) and given == "balanced":
        raise ValueError(
            "class_weight='balanced' makes every weight depend on every sample, so that each one forgotten would "
            "change every head. Pass fixed numbers instead, such as {'rare': 50, 'common': 1}"
        )
    if not isinstance(given, Mapping):
        raise ValueError(f"class_weight must be None or a dictionary from classes to weights, not {given!r}")
    for label, weight in given.items():
        if not isinstance(weight, Real) or not 0.0 < float(weight) < math.inf:
            raise ValueError(f"the weight of class {label!r} must be a positive, finite number, not {weight!r}")
    return {label: float(weight) for label, weight in given.items()}


def sample_weights(given: ArrayLike | None, count: int) -> Floats:
    """Check that there is one weight for each sample; by default all weigh 1."""
    if given is None:
        return np.ones(count)
    try:
        found = np.array(to_numpy(given) if is_torch(given) else given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must be numbers: {error}") from error
    if found.shape != (count,):
        raise ValueError(f"sample_weight must hold one weight for each of the {count} samples, got shape {found.shape}")
    wrong = np.flatnonzero(~((found >= 0.0) & (found < np.inf)))
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(f"weights must be finite and not negative, but sample_weight[{row}] is {found[row]}")
    return found + 0.0  # no negative zeros


def features(X: AnyArray, estimator: object) -> AnyArray:
    """X as a finite float64 matrix in main memory; large ones, and those on a device, stay as they are.

    A tensor on a device stays there if it is of float16 or float32, too.
    """
    if issparse(X):
        raise ValueError(f"sparse matrices are not supported: {DENSE.format('X.toarray()')}")
    if hasattr(X, "__len__") and len(X) == 0:
        raise ValueError("X has 0 samples, and at least 1 is needed")
    if is_torch(X):
        X = floats_in(X)
    if on_accelerator(X) or is_large(X):
        for part in blocks(X):  # a memory map is never loaded whole
            if not (X[part].isfinite() if is_torch(X) else np.isfinite(X[part])).all():
                raise ValueError("X contains NaN or infinity")
        return X if is_torch(X) else np.asarray(X)
    return check_array(X, dtype=np.float64, estimator=estimator, input_name="X")


def floats_in(X: AnyArray) -> AnyArray:
    """Convert a dense tensor to a matrix of floats: on its device, or as a NumPy array."""
    if str(X.layout) != "torch.strided":
        raise ValueError(f"sparse tensors are not supported: {DENSE.format('X.to_dense()')}")
    if X.is_complex():
        raise ValueError("Complex data not supported")
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have samples and features, but its shape is {tuple(X.shape)}")
    if not on_accelerator(X):
        return to_numpy(X.double())
    return X.detach() if str(X.dtype) in ("torch.float16", "torch.float32") else X.detach().double()


def is_large(X: AnyArray) -> bool:
    """Whether this is a matrix of floats that would take much memory in float64."""
    return isinstance(X, np.ndarray) and X.dtype in FLOATS and X.ndim == 2 and 8 * X.size > LARGE


def labels(y: ArrayLike, count: int, estimator: object) -> NDArray[Any]:
    """Check that there is one class label for each sample."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    given = column_or_1d(to_numpy(y) if is_torch(y) else y, warn=True)
    if len(given) != count:
        raise ValueError(f"X has {count} samples, but y has {len(given)} labels")
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise ValueError("y contains NaN or infinity")
    with warnings.catch_warnings():  # a day's few samples may be of many classes, and are no regression's targets
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        check_classification_targets(given)
    return np.asarray(given)


def classes(given: NDArray[Any], weights: Floats) -> tuple[NDArray[Any], Ints]:
    """The classes among the labels, two of them with samples that weigh, and the number of each sample's class."""
    found, codes = np.unique(given, return_inverse=True)
    weighing = np.unique(given[weights > 0.0])
    if not len(weighing):
        raise ValueError("all sample weights are zero, and an SVM needs samples of two classes")
    if len(weighing) < 2:
        nothing = "" if len(found) < 2 else "; all others have samples of weight zero alone"
        raise ValueError(
            f"an SVM needs samples of two classes, but y has only one class, {plain(weighing[0])!r}{nothing}"
        )
    return found, codes.astype(np.int64)


def row_numbers(given: ArrayLike) -> Ints:
    """Row numbers, whether or not there are such rows."""
    if isinstance(given, np.ndarray) and given.dtype == np.int64 and given.ndim == 1:
        return given.copy()
    array = np.asarray(to_numpy(given) if is_torch(given) else given)
    if array.ndim > 1:
        raise ValueError(f"rows must be a list of row numbers, but have {array.ndim} dimensions")
    if array.dtype.kind == "b":
        raise ValueError("rows must be row numbers, not a mask of booleans: pass np.flatnonzero(mask)")
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"rows must be row numbers, which are integers, and not such as {plain(array.flat[0])!r}")
    return np.atleast_1d(array).astype(np.int64)


def rows(given: ArrayLike, alive: Bools) -> Ints:
    """Row numbers of samples that are there, each once."""
    array = row_numbers(given)
    if len(array) == 1 and 0 <= array[0] < len(alive) and alive[array][0]:
        return array
    if not len(array):
        raise ValueError("rows must be a non-empty list of row numbers")
    unknown = array[(array < 0) | (array >= len(alive))]
    if len(unknown):
        raise ValueError(f"unknown rows, such as {unknown[0]}: the model has seen rows 0 to {len(alive) - 1}")
    gone = array[~alive[array]]
    if len(gone):
        raise ValueError(f"rows already forgotten, such as {gone[0]}")
    distinct = np.unique(array) if len(array) > 1 else array
    if len(distinct) < len(array):
        raise ValueError("rows must not repeat")
    return distinct


def joined(classes: NDArray[Any], given: NDArray[Any]) -> NDArray[Any]:
    """Known classes and further labels in one array that keeps each of them as it is."""
    kinds = [KINDS.get(array.dtype.kind, "text") for array in (classes, given)]
    if kinds[0] != kinds[1]:
        raise ValueError(f"labels must be of the kind of {plain(classes[0])!r}, not of {plain(given[0])!r}")
    both = np.concatenate([classes, given])
    if both.tolist() != classes.tolist() + given.tolist():
        raise ValueError(f"labels of type {given.dtype} cannot be told apart beside known ones of type {classes.dtype}")
    return both


def owned(X: AnyArray, given: object = None) -> AnyArray:
    """A copy, with numbers below `SMALLEST` in size as zeros; X itself if it was converted from what was given."""
    if is_torch(X):
        return X.clone() if is_narrow(X) else X.clone().masked_fill_(X.abs() < SMALLEST, 0.0)
    converted = isinstance(given, np.ndarray) and not np.may_share_memory(X, given)
    own = np.asarray(X, order="C") if converted else np.array(X, order="C")
    for part in blocks(own) if has_tiny(own) else []:
        own[part][np.abs(own[part]) < SMALLEST] = 0.0
    return own


def has_tiny(X: AnyArray) -> bool:
    """Whether some numbers are nearly zero, but not quite. Narrower types than float64 have none."""
    if is_narrow(X):
        return False
    return any(bool(((abs(X[part]) < SMALLEST) & (X[part] != 0.0)).any()) for part in blocks(X))


def sizes(X: AnyArray) -> tuple[Floats, Ints]:
    """The length of every row, and the least c with all its numbers below 2^c in size."""
    return lengths(X), exponents(X)


def lengths(X: AnyArray) -> Floats:
    """The Euclidean length of every row, if that leaves room for arithmetic."""
    found = by_row(X, lambda rows: rows.norm(dim=1) if is_torch(rows) else np.linalg.norm(rows, axis=1))
    if not np.max(found) <= LONGEST:
        raise ValueError(f"X has values beyond {LONGEST:.0e}, whose squares overflow: scale the features to about 1")
    return found


def exponents(X: AnyArray) -> Ints:
    """For every row the least c with all its numbers below 2^c in size."""
    largest = by_row(X, lambda rows: abs(rows).amax(1) if is_torch(rows) else abs(rows).max(1))
    return np.where(largest > 0.0, np.frexp(largest)[1], NO_EXPONENT).astype(np.int64)


def can_keep(X: AnyArray) -> bool:
    """Whether an estimator can work on this very array: no number in it has to become zero."""
    return (isinstance(X, np.ndarray) or on_accelerator(X)) and not has_tiny(X)


def as_narrow(X: AnyArray, known: AnyArray) -> AnyArray:
    """Samples in the type of those that are there, if it holds their numbers exactly."""
    if not is_narrow(known):
        return X
    with np.errstate(over="ignore"):
        narrow = X.to(known.dtype) if is_torch(X) else X.astype(known.dtype)
    return narrow if bool((narrow == X).all()) else X


def largest_by_column(X: AnyArray) -> Floats:
    """How far each column reaches from zero. Erased rows are zeros."""
    found: Floats = np.max([np.max(np.abs(wide(to_numpy(X[part]))), axis=0) for part in blocks(X)], axis=0)
    return found


def by_row(X: AnyArray, measure: Callable[[AnyArray], AnyArray]) -> Floats:
    """One number per row, in blocks: the whole would take much memory, and longer."""
    return np.concatenate([np.asarray(to_numpy(measure(wide(X[part]))), dtype=np.float64) for part in blocks(X)])


def plain(label: Any) -> Any:
    """A label as Python's own number or string."""
    return label.item() if isinstance(label, np.generic) else label
