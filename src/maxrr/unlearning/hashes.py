"""The hash of a model: extractor and heads, nothing else."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from maxrr.data.hashes import framed, key_bytes
from maxrr.nets.run_store import as_array


def model_hash(
    extractor: Mapping[str, Tensor], classes: Sequence[str], weights: NDArray[Any], intercepts: NDArray[Any]
) -> str:  # fmt: skip
    """SHA-256 over every weight with its name, type and shape, and over the heads with the names of their classes."""
    state = sorted(extractor.items())
    parts = [framed(name.encode(), described(as_array(value.detach().cpu()))) for name, value in state]
    parts += [framed(*map(key_bytes, classes)), described(weights), described(intercepts)]
    return hashlib.sha256(framed(*parts)).hexdigest()


def described(array: NDArray[Any]) -> bytes:
    """An array's type, shape and bytes."""
    return framed(array.dtype.str.encode(), str(array.shape).encode(), np.ascontiguousarray(array).tobytes())
