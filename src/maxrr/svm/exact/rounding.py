"""The canonical form of a number: what is published of an exact answer that is known up to a small error.

A solved head is published as float64. Rounding the exact answer x to the nearest float64 would define its bytes by x
alone; but answers of small problems are fractions such as 0 or 3/2 · 2⁻⁵³ that lie exactly between two float64 numbers
or on zero, and no bound, however small, tells on which side. So x is first rounded to a grid with 64 bits, whose steps
end at places that no answer has a reason to hit, and only then to float64:

    e = max(⌊log₂ θ|x|⌋, floor),    n = ⌊|x| · 2^(64−e) + θ'⌋,    published x = ± float64(n · 2^(e−64)).

`certificate.FORM` names this rule, in receipts and workspaces. Another rule would be another number.
"""

from maxrr.svm.exact.fixed_point import scaled

GRID = 64  # bits of the grid
FLOOR = -100  # what is smaller than 2 to this power, in units of a margin, is rounded as if it were as large
_FRACTION = 53
_THETA = 6369051672525773  # 2⁵³/√2: where one exponent ends and the next begins
_OFFSET = 3730904090310553  # 2⁵³ (√2 − 1): where one step of the grid ends and the next begins


def canonical(value: int, bits: int, error: int, floor: int) -> float | None:
    """The published number for every x with |x − value · 2^−bits| ≤ error · 2^−bits; None if it is not the same.

    >>> canonical(3, 1, 0, FLOOR), canonical(1, 200, 5, FLOOR), canonical(3 << 60, 60, 1 << 8, FLOOR)
    (1.5, 0.0, None)
    """
    low, high = value - error, value + error
    sign = -1 if high < 0 else 1
    smallest, largest = (0, max(-low, high)) if low <= 0 <= high else sorted((abs(low), abs(high)))
    exponent = grid_exponent(largest, bits, floor)
    if grid_exponent(smallest, bits, floor) != exponent:
        return None
    step = steps(smallest, bits, exponent)
    if steps(largest, bits, exponent) != step:
        return None
    return sign * scaled(step, GRID - exponent) + 0.0  # no negative zeros: other bytes for the same number


def grid_exponent(size: int, bits: int, floor: int) -> int:
    """⌊log₂ θ·size·2^−bits⌋, or the floor."""
    shrunk = size * _THETA
    return max(shrunk.bit_length() - 1 - _FRACTION - bits, floor) if shrunk else floor


def steps(size: int, bits: int, exponent: int) -> int:
    """⌊size · 2^(64 − exponent − bits) + θ'⌋."""
    shift = GRID - exponent - bits + _FRACTION  # in units of 2⁻⁵³ steps
    return ((size << shift) + _OFFSET if shift >= 0 else size + (_OFFSET << -shift) >> -shift) >> _FRACTION
