"""One source for NumPy arrays and torch tensors: the few bridges that the array API standard leaves open."""

from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtrs

from maxrr.parallel import Threads

try:
    import array_api_compat as compat
except ImportError:  # scikit-learn carries a copy, and where only the field's basics are installed that one serves
    from sklearn.externals import array_api_compat as compat  # type: ignore[no-redef]


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
"""An `Array` inside the solver, unchecked: NumPy and PyTorch declare no type for what the array API has in common."""

LONGEST = 1e100  # of samples
SMALLEST = 1e-100  # features below this in size count as zero
SMALLEST_PENALTY, LARGEST_PENALTY = 1e-50, 1e50  # for Cᵢ
NO_EXPONENT = -10_000  # the exponent of a row of zeros, or of no numbers
BLOCK_BYTES = 1 << 22  # of float64 that narrower numbers become at a time: as much as fits into a processor's cache,
DEVICE_BLOCK_BYTES = 1 << 30  # and on a device of its own, where small operations cost as much as large ones

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def namespace(*arrays: AnyArray) -> Any:
    """The array API namespace that all `arrays` belong to."""
    return compat.array_namespace(*arrays)


def is_numpy(array: AnyArray) -> bool:
    return bool(compat.is_numpy_array(array))


def is_torch(array: AnyArray) -> bool:
    return bool(compat.is_torch_array(array))


def on_accelerator(array: AnyArray) -> bool:
    """Whether this lives on a device of its own, where starting an operation costs more than most operations."""
    return is_torch(array) and array.device.type != "cpu"


def to_numpy(array: AnyArray) -> NDArray[Any]:
    """The same numbers in main memory."""
    if is_torch(array):
        return np.asarray(array.detach().cpu())
    return np.asarray(array)


def like(values: NDArray[Any], reference: AnyArray) -> AnyArray:
    """`values` as an array of the kind and on the device of `reference`."""
    if is_numpy(reference):
        return values
    return namespace(reference).asarray(values, device=compat.device(reference))


def is_narrow(X: AnyArray) -> bool:
    """Whether these are samples in float16 or float32, whose numbers become float64 as they are read, in blocks."""
    return str(X.dtype).rpartition(".")[2] != "float64"


def blocks(X: AnyArray) -> list[slice]:
    """Stretches of rows that are a convenient size as float64."""
    step = max(1, (DEVICE_BLOCK_BYTES if on_accelerator(X) else BLOCK_BYTES) // max(1, 8 * X.shape[1]))
    return [slice(first, min(first + step, len(X))) for first in range(0, len(X), step)]


def wide(X: AnyArray) -> AnyArray:
    """The same numbers in float64."""
    return np.asarray(X, dtype=np.float64) if is_numpy(X) else X.double()


def times(X: AnyArray, weights: AnyArray) -> AnyArray:
    """X @ weights, for a vector or one column per head."""
    if not is_narrow(X):
        return X @ weights
    if not is_numpy(X):
        return namespace(X).concat([wide(X[rows]) @ weights for rows in blocks(X)])
    found = np.empty((len(X), *weights.shape[1:]))

    def product(rows: slice) -> None:
        np.matmul(wide(X[rows]), weights, out=found[rows])

    deque(Threads().map(product, blocks(X)), maxlen=0)
    return found


def combined(multipliers: AnyArray, X: AnyArray) -> AnyArray:
    """multipliers @ X."""
    if not is_narrow(X):
        return multipliers @ X
    if not is_numpy(X):
        return sum(multipliers[rows] @ wide(X[rows]) for rows in blocks(X))
    total = np.zeros(X.shape[1])
    for part in Threads().map(lambda rows: multipliers[rows] @ wide(X[rows]), blocks(X)):
        total += part
    return total


def rows(X: AnyArray, positions: Ints) -> AnyArray:
    """The rows of `X` at `positions`, on the device of `X`."""
    if is_numpy(X):
        return X[positions]
    return namespace(X).take(X, like(positions, X), axis=0)


def written(places: Ints) -> Ints | slice:
    """The same places, to be written to: a single one as a slice, which takes a third of the time."""
    return slice(places[0], places[0] + 1) if len(places) == 1 and places[0] >= 0 else places


def marked(places: Ints, count: int) -> Bools:
    """Which of so many samples are at these places."""
    found = np.zeros(count, dtype=bool)
    found[places] = True
    return found


def any_among(places: Ints, among: Ints) -> bool:
    """Whether one of these samples is among others, which are sorted."""
    if len(places) != 1:
        return bool(located(places, among)[1].any())
    at = among.searchsorted(places[0])
    return bool(at < len(among) and among[at] == places[0])


def without(places: Ints, among: Ints, *alongside: Floats) -> tuple[AnyArray, ...]:
    """Samples, which are sorted, without those at some places; and what is known of each, without theirs."""
    at, here = located(places, among)
    gone = at[here]
    if len(gone) != 1:
        return tuple(np.delete(array, gone) for array in (among, *alongside))
    first = int(gone[0])  # joined in a third of the time
    return tuple(np.concatenate([array[:first], array[first + 1 :]]) for array in (among, *alongside))


def located(places: Ints, among: Ints) -> tuple[Ints, Bools]:
    """Where these samples are among others, which are sorted, and which of them are there at all."""
    if not len(among):
        return np.zeros(len(places), dtype=np.int64), np.zeros(len(places), dtype=bool)
    at = np.minimum(np.searchsorted(among, places), len(among) - 1)
    return at, among[at] == places


def solve_positive(matrix: AnyArray, ridge: float, right: AnyArray) -> AnyArray:
    """Solve (matrix + ridge·I) x = right for a positive semidefinite matrix, which is overwritten."""
    if not is_numpy(matrix):
        matrix.diagonal().add_(ridge)
        return namespace(matrix).linalg.solve(matrix, right)
    matrix.flat[:: len(matrix) + 1] += ridge
    try:
        upper = np.linalg.cholesky(matrix).T  # unlike LAPACK called through SciPy, it lets other threads go on
    except np.linalg.LinAlgError:  # not quite positive, by rounding
        return np.linalg.lstsq(matrix, right)[0]
    return dtrtrs(upper, dtrtrs(upper, right, trans=1)[0])[0]


# A device beside the processor: which one was asked for, and how much of its memory may be used.


SHARE = 0.8  # of the device's memory that is free


@dataclass(frozen=True)
class Device:
    """Where products are done with samples that are in main memory."""

    name: str
    budget: int | None = None  # bytes; None stands for a share of what is free

    def room(self) -> int:
        """How many bytes may be used there now."""
        if self.budget is not None:
            return self.budget
        import torch

        free, _ = torch.cuda.mem_get_info(self.name)
        unused = torch.cuda.memory_reserved(self.name) - torch.cuda.memory_allocated(self.name)
        return int(SHARE * (free + unused))


def asked_for(device: object) -> Device | None:
    """The device that a caller names; None for the processor."""
    if device is None or str(device) == "cpu":
        return None
    import torch

    try:
        kind = torch.device(str(device)).type
    except RuntimeError:
        kind = ""
    if kind != "cuda":
        raise ValueError(f"device must be None, 'cpu' or 'cuda', not {str(device)!r}")
    if not torch.cuda.is_available():
        raise ValueError(
            f"device={str(device)!r} was asked for, but PyTorch finds no CUDA device here: leave `device` out, which "
            "gives the same bytes, or install a PyTorch built for CUDA"
        )
    return Device(str(device))
