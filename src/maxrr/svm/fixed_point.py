"""Exact sums and products: integers for the numbers, BLAS for the work.

A number here is an integer times a power of two, and vectors of them are arrays of Python's integers, which never
round. A float64 matrix is such a thing too. It is cut into slices of whole numbers so small that their products, summed
in any order, stay below 2⁵³: float64 arithmetic is exact there, so that BLAS may do it, on any processor and any number
of threads.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.svm.arrays import Floats

MANTISSA = 53  # bits of a float64
DIGIT = 16  # bits of a digit of a vector
ROWS_PER_SUM = 4096  # rows summed at once: few enough for slices to be wide, and for the cache
SUM_WIDTH = MANTISSA - 12 - 1

Integers = NDArray[Any]  # of dtype object: Python's integers


@dataclass(frozen=True, eq=False)
class Fixed:
    """A vector: `values` · 2^−`bits`."""

    values: Integers
    bits: int

    @classmethod
    def of(cls, values: Floats) -> "Fixed":
        """These very numbers.

        >>> Fixed.of(np.array([0.75, -2.0]))
        Fixed(values=array([3, -8], dtype=object), bits=2)
        """
        ratios = [float(value).as_integer_ratio() for value in values]
        bits = max((denominator.bit_length() - 1 for _, denominator in ratios), default=0)
        return cls(
            integers(numerator << bits - denominator.bit_length() + 1 for numerator, denominator in ratios), bits
        )

    @classmethod
    def zeros(cls, count: int) -> "Fixed":
        return cls(integers(0 for _ in range(count)), 0)

    def at(self, bits: int) -> Integers:
        """The values counted in units of 2^−bits, which must not be coarser than the vector's own."""
        return self.values << (bits - self.bits)

    def above(self, bits: int) -> int:
        """The least whole number of units of 2^−bits that is not below the one number that this is."""
        shift, value = bits - self.bits, int(self.values[0])
        return value << shift if shift >= 0 else -(-value >> -shift)

    def plus(self, other: "Fixed") -> "Fixed":
        bits = max(self.bits, other.bits)
        return Fixed(self.at(bits) + other.at(bits), bits)

    def minus(self, other: "Fixed") -> "Fixed":
        bits = max(self.bits, other.bits)
        return Fixed(self.at(bits) - other.at(bits), bits)

    def negated(self) -> "Fixed":
        return Fixed(-self.values, self.bits)

    def times(self, factor: float) -> "Fixed":
        numerator, denominator = factor.as_integer_ratio()
        return Fixed(self.values * numerator, self.bits + denominator.bit_length() - 1)

    def reduced(self) -> "Fixed":
        """The same numbers with as few bits as they need."""
        every = 0
        for value in self.values:
            every |= value
        spare = max((every & -every).bit_length() - 1, 0)
        return Fixed(self.values >> spare, self.bits - spare) if spare else self

    def rounded(self) -> Floats:
        """The nearest float64 numbers."""
        try:
            return np.ldexp(self.values.astype(np.float64), -self.bits)
        except OverflowError:  # on the way only
            return np.array([scaled(value, self.bits) for value in self.values], dtype=np.float64)


def integers(values: Any) -> Integers:
    """An array of Python's integers."""
    found = list(values)
    array = np.empty(len(found), dtype=object)
    array[:] = found
    return array


def scaled(value: int, bits: int) -> float:
    """value · 2^−bits as the nearest float64, zero or infinite beyond its range."""
    excess = abs(value).bit_length() - 64
    if excess > 0:  # one bit stands for all that is cut off, and breaks ties as they would
        lost = value & ((1 << excess) - 1) != 0
        value = (value >> excess) | int(lost)
        bits -= excess
    try:
        return math.ldexp(float(value), -bits)
    except OverflowError:
        return math.copysign(math.inf, value)


