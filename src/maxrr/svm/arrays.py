"""Samples as NumPy arrays, or as torch tensors on a graphics processor: the few operations that both need."""

import sys
from collections import deque
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maxrr.parallel.engine import Threads


class Array(Protocol):
    """A NumPy array or a torch tensor, on any device.

    Attributes
    ----------
    shape, ndim, dtype
        As NumPy and PyTorch have them.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    def __len__(self) -> int: ...
    def __getitem__(self, chosen: Any, /) -> Any: ...
    def __array__(self) -> NDArray[Any]: ...


AnyArray = Any
"""An `Array` inside the solver, unchecked."""

LONGEST = 1e100  # of samples
SMALLEST = 1e-100  # features below this in size count as zero
SMALLEST_PENALTY, LARGEST_PENALTY = 1e-50, 1e50  # for Cᵢ
GOLDEN = 0.6180339887498949  # its multiples are all over the numbers between two integers
NO_EXPONENT = -10_000  # the exponent of a row of zeros, or of no numbers
BLOCK_BYTES = 1 << 22  # of float64 that narrower numbers become at a time: as much as fits into a processor's cache,
DEVICE_BLOCK_BYTES = 1 << 30  # and on a device of its own, where small operations cost as much as large ones

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def is_torch(array: AnyArray) -> bool:
    """Tell a tensor of torch from other arrays, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def on_accelerator(array: AnyArray) -> bool:
    """Whether this lives on a device of its own, where starting an operation costs more than most operations."""
    return is_torch(array) and array.device.type != "cpu"


def to_numpy(array: AnyArray) -> NDArray[Any]:
    """Copy numbers to main memory, as a NumPy array."""
    return np.asarray(array.detach().cpu() if is_torch(array) else array)


def like(values: NDArray[Any], reference: AnyArray) -> AnyArray:
    """`values` as an array of the kind and on the device of `reference`."""
    return sys.modules["torch"].as_tensor(values, device=reference.device) if is_torch(reference) else values


def is_narrow(X: AnyArray) -> bool:
    """Whether samples are in float16 or float32, and are converted to float64 block by block as they are read."""
    return X.dtype != np.float64 if isinstance(X, np.ndarray) else str(X.dtype) != "torch.float64"


def blocks(X: AnyArray) -> list[slice]:
    """Stretches of rows that are a convenient size as float64."""
    step = max(1, (DEVICE_BLOCK_BYTES if on_accelerator(X) else BLOCK_BYTES) // max(1, 8 * X.shape[1]))
    return [slice(first, min(first + step, len(X))) for first in range(0, len(X), step)]


def wide(X: AnyArray) -> AnyArray:
    """Convert numbers to float64."""
    return X.double() if is_torch(X) else np.asarray(X, dtype=np.float64)


def times(X: AnyArray, weights: AnyArray) -> AnyArray:
    """X @ weights, for a vector or one column per head."""
    if is_torch(X):
        return joined([wide(X[rows]) @ weights for rows in blocks(X)])
    if not is_narrow(X):
        return X @ weights
    found = np.empty((len(X), *weights.shape[1:]))

    def product(rows: slice) -> None:
        np.matmul(wide(X[rows]), weights, out=found[rows])

    deque(Threads().map(product, blocks(X)), maxlen=0)
    return found


def joined(parts: list[AnyArray], axis: int = 0) -> AnyArray:
    """Join the rows of arrays of one kind, or along another axis."""
    return sys.modules["torch"].cat(parts, axis) if is_torch(parts[0]) else np.concatenate(parts, axis)


def marked(places: Ints, count: int) -> Bools:
    """Make a mask of `count` samples that marks these places."""
    found = np.zeros(count, dtype=bool)
    found[places] = True
    return found


def any_among(places: Ints, among: Ints) -> bool:
    """Whether one of these samples is among others, which are sorted."""
    return bool(located(places, among)[1].any())


def without(places: Ints, among: Ints, *alongside: Floats) -> tuple[AnyArray, ...]:
    """Remove samples at some places from sorted samples, and from values that belong to them.

    The arrays themselves where none of these samples is there.
    """
    at, here = located(places, among)
    leaving, arrays = at[here], (among, *alongside)
    if not len(leaving):
        return arrays
    if len(leaving) > 1:
        return tuple(np.delete(array, leaving) for array in arrays)
    one = leaving.item()  # as most requests have it, in half the time
    return tuple(np.concatenate([array[:one], array[one + 1 :]]) for array in arrays)


def located(places: Ints, among: Ints) -> tuple[Ints, Bools]:
    """Find where these samples stand among sorted others, and which of them are there at all."""
    if not len(among):
        return np.zeros(len(places), dtype=np.int64), np.zeros(len(places), dtype=bool)
    at = among.searchsorted(places)
    return at, among.take(at, mode="clip") == places
