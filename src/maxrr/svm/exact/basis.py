"""Samples on the margin with affinely independent features, and the linear system that they make.

All of it is float64: it steers `exact/multipliers.py`, which looks at what comes out without rounding.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import qr
from scipy.linalg.lapack import dtrtrs

from maxrr.svm.arrays import Floats, Ints
from maxrr.svm.exact.fixed_point import MANTISSA, Fixed, Integers, Slices, integers

CLEARLY = 1e-8  # more than this of each sample's own length is beyond the span of the others: they are independent
SAFELY = 1e-5  # more than this: even their products tell
DEPENDENT = 1e-12  # less than this of it: they are not


@dataclass(frozen=True, eq=False)
class Near:
    """The samples near the margin, and what the others add: Σ cᵢyᵢxᵢ and Σ cᵢyᵢ over those inside.

    The bounds of multipliers, cᵢ, and the multipliers themselves are in units of C.
    """

    X: Floats
    y: Floats
    C: float
    bounds: Floats
    pull: Fixed
    tilt: Fixed  # one number
    products: dict[int, Integers] = field(default_factory=dict)  # of some rows of X with all, as they were needed

    @cached_property
    def whole_bounds(self) -> Fixed:
        """The lower and upper bounds of all multipliers."""
        if (self.bounds == 1.0).all():
            return Fixed(np.full(len(self.bounds), 1, dtype=object), 0)
        return Fixed.of(self.bounds)

    @cached_property
    def slices(self) -> Slices:
        """The rows of X for exact products."""
        return Slices.of(self.X)

    @cached_property
    def whole(self) -> Fixed:
        """The numbers of X, row by row."""
        return Fixed.of(self.X.ravel())

    def gram(self, members: Ints) -> tuple[Integers, Integers, int]:
        """X in whole numbers of 2^−bits, the products of some of its rows with each other, and the bits."""
        whole, bits = self.whole.values.reshape(self.X.shape), self.whole.bits
        for place in set(members.tolist()) - self.products.keys():
            found = self.slices.product(Fixed(whole[place], bits))
            self.products[place] = shift(found.values, 2 * bits - found.bits)
        return whole, np.array([self.products[place][members] for place in members], dtype=object), bits

    def slopes(self) -> tuple[Integers, int]:
        """How the slope of the loss rises at each sample's turning point, and how far it is below zero before.

        See `multipliers.ends`. Samples that are not near the margin turn on the side of b where they were taken to be.
        """
        bits = max(self.whole_bounds.bits, self.tilt.bits)
        rises = self.whole_bounds.at(bits)
        return rises, int(self.tilt.at(bits)[0]) + int(np.sum(rises[self.y > 0.0]))

    def steepness(self) -> float:
        """By how much a multiplier, in units of C, can change a margin: C|x|²."""
        return self.C * float(np.max(np.einsum("ij,ij->i", self.X, self.X), initial=0.0))


class Basis:
    """Samples with affinely independent features, factored."""

    def __init__(self, near: Near, members: Ints) -> None:
        self.members = members
        self.C = near.C
        self.first = near.X[members[0]]
        self.rows = near.X[members[1:]] - self.first
        self.R = factor(self.rows) if len(self.rows) else None

    def independent(self) -> bool:
        """Whether the samples of the basis are clearly linearly independent."""
        return self.R is None or are_independent(self.R, np.linalg.norm(self.rows, axis=1), CLEARLY)

    def correction(self, first: float, further: Floats, imbalance: float) -> tuple[Floats, float]:
        """Changes of yᵢaᵢ and of b that undo the imbalance, Σ yᵢaᵢ, and raise the basis' scores.

        That of the first sample rises by `first`, those of the others by `further` more.
        """
        if self.R is None:
            change = -imbalance * self.C * self.first
            return np.array([-imbalance]), float(first - self.first @ change)
        right = further / self.C + imbalance * (self.rows @ self.first)
        signed = self.solve(self.solve(right, transposed=True))
        signed += self.solve(self.solve(right - self.rows @ (signed @ self.rows), transposed=True))  # a few bits more
        change = self.C * (signed @ self.rows - imbalance * self.first)
        return np.concatenate([[-imbalance - np.sum(signed)], signed]), float(first - self.first @ change)

    def step(self, first: float, further: Floats, imbalance: float, bits: int) -> tuple[Integers, int]:
        """Return `correction` in whole numbers of 2^−bits, which undo the imbalance to the last of them."""
        change, shift = self.correction(first, further, imbalance)
        if not (np.isfinite(change).all() and np.isfinite(shift)):
            raise OverflowError("the numbers are too far apart for float64")
        whole = rounded_to(change, bits)
        whole[0] -= sum(whole.tolist()) + round_to(imbalance, bits)
        return whole, int(rounded_to(np.array([shift]), bits)[0])

    def solve(self, right: Floats, transposed: bool = False) -> Floats:
        found, failed = dtrtrs(self.R, right, trans=int(transposed))
        return np.full(len(right), np.nan) if failed else np.asarray(found)

    def coefficients(self, x: Floats) -> tuple[Floats, float]:
        """The affine combination of the basis nearest to x, and its distance relative to x − first."""
        away = x - self.first
        length = float(np.linalg.norm(away))
        if self.R is None or length == 0.0:
            return np.concatenate([[1.0], np.zeros(len(self.rows))]), 0.0 if length == 0.0 else 1.0
        inner = self.solve(self.solve(self.rows @ away, transposed=True))
        rest = away - inner @ self.rows
        again = self.solve(self.solve(self.rows @ rest, transposed=True))
        inner, rest = inner + again, rest - again @ self.rows
        return np.concatenate([[1.0 - np.sum(inner)], inner]), float(np.linalg.norm(rest)) / length


def factor(rows: Floats) -> Floats:
    """Upper triangular R with RᵀR = rows · rowsᵀ: from these products where that is safe, which is faster."""
    products = rows @ rows.T
    try:
        R = np.asarray(np.linalg.cholesky(products).T, dtype=np.float64)
        if are_independent(R, np.sqrt(products.diagonal()), SAFELY):
            return R
    except np.linalg.LinAlgError:
        pass
    # In LAPACK's order, or else it would be copied for every solution.
    return np.asfortranarray(qr(rows.T, mode="r", check_finite=False)[0][: len(rows)])


def are_independent(R: Floats, lengths: Floats, clearly: float) -> bool:
    """Whether rows of these lengths, with this factor, are linearly independent."""
    return len(R) == R.shape[1] and bool((np.abs(R.diagonal()) > clearly * lengths).all())


def independent(X: Floats, preference: Floats) -> Ints:
    """Rows with affinely independent features that span all of them, those of high preference first."""
    order = np.argsort(-preference, kind="stable")
    first = X[order[0]]
    rows = X[order[1:]] - first
    lengths = np.linalg.norm(rows, axis=1)
    apart = lengths > 0.0
    if not apart.any():
        return order[:1]
    # Longer columns are chosen first: so make them as long as they are preferred.
    preference = preference[order] / preference[order[0]]
    weight = np.sqrt(np.maximum(preference[1:][apart], 1e-6)) / lengths[apart]
    R, pivots = qr((rows[apart] * weight[:, None]).T, mode="r", pivoting=True, check_finite=False)
    sizes = np.abs(np.diag(R)) / weight[pivots[: min(R.shape)]] / lengths[apart][pivots[: min(R.shape)]]
    dependent = np.flatnonzero(sizes <= DEPENDENT)
    rank = int(dependent[0]) if len(dependent) else len(sizes)
    return np.concatenate([order[:1], order[1:][apart][pivots[:rank]]])


def share_out(near: Near, guess: Floats, b: float, basis: Basis, places: Ints) -> Floats:
    """A guess under which the basis has margins of 1, the change shared by all multipliers between their bounds.

    Each takes the more of it the further it is from its bounds; the basis alone might have to leave them.
    """
    rows = np.column_stack([near.X[places], np.ones(len(places))]) * near.y[places, None]
    members = basis.members
    fixed, tilt = near.pull.rounded(), float(near.tilt.rounded()[0])
    guess = guess.copy()
    for _ in range(2):
        w = near.C * (fixed + (guess * near.y) @ near.X)
        lacking = near.y[members] - near.X[members] @ w - b
        change, shift = basis.correction(lacking[0], lacking[1:] - lacking[0], float(guess @ near.y) + tilt)
        wanted = change @ np.column_stack([near.X[members], np.ones(len(members))])
        room = np.minimum(guess, near.bounds - guess)[places] ** 2
        size = np.sqrt(room @ rows**2)
        unit = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0)
        scaled_rows = rows * unit
        gram = (scaled_rows * room[:, None]).T @ scaled_rows
        if not (np.isfinite(gram).all() and np.isfinite(wanted).all()):
            break
        found = np.linalg.pinv(gram, hermitian=True, rcond=1e-13) @ (wanted * unit)
        b += shift
        change = room * (scaled_rows @ found)
        guess[places] = np.clip(guess[places] + change, 0.0, near.bounds[places])
    return guess


def rounded_to(values: Floats, bits: int) -> Integers:
    """values · 2^bits, without digits beyond the last one of the largest: they would have to be carried along."""
    keep = min(max(MANTISSA - int(np.frexp(np.max(np.abs(values)))[1]), 0), bits)
    return all_rounded_to(values, keep) << (bits - keep)


def all_rounded_to(values: Floats, bits: int) -> Integers:
    """values · 2^bits as integers."""
    whole = np.floor(np.ldexp(values, bits))
    if np.max(np.abs(whole), initial=0.0) < 2.0**62:
        return integers(whole.astype(np.int64).tolist())
    return integers(round_to(value, bits) for value in values)


def round_to(value: float, bits: int) -> int:
    """value · 2^bits as an integer."""
    numerator, denominator = float(value).as_integer_ratio()
    return (numerator << bits) // denominator


# A basis whose samples depend on each other but for their last digits: float64 cannot factor it, integers can.
#
# Columns that are sums of others, rows that repeat up to rounding and rank lost in a network's layer leave differences
# of 1e-16 between samples that float64 takes for dependent. They are as real as any others: the exact solution sees
# them. Here the Gram matrix is exact, and its factors have hundreds of bits, so that such a basis serves as well as any
# other.


BITS = 448  # of the factors
MOST = 120  # samples: more would take too long
NOTHING = 2.0**-150  # of its own length: a sample this close to the span of the others depends on them


class FineBasis:
    """A basis like `Basis`, with factors of many bits."""

    def __init__(self, near: Near, members: Ints) -> None:
        self.members, self.C = members, near.C
        self.first = near.X[members[0]]
        self.rows = near.X[members[1:]] - self.first
        whole, products, self.bits = near.gram(members)
        self.origin, self.whole = Fixed(whole[members[0]], self.bits), whole[members[1:]] - whole[members[0]]
        gram = products[1:, 1:] - products[1:, :1] - products[:1, 1:] + products[0, 0]
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
        """Change one sample, as `Basis.step` does; every digit counts, because the changes are large and cancel."""
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
        """Solve for coefficients, as `Basis.coefficients` does."""
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
