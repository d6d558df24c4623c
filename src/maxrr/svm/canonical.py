"""The weights of a head, computed from its partition alone.

A solved head is known by two sets: its *bounded* samples (margin below 1, multiplier C) and its *free* ones (margin
exactly 1). Weights and bias follow from these by a small linear system. Everything here is a fixed sequence of
elementwise float64 operations and sums in a fixed order, without BLAS or LAPACK: the same partition gives the same
bytes, whichever solver, device or number of threads found it.
"""

import numpy as np

from maxrr.svm.arrays import Floats

EPSILON = float(np.finfo(np.float64).eps)
ROWS_A_SUM = 1024  # rows are summed in runs of this many, then the runs: a bound on memory and on rounding
RANK_TOLERANCE = 1e-11  # a free sample this close to the span of the others (relatively) adds no condition of its own


def signed_sum(X: Floats, y: Floats) -> Floats:
    """Σ yᵢ xᵢ in the order given.

    >>> signed_sum(np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([1.0, -1.0]))
    array([-2., -3.])
    """
    total = np.zeros(X.shape[1])
    for start in range(0, len(y), ROWS_A_SUM):
        stop = start + ROWS_A_SUM
        total += np.add.reduce(X[start:stop] * y[start:stop, None], axis=0)
    return total


def weights(X_free: Floats, y_free: Floats, X_bounded: Floats, y_bounded: Floats, C: float) -> tuple[Floats, float]:
    """The solution of the SVM restricted to the piece on which it lies.

    That is the minimiser of ½|w|² − C Σ yᵢ(w·xᵢ + b) over the bounded samples, under w·xᵢ + b = yᵢ for the free
    ones. Samples must be given in canonical order; free ones may repeat or depend on each other.

    Subtracting the first free sample from all others removes b: with rows aᵢ = xᵢ − x₀, targets cᵢ = yᵢ − y₀ and
    v = C Σ yᵢ(xᵢ − x₀), the solution is the point nearest to v that has aᵢ·w = cᵢ. Orthonormalising the rows
    (modified Gram–Schmidt, largest first, each direction cleaned twice) gives it without squaring the condition
    number.

    With no free sample w = C Σ yᵢxᵢ, and b = 0 is returned: the caller decides whether that is admissible.
    """
    if len(y_free) == 0:
        return C * signed_sum(X_bounded, y_bounded), 0.0
    first = X_free[0]
    differences = X_bounded - first
    toward = C * signed_sum(differences, y_bounded)
    noise = EPSILON * C * np.max(np.add.reduce(np.abs(differences), axis=0), initial=0.0)
    dimension = len(first)
    basis = np.zeros((0, dimension))
    solution = np.zeros(dimension)
    # In blocks, so that thousands of tied samples cost no more than the few that determine the solution.
    block = 4 * (dimension + 1)
    for start in range(1, len(y_free), block):
        if len(basis) == dimension:
            break
        residual = X_free[start : start + block] - first
        scale = np.sqrt(np.max(np.add.reduce(residual * residual, axis=1)))
        target = y_free[start : start + block] - y_free[0]
        for direction, level in zip(basis, basis_levels(basis, solution), strict=True):
            along = np.add.reduce(residual * direction, axis=1)
            residual -= along[:, None] * direction
            target = target - along * level
        while len(basis) < dimension:
            lengths = np.add.reduce(residual * residual, axis=1)
            pivot = int(np.argmax(lengths))
            length = np.sqrt(lengths[pivot])
            if length <= RANK_TOLERANCE * scale:
                break
            direction = residual[pivot] / length
            if len(basis):
                direction = direction - np.add.reduce(np.add.reduce(basis * direction, axis=1)[:, None] * basis, axis=0)
                direction = direction / np.sqrt(np.add.reduce(direction * direction))
            level = target[pivot] / length
            basis = np.vstack([basis, direction])
            solution = solution + level * direction
            along = np.add.reduce(residual * direction, axis=1)
            residual -= along[:, None] * direction
            target = target - along * level
    for direction in basis:
        toward = toward - np.add.reduce(toward * direction) * direction
    # What is left of v below its own rounding is noise: the free samples alone determine w.
    if len(basis) == dimension or np.max(np.abs(toward)) <= noise:
        toward = np.zeros(dimension)
    w = solution + toward
    return w, float(np.add.reduce(y_free - np.add.reduce(X_free * w, axis=1)) / len(y_free))


def basis_levels(basis: Floats, solution: Floats) -> Floats:
    """How far the solution lies along each direction of the basis."""
    return np.add.reduce(basis * solution, axis=1)