@dataclass(frozen=True, eq=False)
class Slices:
    """A matrix as a sum of integer ones: X = 2^c Σ 2^−w(k+1) slice_k, column by column with its own exponent c."""

    stacked: Floats  # (slices, rows, columns)
    exponents: NDArray[np.int64]  # c
    width: int  # w

    @classmethod
    def of(cls, X: Floats) -> "Slices":
        width = MANTISSA - DIGIT - max(*X.shape, 2).bit_length()
        exponents = column_exponents(X)
        return cls(np.array(list(slices(X, exponents, width))), exponents, width)

    def product(self, vector: Fixed) -> Fixed:
        """X · vector."""
        vector = vector.reduced()
        lowest = int(self.exponents.min(initial=0))
        parts = digits(vector.values << integers((self.exponents - lowest).tolist()))
        count, rows, columns = self.stacked.shape
        sums = carried(self.stacked.reshape(count * rows, columns) @ parts.T)
        return Fixed(self.added(sums.reshape(count, rows)), vector.bits + self.width * count - lowest)

    def combination(self, vector: Fixed) -> Fixed:
        """Σ vectorᵢ xᵢ over the rows xᵢ."""
        vector = vector.reduced()
        lowest = int(self.exponents.min(initial=0))
        count, _, columns = self.stacked.shape
        sums = carried((digits(vector.values) @ self.stacked).transpose(0, 2, 1).reshape(count * columns, -1))
        total = self.added(sums.reshape(count, columns)) << integers((self.exponents - lowest).tolist())
        return Fixed(total, vector.bits + self.width * count - lowest)

    def added(self, parts: Integers) -> Integers:
        """Σ parts[k] · 2^w(slices − 1 − k)."""
        total: Integers = parts[0]
        for part in parts[1:]:
            total = (total << self.width) + part
        return total


def column_exponents(X: Floats) -> NDArray[np.int64]:
    """For each column the least c with all its numbers below 2^c in size."""
    found: NDArray[np.int64] = np.frexp(np.max(np.abs(X), axis=0, initial=0.0))[1].astype(np.int64)
    return found


def slices(X: Floats, exponents: NDArray[np.int64], width: int) -> Iterator[Floats]:
    """Whole numbers of `width` bits that add up to X, the most significant first; at least one slice."""
    rest = np.ldexp(X, width - exponents)
    while True:
        part = np.rint(rest)
        yield part
        rest -= part
        if not rest.any():
            return
        rest *= 2.0**width


def digits(values: Integers) -> Floats:
    """Digits to the base 2^DIGIT, the least significant first, the last one with the sign: (digits × values)."""
    longest = max((abs(value).bit_length() for value in values), default=0)
    count = longest // DIGIT + 1
    content = b"".join([int(value).to_bytes(2 * count, "little", signed=True) for value in values])
    found = np.frombuffer(content, dtype="<u2").reshape(len(values), count).T.astype(np.float64)
    found[-1] = np.frombuffer(content, dtype="<i2").reshape(len(values), count)[:, -1]
    return found


def carried(sums: Floats) -> Integers:
    """Σ sums[i, l] · 2^(DIGIT·l) as integers, for whole numbers below 2^MANTISSA in size."""
    rows, count = sums.shape
    whole = sums.T.astype(np.int64)
    content = np.empty((rows, 2 * count + 8), dtype=np.uint8)
    low = content[:, : 2 * count].view("<u2")
    carry = np.zeros(rows, dtype=np.int64)
    for place in range(count):
        carry += whole[place]
        low[:, place] = carry & ((1 << DIGIT) - 1)
        carry >>= DIGIT
    content[:, 2 * count :] = carry.astype("<i8").view(np.uint8).reshape(rows, 8)
    size, flat = 2 * count + 8, content.tobytes()
    return integers(int.from_bytes(flat[at : at + size], "little", signed=True) for at in range(0, rows * size, size))


def signed_sum(X: Floats, y: Floats) -> Fixed:
    """Σ yᵢxᵢ for yᵢ = ±1."""
    total = Fixed.zeros(X.shape[1])
    for start in range(0, len(y), ROWS_PER_SUM):
        rows, signs = X[start : start + ROWS_PER_SUM], y[start : start + ROWS_PER_SUM]
        exponents = column_exponents(rows)
        lowest = int(exponents.min(initial=0))
        values, count = Fixed.zeros(X.shape[1]).values, 0
        for part in slices(rows, exponents, SUM_WIDTH):
            values, count = (values << SUM_WIDTH) + (signs @ part).astype(np.int64).astype(object), count + 1
        total = total.plus(Fixed(values << integers((exponents - lowest).tolist()), SUM_WIDTH * count - lowest))
    return total


def combination(X: Floats, factors: Fixed) -> Fixed:
    """Σ factorᵢ xᵢ."""
    total = Fixed.zeros(X.shape[1])
    for start in range(0, len(X), ROWS_PER_SUM):
        part = slice(start, start + ROWS_PER_SUM)
        total = total.plus(Slices.of(X[part]).combination(Fixed(factors.values[part], factors.bits)))
    return total
