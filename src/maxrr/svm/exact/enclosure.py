"""Where the exact solution of a head can be, given multipliers that are admissible.

Let 0 ≤ αᵢ ≤ Cᵢ with Σ αᵢyᵢ = 0, w = Σ αᵢyᵢxᵢ, any b, and margins mᵢ at (w, b). Two facts enclose the solution (w*, b*).

1. The objective is P(w, b) = ½|w|² + Σ Cᵢ max(0, 1 − mᵢ), strongly convex in w, so P(w, b) ≥ P(w*, b*) + ½|w − w*|².
   And P(w*, b*) ≥ D(α), the dual objective. Hence

       ½|w − w*|² ≤ P(w, b) − D(α) = Σ (Cᵢ − αᵢ) max(0, 1 − mᵢ) + Σ αᵢ max(0, mᵢ − 1).

   The right side is computed without rounding. Samples strictly inside with αᵢ = Cᵢ, and strictly outside with αᵢ = 0,
   add nothing to it.

2. Given w*, the loss is piecewise linear in b, and the optimal b fill an interval between two of the tᵢ = yᵢ − w*·xᵢ,
   where sample i has margin 1 (`ends`). b* is its point nearest to zero, the middle one of its two ends and 0. If
   every tᵢ is known up to an error, so are the ends, and so is the middle one: each is a monotone function of the tᵢ.
"""

import math
from dataclasses import dataclass

import numpy as np

from maxrr.svm.arrays import Floats, Ints
from maxrr.svm.exact import rounding
from maxrr.svm.exact.basis import Near
from maxrr.svm.exact.fixed_point import Fixed, integers, scaled
from maxrr.svm.exact.multipliers import Polished, ends
from maxrr.svm.problem import UP, size

TINY = 2.0**-1000  # covers the underflow of a bound itself, as `UP` does its rounding


@dataclass(frozen=True)
class Enclosure:
    """|w* − w| ≤ `radius` for the polished w, and b* − b in [`low`, `high`] for the polished b. The gap is P − D."""

    gap: float
    radius: float
    low: float
    high: float


def enclose(near: Near, polished: Polished, lengths: Floats) -> Enclosure | None:
    """The enclosure, if all samples that are not near the margin are strictly on the side that was taken for granted.

    It is wide where b is not the point of its interval nearest to zero, and None where b is in no such interval.
    `lengths` are those of the samples near the margin, correct to 2^−30 or so.
    """
    total = complementarity(near, polished)
    # Times C before it is rounded: what underflows without C can be far from nothing with it.
    gap = math.nextafter(total.times(near.C).rounded()[0] * UP, math.inf) if total.values[0] else 0.0
    radius = math.sqrt(2.0 * gap) * UP
    # How far from b the score puts each sample's turning point tᵢ.
    offsets = near.y * polished.shortfall.rounded()
    errors = (radius * lengths + np.abs(offsets) * 2.0**-50) * UP + (TINY if gap else 0.0)
    rises, below = near.slopes()
    if not 0 <= below <= int(np.sum(rises)):
        return None
    # An end that is not near the margin is only known to lie beyond b.
    starts, stops = [-math.inf, 0.0], [0.0, math.inf]
    for number, points in enumerate((offsets - errors, offsets + errors)):
        order = np.argsort(points)
        first, last = ends(order, rises, below)
        if below > 0:
            starts[number] = points[order[first]]
        if last < len(order):
            stops[number] = points[order[last]]
    zero = -scaled(int(polished.b.values[0]), polished.b.bits)
    slack = abs(zero) * 2.0**-50
    low, high = sorted((starts[0], zero - slack, stops[0]))[1], sorted((starts[1], zero + slack, stops[1]))[1]
    return Enclosure(gap, radius, float(low), float(high))


def complementarity(near: Near, polished: Polished) -> Fixed:
    """Σ (cᵢ − aᵢ) max(0, 1 − mᵢ) + Σ aᵢ max(0, mᵢ − 1) for multipliers aᵢ and their bounds cᵢ in units of C."""
    a, short = polished.multipliers.values, polished.shortfall.values
    top = near.whole_bounds.at(polished.multipliers.bits)
    total = sum((ci - ai) * si if si > 0 else -ai * si for ai, ci, si in zip(a, top, short, strict=True))
    return Fixed(integers([total]), polished.multipliers.bits + polished.shortfall.bits)


@dataclass(frozen=True, eq=False)
class Published:
    """Weights and bias as float64, how far from them the exact ones can be, and whether these are canonical."""

    w: Floats
    b: float
    weight_error: float
    bias_error: float
    decided: bool
    moved_w: float  # |w − polished w|
    moved_b: float


def publish(polished: Polished, enclosure: Enclosure, largest: int | None, dead: Ints) -> Published:
    """The canonical numbers, or where the enclosure leaves them open the nearest float64 ones.

    `largest` is the least c with all influential features below 2^c, None if that is not known; `dead` are columns in
    which they are all zero.
    """
    w_floor = rounding.FLOOR - (largest or 0)
    error = Fixed.of(np.array([enclosure.radius])).above(polished.w.bits)
    numbers = [rounding.canonical(int(value), polished.w.bits, error, w_floor) for value in polished.w.values]
    for column in dead:
        numbers[column] = 0.0
    nearest = polished.w.rounded()
    w = np.array([fallback if number is None else number for number, fallback in zip(numbers, nearest, strict=True)])
    # b lies around b + (low + high)/2.
    low, high = (Fixed.of(np.array([end])).plus(polished.b) for end in (enclosure.low, enclosure.high))
    bits = max(low.bits, high.bits) + 1
    first, last = int(low.at(bits)[0]), int(high.at(bits)[0])
    b_exact = rounding.canonical((first + last) // 2, bits, (last - first + 1) // 2, rounding.FLOOR)
    b = scaled((first + last) // 2, bits) if b_exact is None else b_exact
    moved_w = length(Fixed.of(w).minus(polished.w))
    moved_b = length(Fixed.of(np.array([b])).minus(polished.b))
    return Published(
        w=w + 0.0,
        b=b + 0.0,
        weight_error=(moved_w + enclosure.radius) * UP,
        bias_error=(moved_b + max(abs(enclosure.low), abs(enclosure.high))) * UP,
        decided=largest is not None and b_exact is not None and all(number is not None for number in numbers),
        moved_w=moved_w,
        moved_b=moved_b,
    )


def length(vector: Fixed) -> float:
    """|vector|, rounded up."""
    return size(vector.rounded()) + TINY * any(vector.values)
