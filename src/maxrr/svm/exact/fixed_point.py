"""Exact sums and products: integers for the numbers, BLAS for the work.

A number here is an integer times a power of two, and vectors of them are arrays of Python's integers, which never
round. A float64 matrix is such a thing too. It is cut into slices of whole numbers so small that their products, summed
in any order, stay below 2⁵³: float64 arithmetic is exact there, so that BLAS may do it, on any processor and any number
of threads.
"""

import functools
import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.svm.arrays import AnyArray, Floats, Ints, blocks, is_torch, like, to_numpy, wide

MANTISSA = 53  # bits of a float64
DIGIT = 16  # bits of a digit of a vector
ROWS_PER_SUM = 4096  # rows summed at once: few enough for slices to be wide, and for the cache

Integers = NDArray[Any]  # of dtype object: Python's integers


@dataclass(frozen=True, eq=False)
class Fixed:
    """A vector: `values` · 2^−`bits`."""

    values: Integers
    bits: int

    @classmethod
    def of(cls, values: Floats) -> "Fixed":
        """The numbers of a float array, exactly.

        >>> Fixed.of(np.array([0.75, -2.0]))
        Fixed(values=array([3, -8], dtype=object), bits=2)
        """
        ratios = [float(value).as_integer_ratio() for value in values]
        bits = max((denominator.bit_length() - 1 for _, denominator in ratios), default=0)
        whole = (numerator << bits - denominator.bit_length() + 1 for numerator, denominator in ratios)
        return cls(integers(whole), bits)

    @classmethod
    def zeros(cls, count: int) -> "Fixed":
        return cls(integers(0 for _ in range(count)), 0)

    def at(self, bits: int) -> Integers:
        """The values counted in units of 2^−bits, which must not be coarser than the vector's own."""
        return self.values << (bits - self.bits)

    def above(self, bits: int) -> int:
        """Round the only number of this vector up to whole units of 2^−bits."""
        shift, value = bits - self.bits, int(self.values[0])
        return value << shift if shift >= 0 else -(-value >> -shift)

    def plus(self, other: "Fixed") -> "Fixed":
        bits = max(self.bits, other.bits)
        return Fixed(self.at(bits) + other.at(bits), bits)

    def minus(self, other: "Fixed") -> "Fixed":
        bits = max(self.bits, other.bits)
        return Fixed(self.at(bits) - other.at(bits), bits)

    def times(self, factor: float) -> "Fixed":
        numerator, denominator = factor.as_integer_ratio()
        return Fixed(self.values * numerator, self.bits + denominator.bit_length() - 1)

    def times_each(self, factors: Integers) -> "Fixed":
        return Fixed(self.values * factors, self.bits)

    def reduced(self) -> "Fixed":
        """The same numbers with as few bits as they need."""
        every = functools.reduce(operator.or_, self.values.tolist(), 0)
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
    found = values if isinstance(values, list) else list(values)
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

    def of_rows(self, places: list[int]) -> "Slices":
        """Return the slices of some rows, in this order."""
        if places == list(range(self.stacked.shape[1])):
            return self
        return Slices(self.stacked[:, places], self.exponents, self.width)

    def product(self, vector: Fixed) -> Fixed:
        """X · vector."""
        vector = vector.reduced()
        lowest = int(self.exponents.min(initial=0))
        parts = digits(vector.values << integers((self.exponents - lowest).tolist()))
        total = carried(parts @ self.stacked.transpose(0, 2, 1), self.width)
        return Fixed(total, vector.bits + self.width * len(self.stacked) - lowest)

    def combination(self, vector: Fixed) -> Fixed:
        """Σ vectorᵢ xᵢ over the rows xᵢ."""
        vector = vector.reduced()
        lowest = int(self.exponents.min(initial=0))
        total = carried(digits(vector.values) @ self.stacked, self.width)
        total = total << integers((self.exponents - lowest).tolist())
        return Fixed(total, vector.bits + self.width * len(self.stacked) - lowest)


def column_exponents(X: AnyArray) -> NDArray[np.int64]:
    """For each column the least c with all its numbers below 2^c in size."""
    largest = to_numpy(abs(X).amax(0)) if is_torch(X) else np.max(np.abs(X), axis=0, initial=0.0)
    return np.asarray(np.frexp(largest)[1], dtype=np.int64)


