"""Rows in float32, for Newton's steps where there are many features.

They are half as much to read, and conjugate gradients find a direction with a dozen products of the band with a vector,
unless its directions differ much in size; making and solving the d × d system costs as much as hundreds. What rounding
does here is estimated, and where it would matter Newton's method goes on in float64.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxrr.svm.arrays import AnyArray, Floats, Ints

WIDE = 256  # features from which on this is worth while
MOST_NUMBERS = 1 << 25  # of rows in another type, which are copied
ROUNDING = 1.2e-7  # of a number in float32
LEAST, MOST = 1e-15, 1e15  # lengths of samples between which their products are numbers in float32
LEFT = 0.1  # of the gradient, where a direction is good enough for an exact line search
MOST_PRODUCTS = 60  # that are tried: with more than this, the system itself is solved as fast


@dataclass(frozen=True)
class Light:
    """Rows (m × d)."""

    X: NDArray[np.float32]

    @classmethod
    def of(cls, X: AnyArray) -> "Light | None":
        """These rows, if it is worth while."""
        if X.shape[1] < WIDE or (X.dtype != np.float32 and X.size > MOST_NUMBERS):
            return None
        with np.errstate(all="ignore"):  # numbers that overflow are seen in the result
            return cls(X.astype(np.float32, copy=False))

    @np.errstate(all="ignore")
    def times(self, w: Floats) -> Floats:
        """X @ w."""
        return np.asarray(self.X @ w.astype(np.float32), dtype=np.float64)

    @np.errstate(all="ignore")
    def combined(self, multipliers: Floats) -> Floats:
        """multipliers @ X."""
        return np.asarray(multipliers.astype(np.float32) @ self.X, dtype=np.float64)

    @np.errstate(all="ignore")
    def direction(
        self, chosen: Ints, sigma: float, share: Floats | None, gradient_w: Floats, gradient_b: float
    ) -> tuple[Floats, float] | None:  # fmt: skip
        """What `newton.direction` finds, roughly; None if that takes too many products."""
        band = self.X[chosen]
        weights = np.ones(len(band), dtype=np.float32) if share is None else share[chosen].astype(np.float32)
        size = float(weights.sum())
        mean, steepness = weights @ band / np.float32(size), np.float32(sigma) * weights
        residual = (gradient_b * mean - gradient_w).astype(np.float32)
        step, along, square = np.zeros_like(residual), residual, float(residual @ residual)
        enough = LEFT**2 * square
        for _ in range(MOST_PRODUCTS):
            if square <= enough:
                found = step.astype(np.float64)
                return found, -gradient_b / (sigma * size) - float(mean @ found)
            part = steepness * (band @ along - mean @ along)
            image = along + part @ band - part.sum() * mean
            length = np.float32(square / float(along @ image))
            step, residual = step + length * along, residual - length * image
            before, square = square, float(residual @ residual)
            along = residual + np.float32(square / before) * along
        return None


def noise(multipliers: Floats, sigma: float, in_band: int, length: float, w: Floats) -> float:
    """How far off a gradient may be, in multipliers: by the rounding of margins, and of its own sum."""
    margin = ROUNDING * length * math.sqrt(float(w @ w))
    return sigma * margin * math.sqrt(in_band) + ROUNDING * float(multipliers.sum())
