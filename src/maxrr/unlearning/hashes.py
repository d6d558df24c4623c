"""The hash of a model: extractor and head, nothing else."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from maxrr.data.hashes import framed
from maxrr.nets.runs import as_array
from maxrr.svm import LinearSVM


def model_hash(extractor: nn.Module, head: LinearSVM, class_names: tuple[str, ...]) -> str:
    """SHA-256 over every weight with its name, type and shape, and over the head with the names of its classes."""
    state = sorted(extractor.state_dict().items())
    parts = [framed(name.encode(), described(as_array(value.detach().cpu()))) for name, value in state]
    parts += [class_names[label].encode() for label in head.classes_]
    parts += [described(head.coef_), described(head.intercept_)]
    return hashlib.sha256(framed(*parts)).hexdigest()


def described(array: NDArray[Any]) -> bytes:
    """An array's type, shape and bytes."""
    return framed(array.dtype.str.encode(), str(array.shape).encode(), np.ascontiguousarray(array).tobytes())
