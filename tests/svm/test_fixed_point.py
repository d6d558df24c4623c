"""Exact sums and products against rational arithmetic, to the last bit."""

import sys
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maxrr.svm import arrays
from maxrr.svm.exact.fixed_point import (
    DIGIT,
    ROWS_PER_SUM,
    Fixed,
    Slices,
    carried,
    digits,
    integers,
    scaled,
    signed_sums,
)
from tests.cases import examples, some

seeds = st.integers(0, 2**32 - 1)
LARGEST = 2.0 - 2.0**-52  # all bits of a float64 set


def fractions(vector: Fixed) -> list[Fraction]:
    return [Fraction(int(value)) / Fraction(2) ** vector.bits for value in vector.values]


def product(X, vector: list[Fraction]) -> list[Fraction]:
    return [sum((Fraction(x) * v for x, v in zip(row, vector, strict=True)), Fraction(0)) for row in X.tolist()]


# Matrices that are easy to get wrong


def ordinary(rng, n, d):
    return rng.normal(size=(n, d))


def with_zeros(rng, n, d):
    """Half of all numbers, a column and a row."""
    X = np.maximum(rng.normal(size=(n, d)), 0.0)
    X[:, rng.integers(d)] = 0.0
    X[rng.integers(n)] = 0.0
    return X


def nothing(rng, n, d):
    return np.zeros((n, d)) * rng.choice([1.0, -1.0], (n, d))


def unequal_columns(rng, n, d):
    """From one end of what features may be to the other."""
    return rng.normal(size=(n, d)) * 10.0 ** rng.integers(-99, 99, d)


def unequal_numbers(rng, n, d):
    """The same within a column: thousands of bits lie between its numbers."""
    return rng.normal(size=(n, d)) * 10.0 ** rng.integers(-99, 99, (n, d))


def one_large_number(rng, n, d):
    X = rng.normal(size=(n, d)) * 1e-99
    X[rng.integers(n), rng.integers(d)] = 1e99
    return X


def whole(rng, n, d):
    return rng.integers(-3, 4, (n, d)).astype(float)


def longest_mantissas(rng, n, d):
    """All bits set, all of one sign: the largest sums that there can be."""
    return np.full((n, d), rng.choice([-1.0, 1.0]) * LARGEST)


def powers_of_two(rng, n, d):
    return 2.0 ** rng.integers(-300, 300, (n, d)) * rng.choice([-1.0, 1.0], (n, d))


def single_precision(rng, n, d):
    return rng.normal(size=(n, d)).astype(np.float32).astype(np.float64)


def subnormal(rng, n, d):
    """Smaller than any feature, but numbers all the same."""
    return rng.integers(-9, 10, (n, d)) * 5e-324


MATRICES = (
    ordinary, with_zeros, nothing, unequal_columns, unequal_numbers, one_large_number, whole, longest_mantissas,
    powers_of_two, single_precision, subnormal,
)  # fmt: skip
matrices = st.sampled_from(MATRICES)


def vector(rng, count: int, kind: str) -> Fixed:
    """Integers of up to 600 bits."""
    lengths = {"long": [600], "short": [3], "mixed": range(600), "zero": [0], "full": [DIGIT * 12], "one": [1]}[kind]
    found = []
    for _ in range(count):
        bits = int(rng.choice(lengths))
        value = int.from_bytes(rng.bytes(80), "little") >> (640 - bits) if kind != "full" else (1 << bits) - 1
        found.append(value * (1 if kind == "full" else int(rng.choice([-1, 1]))))
    return Fixed(integers(found), int(rng.integers(0, 700)))


kinds = st.sampled_from(["long", "short", "mixed", "zero", "full", "one"])


# Products


@examples(150)
@given(seeds, matrices, st.integers(1, 9), st.integers(1, 7), kinds)
def test_products(seed, matrix, n, d, kind):
    rng = np.random.default_rng(seed)
    X, v = matrix(rng, n, d), vector(rng, d, kind)
    assert fractions(Slices.of(X).product(v)) == product(X, fractions(v))


@examples(150)
@given(seeds, matrices, st.integers(1, 9), st.integers(1, 7), kinds)
def test_combinations(seed, matrix, n, d, kind):
    rng = np.random.default_rng(seed)
    X, v = matrix(rng, n, d), vector(rng, n, kind)
    assert fractions(Slices.of(X).combination(v)) == product(X.T, fractions(v))


