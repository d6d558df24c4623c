"""A basis whose samples depend on each other but for their last digits: float64 cannot factor it, integers can.

Columns that are sums of others, rows that repeat up to rounding and rank lost in a network's layer leave differences of
1e-16 between samples that float64 takes for dependent. They are as real as any others: the exact solution sees them.
Here the Gram matrix is exact, and its factors have hundreds of bits, so that such a basis serves as well as any other.
"""

import math

import numpy as np

from maxrr.svm.arrays import Floats, Ints
from maxrr.svm.basis import Near
from maxrr.svm.fixed_point import Fixed, Integers, integers

BITS = 448  # of the factors
MOST = 120  # samples: more would take too long
NOTHING = 2.0**-150  # of its own length: a sample this close to the span of the others depends on them


class FineBasis:
    """As `basis.Basis`, with factors of many bits."""

    def __init__(self, near: Near, members: Ints) -> None:
        self.members, self.C = members, near.C
        self.first = near.X[members[0]]
        self.rows = near.X[members[1:]] - self.first
        self.origin = Fixed.of(self.first)
        self.differences = [Fixed.of(row).minus(self.origin) for row in near.X[members[1:]]]
        self.bits = max((row.bits for row in self.differences), default=0)
        self.whole = np.array([row.at(self.bits) for row in self.differences], dtype=object).reshape(self.rows.shape)
        gram = self.whole @ self.whole.T
        self.scale = BITS - max((int(value).bit_length() for value in gram.diagonal()), default=0)
        self.lower, self.pivots = factorise(shift(gram, self.scale))

    def solve(self, right: Integers) -> Integers:
        """G⁻¹ right in units of 2^−BITS, for the Gram matrix G of the integers in `whole`."""
        found = shift(right, self.scale + BITS)
        for row in range(len(found)):
            found[row + 1 :] -= (self.lower[row + 1 :, row] * found[row]) >> BITS
        for row in range(len(found)):
            found[row] = (int(found[row]) << BITS) // int(self.pivots[row]) if self.pivots[row] else 0
        for row in reversed(range(len(found))):
            found[:row] -= (self.lower[row, :row] * found[row]) >> BITS
        return found >> BITS

    def step(self, first: float, further: Floats, imbalance: float, bits: int) -> tuple[Integers, int]:
        """As `Basis.step`. Every digit counts: the changes are large, and cancel."""
        origin, off = self.origin, Fixed.of(np.array([imbalance]))
        along = Fixed(self.whole @ origin.values, self.bits + origin.bits)
        right = Fixed.of(further / self.C).plus(along.times(imbalance))
        signed = Fixed(self.solve(right.values), right.bits + BITS - 2 * self.bits)
        moved = Fixed(signed.values @ self.whole, signed.bits + self.bits).minus(origin.times(imbalance)).times(self.C)
        raised = Fixed(integers([moved.values @ origin.values]), moved.bits + origin.bits)
        whole = shift(signed.values, bits - signed.bits)
        rise = Fixed.of(np.array([first])).minus(raised)
        balance = -int(np.sum(whole)) - int(shift(off.values, bits - off.bits)[0])
        return integers([balance, *whole]), int(shift(rise.values, bits - rise.bits)[0])

    def coefficients(self, x: Floats) -> tuple[Floats, float]:
        """As `Basis.coefficients`."""
        away = Fixed.of(x).minus(self.origin)
        bits = max(away.bits, self.bits)
        values, whole = away.at(bits), self.whole << (bits - self.bits)
        size = int(values @ values)
        if not len(self.rows) or not size:
            return np.concatenate([[1.0], np.zeros(len(self.rows))]), 0.0 if not size else 1.0
        along = whole @ values
        inner = Fixed(self.solve(along), 2 * (bits - self.bits) + BITS)
        rest = (size << inner.bits) - int(inner.values @ along)
        distance = math.sqrt(max(rest, 0) / (size << inner.bits))
        return np.concatenate([[1.0 - np.sum(inner.rounded())], inner.rounded()]), distance


def factorise(gram: Integers) -> tuple[Integers, Integers]:
    """L with ones on its diagonal, in units of 2^−BITS, and D with L D Lᵀ the matrix."""
    rest, count = gram.copy(), len(gram)
    lower = np.zeros((count, count), dtype=object)
    for row in range(count):
        pivot = int(rest[row, row])
        if pivot <= 0:
            rest[row, row] = 0
            continue
        column = rest[row + 1 :, row].copy()
        lower[row + 1 :, row] = (column << BITS) // pivot
        rest[row + 1 :, row + 1 :] -= np.outer(lower[row + 1 :, row], column) >> BITS
    return lower, rest.diagonal().copy()


def shift(values: Integers, bits: int) -> Integers:
    return values << bits if bits >= 0 else values >> -bits
