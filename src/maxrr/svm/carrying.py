"""Heads for other features of the same samples: where to begin to look for them."""

import numpy as np

from maxrr.svm.arrays import AnyArray, Floats, Ints, wide

ENOUGH = 8_000  # samples to learn from
RIDGE = 1e-6  # of the mean of the diagonal

Weights = tuple[Floats, Floats]
"""Of all heads, as `coef_` and `intercept_` have them."""


def carried_over(
    coef: Floats, intercept: Floats, before: AnyArray, after: AnyArray, changed: Ints
) -> Weights:  # fmt: skip
    """Weights and biases that give about the same scores on other features.

    What the columns that are now others added to the scores is fitted by least squares on what stands there now. That
    is no solution for the other features, but a start that is nearer to it than the origin.

    Parameters
    ----------
    coef, intercept
        Of heads on the features before.
    before, after
        Features of the same samples (samples × d); of some, where there are many (`ENOUGH`).
    changed
        The columns that are not the same.

    Returns
    -------
    tuple of (ndarray, ndarray)
        As `coef_` and `intercept_` are.

    Examples
    --------
    >>> before = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0], [5.0, 3.0]])
    >>> after = np.stack([before[:, 0], 3.0 - 2.0 * before[:, 1]], axis=1)
    >>> w, b = carried_over(np.array([[1.0, 4.0]]), np.zeros(1), before, after, np.array([1]))
    >>> w.round(3).tolist(), b.round(3).tolist()
    ([[1.0, -2.0]], [6.0])
    """
    new = wide(after[:, changed])
    mean = new.mean(axis=0)
    new -= mean
    added = wide(before[:, changed]) @ coef[:, changed].T
    level = added.mean(axis=0)
    gram = new.T @ new
    ridge = RIDGE * float(np.trace(gram)) / len(gram) or 1.0
    found = coef.copy()
    found[:, changed] = np.linalg.solve(gram + ridge * np.eye(len(gram)), new.T @ (added - level)).T
    return found, intercept + level - found[:, changed] @ mean
