"""Multipliers for samples that are tied on the margin.

With more free samples than conditions many multipliers fit the same weights, and Newton's method finds some of them
through margins: how far a sample's is from 1, times a steepness. Where the margins have met at 1 to the last digit,
what is left of them is rounding, and says nothing any more. But then they are not needed either. The weights are
known, and multipliers are any 0 ≤ αᵢ ≤ C with the right sums Σ αᵢyᵢxᵢ and Σ αᵢyᵢ; if there are none, the weights are
not optimal, and the certificate shows it.
"""

import numpy as np

from maxrr.svm.arrays import Floats, solve_positive
from maxrr.svm.canonical import orthonormal
from maxrr.svm.newton import line_search

MOST_STEPS = 300  # a dozen is usual, and a hundred or two where hardly any multipliers fit
DAMPING = 1e-9  # of one sample's curvature: for directions in which all samples are at their bounds
ROUNDING = 1e-14  # of a sum, relative to its terms
ENDLESS = 1e30  # a step this long never meets a minimum: no multipliers fit


def balance(X: Floats, y: Floats, C: float, total: Floats, tilt: float) -> Floats:
    """Multipliers 0 ≤ αᵢ ≤ C with Σ αᵢyᵢxᵢ = total and Σ αᵢyᵢ = tilt, of all such the nearest to C/2.

    Where none exist, some that miss these sums.

    These are αᵢ = clip(C/2 − u·rᵢ, 0, C) for rows rᵢ = yᵢ(xᵢ, 1) and the u that minimises a convex, piecewise quadratic
    function, whose gradient is what the sums still lack. Newton's method finds it.

    >>> balance(np.array([[0.0], [1.0], [2.0]]), -np.ones(3), 1.0, np.array([-1.1]), -0.6).round(9)
    array([0. , 0.1, 0.5])
    """
    # 1. Only directions along which these samples differ, in units of their distances: no condition without a remedy.
    basis, _ = orthonormal(X, X[0])
    inner = (X - X[0]) @ basis.T
    unit = float(np.max(np.linalg.norm(inner, axis=1))) or 1.0
    rows = y[:, None] * np.column_stack([inner / unit, np.ones(len(y))])
    target = np.append(basis @ (total - tilt * X[0]) / unit, tilt)
    # 2. Newton, with the exact minimiser along each direction.
    cap = np.full(len(y), C)
    raised = 0.5 * cap
    for _ in range(MOST_STEPS):
        alpha = np.clip(raised, 0.0, cap)
        lacking = target - alpha @ rows
        if np.linalg.norm(lacking) <= ROUNDING * np.sum(alpha):
            break
        band = rows[(raised > 0.0) & (raised < cap)]
        step = -solve_positive(band.T @ band, DAMPING, lacking)
        change = rows @ step
        slope, offset = float(lacking @ step), float(target @ step)
        size = line_search(raised, cap, 1.0, change, slope, offset=offset, curvature=0.0)
        if not 0.0 < size < ENDLESS:
            break
        raised = raised - size * change
    return alpha
