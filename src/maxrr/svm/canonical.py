"""The weights of a head, computed from its partition alone.

A solved head is known by two sets: its *bounded* samples (margin below 1, multiplier C) and its *free* ones (margin
exactly 1). Weights and bias follow from these by a small linear system. Everything here is a fixed sequence of
elementwise float64 operations and sums in a fixed order, without BLAS or LAPACK: the same partition gives the same
bytes, whichever solver, device or number of threads found it.
"""

from dataclasses import dataclass

import numpy as np

from maxrr.svm.arrays import Floats, Ints

NOISE = 4.0 * float(np.finfo(np.float64).eps)  # of the terms of a sum: below that, its result is rounding error
ROWS_A_SUM = 1024  # rows are summed in runs of this many, then the runs: a bound on memory and on rounding
RANK_TOLERANCE = 1e-9  # a free sample this close to the span of the others, in lengths of samples, adds no condition


@dataclass(frozen=True)
class Weights:
    """w and b, and Σ yᵢxᵢ over the bounded samples, which w is made of."""

    w: Floats
    b: float
    bounded_sum: Floats


def weights(X_free: Floats, y_free: Floats, X_bounded: Floats, y_bounded: Floats, C: float) -> Weights:
    """The solution of the SVM restricted to the piece on which it lies.

    That is the minimiser of ½|w|² − C Σ yᵢ(w·xᵢ + b) over the bounded samples, under w·xᵢ + b = yᵢ for the free
    ones. Samples must be given in canonical order; free ones may repeat or depend on each other.

    Subtracting the first free sample x₀ from all others removes b: with rows aᵢ = xᵢ − x₀, targets cᵢ = yᵢ − y₀ and
    v = C Σ yᵢ(xᵢ − x₀), the solution is the point nearest to v that has aᵢ·w = cᵢ.

    With no free sample w = C Σ yᵢxᵢ, and b = 0 is returned: the caller decides whether that is admissible.

    >>> weights(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), np.zeros((0, 1)), np.zeros(0), C=1.0)
    Weights(w=array([1.]), b=0.0, bounded_sum=array([0.]))
    """
    if len(y_free) == 0:
        total, magnitude = signed_sum(X_bounded, y_bounded, np.zeros(X_bounded.shape[1]))
        total = total if np.max(np.abs(total)) > NOISE * magnitude else np.zeros(len(total))
        return Weights(C * total + 0.0, 0.0, total)
    first = X_free[0]
    total, magnitude = signed_sum(X_bounded, y_bounded, first)
    basis, chosen = orthonormal(X_free, first)
    rest = C * total
    for direction in basis:
        rest = rest - np.add.reduce(rest * direction) * direction
    # What is left of v below its own rounding is noise: then the free samples alone determine w.
    if len(basis) == len(first) or np.max(np.abs(rest)) <= NOISE * C * magnitude:
        rest = np.zeros(len(first))
    w = rest
    rows, targets = X_free[chosen] - first, y_free[chosen] - y_free[0]
    along = np.array([np.add.reduce(rows * direction, axis=1) for direction in basis])  # lower triangular, transposed
    for _ in range(2):  # the second time for the rounding errors of the first
        missing = targets - np.add.reduce(rows * w, axis=1)
        levels = np.zeros(len(basis))
        for index in range(len(basis)):
            levels[index] = missing[index] / along[index, index]
            missing = missing - levels[index] * along[index]
        w = w + np.add.reduce(levels[:, None] * basis, axis=0)
    b = mean_offset(X_free, y_free, w)
    # No negative zeros: they are the same numbers as positive ones, but other bytes.
    return Weights(w + 0.0, b + 0.0, total + np.add.reduce(y_bounded) * first)


def signed_sum(X: Floats, y: Floats, origin: Floats) -> tuple[Floats, float]:
    """Σ yᵢ(xᵢ − origin) in the order given, and the size of the largest sum of absolute terms.

    >>> signed_sum(np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([1.0, -1.0]), np.zeros(2))
    (array([-2., -3.]), 7.0)
    """
    total, magnitude = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for start in range(0, len(y), ROWS_A_SUM):
        terms = X[start : start + ROWS_A_SUM] - origin
        terms *= y[start : start + ROWS_A_SUM, None]
        total += np.add.reduce(terms, axis=0)
        magnitude += np.add.reduce(np.abs(terms, out=terms), axis=0)
    return total, float(np.max(magnitude, initial=0.0))


def mean_offset(X: Floats, y: Floats, w: Floats) -> float:
    """The mean of yᵢ − w·xᵢ."""
    total = 0.0
    for start in range(0, len(y), ROWS_A_SUM):
        stop = start + ROWS_A_SUM
        total += float(np.add.reduce(y[start:stop] - np.add.reduce(X[start:stop] * w, axis=1)))
    return total / len(y)


def orthonormal(X: Floats, origin: Floats) -> tuple[Floats, Ints]:
    """Orthonormal directions spanning the rows xᵢ − origin, and the rows that they were made from, in that order.

    Modified Gram–Schmidt, longest remainder first, each direction cleaned twice: accurate without squaring the
    condition number. Rows go in blocks, so that thousands of tied samples cost little more than the few that matter.
    """
    dimension = len(origin)
    basis, chosen, rank = np.zeros((dimension, dimension)), np.zeros(dimension, dtype=np.int64), 0
    reachable = int(np.count_nonzero((origin != X).any(axis=0)))  # columns without variation add no direction
    block = 4 * (dimension + 1)
    for start in range(0, len(X), block):
        if rank == reachable:
            break
        rows = X[start : start + block]
        shortest = RANK_TOLERANCE**2 * float(np.max(np.add.reduce(rows * rows, axis=1)))
        remainder = rows - origin
        if rank:
            # Most blocks bring nothing new. BLAS may look: its rounding is far below the tolerance.
            beyond = remainder - (remainder @ basis[:rank].T) @ basis[:rank]
            if np.max(np.sum(beyond * beyond, axis=1)) <= shortest:
                continue
        for direction in basis[:rank]:
            remainder -= np.add.reduce(remainder * direction, axis=1)[:, None] * direction
        while rank < reachable:
            lengths = np.add.reduce(remainder * remainder, axis=1)
            pivot = int(np.argmax(lengths))
            if lengths[pivot] <= shortest:
                break
            direction = remainder[pivot] / np.sqrt(lengths[pivot])
            found = basis[:rank]
            direction -= np.add.reduce(np.add.reduce(found * direction, axis=1)[:, None] * found, axis=0)
            direction /= np.sqrt(np.add.reduce(direction * direction))
            basis[rank], chosen[rank] = direction, start + pivot
            remainder -= np.add.reduce(remainder * direction, axis=1)[:, None] * direction
            rank += 1
    return basis[:rank], chosen[:rank]
