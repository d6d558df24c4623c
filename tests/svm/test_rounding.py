"""The canonical form of a number against its definition in rational arithmetic."""

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maxrr.svm.certificate import FORM
from maxrr.svm.exact.rounding import FLOOR, GRID, canonical
from tests.cases import examples

THETA = Fraction(6369051672525773, 2**53)  # 1/√2 and √2 − 1 in float64: part of canonical form 2
OFFSET = Fraction(3730904090310553, 2**53)

floors = st.sampled_from([FLOOR, FLOOR - 30, FLOOR + 60, -432])
sizes = st.one_of(  # integers of up to 300 bits, as many short ones as long ones
    st.integers(0, 300).flatmap(lambda bits: st.integers(0, 2**bits)),
    st.integers(0, 300).flatmap(lambda bits: st.sampled_from([2**bits - 1, 2**bits, 2**bits + 1])),
)
values = st.tuples(st.sampled_from([1, -1]), sizes).map(math.prod)
places = st.integers(0, 500)


@st.composite
def intervals(draw) -> tuple[int, int, int]:
    """A number, its bits, and an error from far below a step of the grid to more than the number."""
    value, bits = draw(values), draw(places)
    return value, bits, (abs(value) >> draw(st.integers(0, 90))) + draw(st.sampled_from([0, 1, 2**20]))


def exponent(x: Fraction, floor: int) -> int:
    """max(⌊log₂ θ|x|⌋, floor)."""
    shrunk = THETA * abs(x)
    if not shrunk:
        return floor
    guess = shrunk.numerator.bit_length() - shrunk.denominator.bit_length()
    return max(guess if Fraction(2) ** guess <= shrunk else guess - 1, floor)


def rule(x: Fraction, floor: int) -> tuple[int, int]:
    """The exponent of the grid and the place on it, without a sign."""
    e = exponent(x, floor)
    return e, math.floor(abs(x) * Fraction(2) ** (GRID - e) + OFFSET)


def number(x: Fraction, floor: int) -> float:
    """The published number, by definition."""
    e, n = rule(x, floor)
    return float((1 if x > 0 else -1) * n * Fraction(2) ** (e - GRID)) + 0.0


def exact(value: int, bits: int) -> Fraction:
    return Fraction(value, 2**bits)


def test_the_definition_is_that_of_form_2():
    assert (FORM, GRID, FLOOR) == (2, 64, -100)


@examples(500)
@given(values, places, floors)
def test_a_known_number_is_rounded_by_definition(value, bits, floor):
    assert canonical(value, bits, 0, floor) == number(exact(value, bits), floor)


@examples(300)
@given(values, places, floors)
def test_it_is_near(value, bits, floor):
    """A step of the grid is at most 2^−64 of the number, or 2^(floor − 64); then float64 rounds by 2^−53 of it."""
    x = exact(value, bits)
    found = Fraction(canonical(value, bits, 0, floor))
    assert abs(found - x) <= max(abs(x) * Fraction(1 + 2**10, 2**63), Fraction(2) ** (floor - GRID))


@examples(300)
@given(intervals(), floors)
def test_turning_the_sign_turns_the_number(interval, floor):
    """Exactly: where a head for two classes becomes two heads, one is the other with its sign turned."""
    value, bits, error = interval
    one, other = canonical(value, bits, error, floor), canonical(-value, bits, error, floor)
    assert (one is None) == (other is None)
    if one is not None:
        assert other == -one


@examples(300)
@given(intervals(), floors)
@example((-1, 200, 0), FLOOR)
@example((-1, 200, 5), FLOOR)
@example((0, 0, 0), FLOOR)
def test_no_negative_zeros(interval, floor):
    found = canonical(*interval, floor)
    assert found != 0.0 or math.copysign(1.0, found) == 1.0


@examples(200)
@given(intervals(), floors, st.lists(st.fractions(-1, 1), min_size=6, max_size=6))
def test_one_number_for_a_whole_interval(interval, floor, shares):
    """Where it is not None it is that of every point of the interval, ends and zero included."""
    value, bits, error = interval
    found = canonical(value, bits, error, floor)
    if found is None:
        return
    points = [exact(value, bits) + share * exact(error, bits) for share in [*shares, Fraction(-1), Fraction(1)]]
    if abs(value) <= error:
        points.append(Fraction(0))
    for x in points:
        assert number(x, floor) == found


@examples(500)
@given(intervals(), floors)
@example((1, 0, 1), FLOOR)
@example((0, 164, 1), FLOOR)
@example((3 << 60, 60, 1 << 8), FLOOR)
def test_it_is_none_only_for_a_reason(interval, floor):
    """Two points of the interval are at different places of the grid, or of grids with different exponents."""
    value, bits, error = interval
    low, high = exact(value - error, bits), exact(value + error, bits)
    furthest = [low, high] if not low <= 0 <= high else [Fraction(0), low, high]
    apart = len({rule(x, floor) for x in furthest}) > 1
    assert (canonical(value, bits, error, floor) is None) == apart


@pytest.mark.parametrize("sign", [1, -1])
@given(numerator=st.integers(1, 2**20), bits=st.integers(0, 60))
def test_simple_numbers_are_not_on_the_edge_of_a_step(numerator, bits, sign):
    """Answers of small problems are numbers such as 0, 1 or 3/8: an error of 2^−67 of them leaves no doubt."""
    fine = 200
    value = sign * numerator << fine - bits
    assert canonical(value, fine, abs(value) >> 67, FLOOR) == sign * numerator / 2**bits


@examples(200)
@given(st.integers(2**53, 2**54 - 1), st.integers(0, 100))
def test_half_way_between_two_floats_there_is_no_doubt_either(numerator, bits):
    """Float64 then rounds to even, on either side of the error."""
    value = numerator << 150
    assert canonical(value, 150 + bits, value >> 67, FLOOR) == float(exact(numerator, bits))


def test_around_zero_there_is_one_number():
    """0 is the answer of many a small problem, and no bound, however small, says on which side."""
    assert canonical(0, 200, 2**35, FLOOR) == 0.0
    assert canonical(1, 200, 2**35, FLOOR) == 0.0
    assert canonical(-1, 200, 2**35, FLOOR) == 0.0
    assert canonical(0, 200, 2**36, FLOOR) is None  # 2^−164 is a number of its own


@given(st.sampled_from([-432, -300, FLOOR, 0, 30]), st.integers(-(2**70), 2**70))
def test_below_the_floor_steps_are_equal(floor, value):
    """What is smaller than the floor is rounded to multiples of 2^(floor − 64)."""
    bits = GRID + 8 - floor
    found = canonical(value, bits, 0, floor) if bits >= 0 else None
    if found is not None and abs(exact(value, bits)) < Fraction(2) ** floor:
        step = Fraction(found) / Fraction(2) ** (floor - GRID)
        assert abs(exact(value, bits) - Fraction(found)) <= Fraction(2) ** (floor - 53)
        assert step.denominator == 1