def slices(X: AnyArray, exponents: NDArray[np.int64], width: int) -> Iterator[AnyArray]:
    """Whole numbers of `width` bits that add up to X, the most significant first; at least one slice."""
    half = (width - exponents) // 2  # in two steps, as 2^(width − c) may be too large for a float64
    rest = X * like(np.ldexp(1.0, half), X)
    rest *= like(np.ldexp(1.0, width - exponents - half), X)
    while True:
        part = rest.round()
        yield part
        rest -= part
        if not rest.any():
            return
        rest *= 2.0**width


def digits(values: Integers) -> Floats:
    """Digits to the base 2^DIGIT, the least significant first, the last one with the sign: (digits × values)."""
    whole = values.tolist()
    longest = max(max(whole), -min(whole)).bit_length() if whole else 0
    count = longest // DIGIT + 1
    content = b"".join([value.to_bytes(2 * count, "little", signed=True) for value in whole])
    found = np.frombuffer(content, dtype="<u2").reshape(len(values), count).T.astype(np.float64)
    found[-1] = np.frombuffer(content, dtype="<i2").reshape(len(values), count)[:, -1]
    return found


def carried(sums: Floats, width: int) -> Integers:
    """Σ sums[k, l, i] · 2^(DIGIT·l + width·(slices − 1 − k)) as integers, for whole numbers below 2^MANTISSA."""
    slices, count, columns = sums.shape
    whole, low = sums.astype(np.int64), (1 << DIGIT) - 1
    # 1. All slices in common digits, which may still be of either sign and large: up to 2^(MANTISSA − 1) from each.
    total = np.zeros((count + width * (slices - 1) // DIGIT + 1, columns), dtype=np.int64)
    for number, part in enumerate(whole):
        place, shift = divmod(width * (slices - 1 - number), DIGIT)
        total[place : place + count] += (part & low) << shift
        total[place + 1 : place + 1 + count] += (part >> DIGIT) << shift
    # 2. From each digit to the next.
    content = np.empty((columns, 2 * len(total) + 8), dtype=np.uint8)
    final = content[:, :-8].view("<u2")
    carry = np.zeros(columns, dtype=np.int64)
    for place, digit in enumerate(total):
        carry += digit
        final[:, place] = carry & low
        carry >>= DIGIT
    content[:, -8:] = carry.astype("<i8").view(np.uint8).reshape(columns, 8)
    size, flat = content.shape[1], content.tobytes()
    return integers([int.from_bytes(flat[at : at + size], "little", signed=True) for at in range(0, len(flat), size)])


def signed_sums(X: AnyArray, places: Ints, signs: NDArray[np.int8]) -> list[tuple[Fixed, Ints]]:
    """Σ yᵢxᵢ over the rows at some places and how many numbers of each column are not zero, for some yᵢ = ±1 or 0.

    One sum for each row of `signs` (sums × places), in one pass over the rows of X.
    """
    total = [Fixed.zeros(X.shape[1]) for _ in signs]
    filled = np.zeros((len(signs), X.shape[1]), dtype=np.int64)
    for part in blocks(X[: len(places)]):
        rows, factors = wide(X[like(places[part], X)]), wide(like(signs[:, part], X))
        width = MANTISSA - max(len(rows), 2).bit_length()  # of whole numbers whose sum is below 2^MANTISSA
        filled += to_numpy(abs(factors) @ wide(rows != 0.0)).astype(np.int64)
        exponents = column_exponents(rows)
        lowest = int(exponents.min(initial=0))
        values, count = np.zeros(filled.shape, dtype=object), 0
        for whole in slices(rows, exponents, width):
            values, count = (values << width) + to_numpy(factors @ whole).astype(np.int64).astype(object), count + 1
        shift = integers((exponents - lowest).tolist())
        total = [
            known.plus(Fixed(mine << shift, width * count - lowest)) for known, mine in zip(total, values, strict=True)
        ]
    return list(zip(total, filled, strict=True))


def combination(X: Floats, factors: Fixed) -> Fixed:
    """Σ factorᵢ xᵢ."""
    total = Fixed.zeros(X.shape[1])
    for start in range(0, len(X), ROWS_PER_SUM):
        part = slice(start, start + ROWS_PER_SUM)
        total = total.plus(Slices.of(X[part]).combination(Fixed(factors.values[part], factors.bits)))
    return total