@pytest.mark.parametrize("kind", some(1, ["full", "mixed"]))
@pytest.mark.parametrize("matrix", [longest_mantissas, unequal_numbers, single_precision])
@pytest.mark.parametrize("shape", some(2, [(1, 3000), (4097, 2), (4096, 1), (4095, 1), (1, 1)]))
def test_products_of_many_rows_and_columns(shape, matrix, kind):
    """Slices are narrower the more numbers are added up, and must be narrow enough for the largest of sums."""
    rng = np.random.default_rng(sum(shape))
    X = matrix(rng, *shape)
    slices = Slices.of(X)
    along, down = vector(rng, shape[1], kind), vector(rng, shape[0], kind)
    assert fractions(slices.product(along)) == product(X, fractions(along))
    assert fractions(slices.combination(down)) == product(X.T, fractions(down))


def test_no_rows():
    slices = Slices.of(np.zeros((0, 3)))
    assert fractions(slices.product(Fixed.of(np.array([1.0, 2.0, 3.0])))) == []
    assert fractions(slices.combination(Fixed.zeros(0))) == [0, 0, 0]


@given(seeds)
def test_some_rows_of_the_slices_are_the_slices_of_some_rows(seed):
    rng = np.random.default_rng(seed)
    X, chosen, v = ordinary(rng, 8, 3), [6, 1, 1], vector(rng, 3, "mixed")
    slices = Slices.of(X)
    some = Slices(slices.stacked[:, chosen], slices.exponents, slices.width)
    assert fractions(some.product(v)) == product(X[chosen], fractions(v))


# Sums


def signed_sum(X, y) -> Fixed:
    ((total, _),) = signed_sums(X, np.arange(len(y)), y[None].astype(np.int8))
    return total


@examples(150)
@given(seeds, matrices, st.integers(1, 30), st.integers(1, 5))
def test_signed_sums(seed, matrix, n, d):
    rng = np.random.default_rng(seed)
    X, y = matrix(rng, n, d), rng.choice([-1.0, 1.0], n)
    assert fractions(signed_sum(X, y)) == product(X.T, [Fraction(sign) for sign in y])


@pytest.mark.parametrize("matrix", [longest_mantissas, unequal_numbers, ordinary])
@pytest.mark.parametrize("n", some(2, [ROWS_PER_SUM, ROWS_PER_SUM + 1, ROWS_PER_SUM - 1, 3 * ROWS_PER_SUM + 5]))
def test_signed_sums_of_many_rows(n, matrix):
    rng = np.random.default_rng(n)
    X = matrix(rng, n, 2)
    for y in (np.ones(n), rng.choice([-1.0, 1.0], n)):
        assert fractions(signed_sum(X, y)) == product(X.T, [Fraction(sign) for sign in y])


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
@pytest.mark.parametrize("matrix", [longest_mantissas, ordinary])
def test_signed_sums_of_several_heads_at_once(matrix, kind, monkeypatch):
    monkeypatch.setattr(arrays, "BLOCK_BYTES", 20 * 8 * 3)  # rows are taken in four parts
    rng = np.random.default_rng(1)
    X, places = matrix(rng, 100, 3), np.flatnonzero(rng.random(100) < 0.7)
    X[rng.random(X.shape) < 0.2] = 0.0
    signs = rng.integers(-1, 2, (4, len(places))).astype(np.int8)
    for row, (total, filled) in zip(signs, signed_sums(kind(X), places, signs), strict=True):
        assert fractions(total) == product(X[places].T, [Fraction(int(sign)) for sign in row])
        assert filled.tolist() == np.count_nonzero(X[places][row != 0], axis=0).tolist()


def test_the_sum_of_nothing():
    assert fractions(signed_sum(np.zeros((0, 2)), np.zeros(0))) == [0, 0]


@examples(30)
@given(seeds, matrices)
def test_order_and_layout_do_not_matter(seed, matrix):
    rng = np.random.default_rng(seed)
    X, y = matrix(rng, 12, 3), rng.choice([-1.0, 1.0], 12)
    order = rng.permutation(12)
    plain = fractions(signed_sum(X, y))
    assert fractions(signed_sum(X[order], y[order])) == plain
    assert fractions(signed_sum(np.asfortranarray(X), y)) == plain
    assert fractions(signed_sum(np.repeat(X, 2, axis=1)[:, ::2], y)) == plain
    v = vector(rng, 3, "mixed")
    assert fractions(Slices.of(np.asfortranarray(X)).product(v)) == fractions(Slices.of(X).product(v))


