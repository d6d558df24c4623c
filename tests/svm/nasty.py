"""Small SVM problems made to be hard: ties, near ties, degenerate rows and columns, and extremes of scale.

Each is named by its family and a seed: 3 to 12 samples, 1 to 4 columns, both labels present.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Made = tuple[NDArray[np.float64], NDArray[np.int64], float]
PENALTIES = (0.001, 0.01, 0.1, 0.5, 1.0, 10.0, 100.0, 1000.0)


def problem(family: str, seed: int) -> Made:
    """Samples, labels ±1, and C; the same for the same family and seed."""
    at = FAMILIES.index(family)
    X, y, C = _MAKERS[at](np.random.default_rng([at, seed]))
    return np.ascontiguousarray(X, dtype=np.float64), y.astype(np.int64), float(C)


def _size(rng: np.random.Generator) -> tuple[int, int]:
    return int(rng.integers(3, 13)), int(rng.integers(1, 5))


def _labels(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """Random labels, of which two random ones are made to differ."""
    y = rng.choice([-1, 1], n)
    one, other = rng.choice(n, 2, replace=False)
    y[one], y[other] = 1, -1
    return y


def _penalty(rng: np.random.Generator) -> float:
    """One of the round penalties, or one time in five an arbitrary one."""
    return 10.0 ** rng.uniform(-3, 3) if rng.random() < 0.2 else float(rng.choice(PENALTIES))


def _integers(rng: np.random.Generator, low: int, high: int) -> Made:
    """Integers from low to high, both included."""
    n, d = _size(rng)
    return rng.integers(low, high + 1, (n, d)).astype(float), _labels(rng, n), _penalty(rng)


def _random_normal(rng: np.random.Generator) -> Made:
    n, d = _size(rng)
    return rng.normal(size=(n, d)), _labels(rng, n), _penalty(rng)


def _either(rng: np.random.Generator) -> Made:
    """Small integers or normal data."""
    return _integers(rng, -3, 3) if rng.random() < 0.5 else _random_normal(rng)


def _zero_one(rng: np.random.Generator) -> Made:
    return _integers(rng, 0, 1)


def _small_integers(rng: np.random.Generator) -> Made:
    return _integers(rng, 0, 5)


def _grid(rng: np.random.Generator) -> Made:
    """Points of the grid −2…2, of which no two are equal where there are enough."""
    n, d = _size(rng)
    points = rng.choice(5**d, n, replace=n > 5**d)
    X = np.stack(np.unravel_index(points, (5,) * d), axis=1).astype(np.float64) - 2
    return X, _labels(rng, n), _penalty(rng)


def _far_out(rng: np.random.Generator) -> Made:
    """One sample 1e2 to 1e7 away, in one column or in all."""
    X, y, C = _random_normal(rng)
    row, column = rng.integers(len(X)), rng.integers(X.shape[1])
    size = 10.0 ** rng.integers(2, 8)
    if rng.random() < 0.5:
        X[row, column] = size * rng.choice([-1, 1])
    else:
        X[row] *= size
    return X, y, C


def _near_ties(rng: np.random.Generator) -> Made:
    """Data with ties, moved by 1e-6 to 1e-16: small integers, pairs across a margin, or repeated rows."""
    step = 10.0 ** -int(rng.integers(6, 17))
    kind = rng.integers(3)
    if kind == 0:
        X, y, C = _integers(rng, -2, 2)
        X /= 16  # so that the least step is not lost in rounding
    elif kind == 1:
        pairs, d = int(rng.integers(2, 7)), int(rng.integers(1, 5))
        along = rng.integers(-2, 3, (pairs, d)) / 4
        X, y = np.vstack([along, along]), np.repeat([1, -1], pairs)
        X[:, 0] = y * rng.choice([0.25, 0.5, 1.0])
        C = _penalty(rng)
    else:
        X, y, C = _random_normal(rng)
        X = X[rng.integers((len(X) + 1) // 2, size=len(X))]
    moved = rng.random(X.shape) < rng.choice([0.2, 1.0])
    return X + moved * rng.integers(-2, 3, X.shape) * step, y, C


def _tiny_scale(rng: np.random.Generator) -> Made:
    X, y, C = _either(rng)
    return X * rng.choice([1e-6, 1e-5, 1e-4, 1e-3, 1e-2]), y, C


def _huge_scale(rng: np.random.Generator) -> Made:
    X, y, C = _either(rng)
    return X * rng.choice([1e5, 1e6, 1e7]), y, C


def _mixed_columns(rng: np.random.Generator) -> Made:
    X, y, C = _either(rng)
    return X * 10.0 ** rng.integers(-3, 7, X.shape[1]), y, C


def _duplicates(rng: np.random.Generator) -> Made:
    """Rows repeated together with their labels."""
    X, y, C = _either(rng)
    kept = rng.integers(int(rng.integers(1, len(X))), size=len(X))
    kept[:2] = np.argmax(y), np.argmin(y)
    return X[kept], y[kept], C


def _contradictions(rng: np.random.Generator) -> Made:
    """Rows repeated with the other label."""
    X, y, C = _either(rng)
    half = len(X) // 2
    copied = rng.integers(half, size=len(X) - half)
    X[half:] = X[copied]
    y[half:] = np.where(rng.random(len(copied)) < 0.7, -1, 1) * y[copied]
    y[half] = -y[copied[0]]
    return X, y, C


def _no_spread(rng: np.random.Generator) -> Made:
    """All rows equal, or apart by almost nothing."""
    X, y, C = _either(rng)
    X[:] = X[0] * rng.choice([0.0, 1.0, 1e3])
    return X + rng.choice([0.0, 1e-12, 1e-9, 1e-6]) * rng.normal(size=X.shape), y, C


def _imbalanced(rng: np.random.Generator) -> Made:
    """One sample against all others."""
    X, y, C = _either(rng)
    y[:] = rng.choice([-1, 1])
    y[rng.integers(len(y))] *= -1
    return X, y, C


def _separable(rng: np.random.Generator) -> Made:
    """Classes parted along a random direction, by a wide or a narrow gap."""
    X, y, C = _random_normal(rng)
    direction = rng.normal(size=(X.shape[1],))
    direction = direction / np.linalg.norm(direction)
    along = y * (np.abs(X @ direction) + 10.0 ** rng.uniform(-3, 1))
    return X + np.outer(along - X @ direction, direction), y, C


def _halves(rng: np.random.Generator) -> Made:
    """Halves of integers and a power of two as C: sums and products without rounding, so ties are exact."""
    X, y, _ = _integers(rng, -4, 4)
    return X / 2, y, 2.0 ** rng.integers(-8, 9)


def _thirds(rng: np.random.Generator) -> Made:
    """Thirds of integers: ties but for rounding."""
    X, y, C = _integers(rng, -4, 4)
    return X / 3, y, C / 3 if rng.random() < 0.5 else C


def _float16(rng: np.random.Generator) -> Made:
    X, y, C = _random_normal(rng)
    return X.astype(np.float16), y, C


def _bias_interval(rng: np.random.Generator) -> Made:
    """As many of each label, all inside for small C: the optimal biases are an interval. Arithmetic without rounding.

    The first column's sum over the one label exceeds that over the other by one, so a shift of that column moves the
    interval by C times as much: an end of it comes to lie at, near, or away from zero, or zero inside it.
    """
    pairs, d = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    y = rng.permutation(np.repeat([1, -1], pairs))
    X = rng.integers(-3, 4, (2 * pairs, d)).astype(float)
    X[0, 0] += y[0] * (1 - y @ X[:, 0])
    C = 2.0 ** -int(rng.integers(8, 12))
    scores = C * X @ (y @ X)
    ends = np.array([(-1 - scores)[y < 0].max(), (1 - scores)[y > 0].min()])
    near = 2.0 ** -rng.integers(20, 41)
    beside = rng.choice([0.0, near, -near, 1.0, -1.0, 4.0, -4.0])
    X[:, 0] += (rng.choice(ends) - beside) / C
    return X, y, C


def _constant_columns(rng: np.random.Generator) -> Made:
    """A column of one value, zero or not, beside or in place of others."""
    X, y, C = _either(rng)
    X[:, rng.integers(X.shape[1])] = rng.choice([0.0, 1.0, -2.5, 0.1, 1e6])
    return X, y, C


def _rank_deficient(rng: np.random.Generator) -> Made:
    """Columns that repeat or combine one or two others."""
    n, d = int(rng.integers(3, 13)), int(rng.integers(2, 5))
    rank = int(rng.integers(1, min(d, 3)))
    X = rng.integers(-3, 4, (n, rank)).astype(float) if rng.random() < 0.5 else rng.normal(size=(n, rank))
    mixed = X @ rng.integers(-1, 3, (rank, d - rank))
    return np.hstack([X, mixed])[:, rng.permutation(d)], _labels(rng, n), _penalty(rng)


# in this order for good: a family's place is part of its seeds
_MAKERS: tuple[Callable[[np.random.Generator], Made], ...] = (
    _zero_one,
    _small_integers,
    _grid,
    _far_out,
    _near_ties,
    _tiny_scale,
    _huge_scale,
    _mixed_columns,
    _duplicates,
    _contradictions,
    _no_spread,
    _imbalanced,
    _separable,
    _halves,
    _thirds,
    _random_normal,
    _float16,
    _bias_interval,
    _constant_columns,
    _rank_deficient,
)
FAMILIES = tuple(maker.__name__.removeprefix("_") for maker in _MAKERS)