@examples(30)
@given(seeds, matrices)
def test_what_is_given_is_left_alone(seed, matrix):
    rng = np.random.default_rng(seed)
    X = matrix(rng, 5, 3)
    before = X.copy()
    signed_sum(X, np.ones(5))
    Slices.of(X)
    assert X.tobytes() == before.tobytes()


# Vectors

numbers = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5)


@given(numbers)
def test_floats_are_taken_as_they_are(values):
    vector = Fixed.of(np.array(values))
    assert fractions(vector) == [Fraction(value) for value in values]
    assert vector.rounded().tolist() == [value + 0.0 for value in values]


@given(numbers, numbers, st.floats(allow_nan=False, allow_infinity=False))
def test_arithmetic(one, other, factor):
    count = min(len(one), len(other))
    a, b = Fixed.of(np.array(one[:count])), Fixed.of(np.array(other[:count]))
    pairs = [(Fraction(x), Fraction(y)) for x, y in zip(one, other, strict=False)]
    assert fractions(a.plus(b)) == [x + y for x, y in pairs]
    assert fractions(a.minus(b)) == [x - y for x, y in pairs]
    assert fractions(a.times(factor)) == [x * Fraction(factor) for x, _ in pairs]


@given(seeds, kinds, st.integers(0, 40))
def test_reducing_keeps_the_numbers(seed, kind, spare):
    rng = np.random.default_rng(seed)
    v = vector(rng, 4, kind)
    wide = Fixed(v.values << spare, v.bits + spare)
    reduced = wide.reduced()
    assert fractions(reduced) == fractions(v)
    assert any(value & 1 for value in reduced.values) or not any(v.values)
    assert (wide.at(wide.bits + 7) == v.values << spare + 7).all()


@examples(300)
@given(st.integers(-(2**200), 2**200), st.integers(-500, 800))
def test_rounding_is_to_the_nearest(value, bits):
    """As Python rounds a fraction."""
    assert scaled(value, bits) == float(value / Fraction(2) ** bits)


@given(st.integers(1, 2**80), st.integers(1080, 1200))
def test_rounding_below_the_range_of_float64(value, bits):
    """Numbers too small for all their bits are off by one unit of the smallest at most."""
    found = scaled(value, bits)
    assert abs(Fraction(found) - value / Fraction(2) ** bits) <= Fraction(5e-324)
    assert scaled(-value, bits) == -found


def test_rounding_beyond_the_range_of_float64():
    assert scaled(1, -1023) == 2.0**1023
    assert scaled(1, -1024) == scaled(3, -5000) == float("inf")
    assert scaled(-1, -1024) == float("-inf")
    assert scaled(1, 5000) == 0.0
    assert scaled((1 << 1024) - 1, 0) == float("inf")
    assert scaled(int(sys.float_info.max), 0) == sys.float_info.max


@examples(300)
@given(st.lists(st.integers(-(2**300), 2**300), min_size=1, max_size=4), st.integers(-500, 800))
def test_vectors_are_rounded_like_numbers(values, bits):
    assert Fixed(integers(values), bits).rounded().tolist() == [scaled(value, bits) for value in values]


@examples(100)
@given(st.lists(st.integers(-(2**100), 2**100), min_size=1, max_size=6))
def test_digits_and_back(values):
    parts = digits(integers(values))
    assert np.all((parts[:-1] >= 0.0) & (parts[:-1] < 2.0**DIGIT))
    assert carried(parts[None], 1).tolist() == values


@given(st.lists(st.integers(-(2**53) + 1, 2**53 - 1), min_size=1, max_size=40), st.integers(1, 9), st.integers(1, 36))
def test_carrying(sums, slices, width):
    """Digits of any size below 2⁵³, of either sign, in slices that overlap."""
    one = sum(value << DIGIT * place for place, value in enumerate(sums))
    expected = sum(one << width * number for number in range(slices))
    every = np.array(sums, dtype=float)[None, :, None].repeat(slices, axis=0).repeat(2, axis=2)
    assert carried(every, width).tolist() == [expected, expected]
