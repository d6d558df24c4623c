"""A referee for solved heads: what they claim, proved or refuted in whole numbers, without solving anything.

A head names its influential samples and their multipliers. That is enough to know the exact optimum: ask an affinely
independent set of the samples whose multipliers lie between their bounds for margins of exactly 1, leave all other
multipliers where they are, and solve this small linear system over the rationals. If the multipliers stay within their
bounds and the duality gap is then exactly zero, the point is the optimum, by weak duality, and every claim of the head
can be held against it: errors, partition, bytes. If it is not, the gap says how far from it the optimum can be.

Nothing here is shared with the code under test but the two constants of the canonical form, which are specified.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOUCHING = Fraction(1, 2**60)  # margins this close to 1 are on it
PRIME = 2**61 - 1
THETA, OFFSET = Fraction(6369051672525773, 2**53), Fraction(3730904090310553, 2**53)  # 1/√2 and √2 − 1, as published
FLOOR = -100
SMALLEST = 1e-100  # numbers below this count as zero


@dataclass(frozen=True)
class Optimum:
    """A pair (w, b) with admissible multipliers, and the gap between their objectives: zero proves both optimal."""

    w: tuple[Fraction, ...]
    b: Fraction
    margins: tuple[Fraction, ...]
    gap: Fraction

    @property
    def proved(self) -> bool:
        return self.gap == 0

    @property
    def radius(self) -> Fraction:
        """No less than |w − w*|: the square root of twice the gap, rounded up."""
        scaled = 2 * self.gap * 2**400
        return Fraction(isqrt(scaled.__ceil__()) + 1, 2**200) if self.gap else Fraction(0)


def integers(values: NDArray[Any]) -> tuple[list[Any], int]:
    """Floats as integers over one power of two."""
    wide = np.asarray(values, dtype=np.float64)
    ratios = [value.as_integer_ratio() for value in np.where(np.abs(wide) < SMALLEST, 0.0, wide).ravel().tolist()]
    bottom = max((below for _, below in ratios), default=1)
    return np.array([above * (bottom // below) for above, below in ratios], dtype=object).reshape(wide.shape), bottom


def basis(x: NDArray[Any], order: list[int]) -> list[int]:
    """An affinely independent part of these rows, the first ones where there is a choice.

    Counted modulo a prime: rows independent there are so over the integers.
    """
    chosen: list[int] = []
    reduced: list[tuple[int, list[int]]] = []  # rows of a triangular form, with the place of their leading one
    for row in order:
        rest = [int(value) % PRIME for value in x[row]] + [1]
        for lead, other in reduced:
            if factor := rest[lead]:
                rest = [(mine - factor * theirs) % PRIME for mine, theirs in zip(rest, other, strict=True)]
        lead = next((place for place, value in enumerate(rest) if value), None)
        if lead is not None:
            inverse = pow(rest[lead], -1, PRIME)
            reduced.append((lead, [value * inverse % PRIME for value in rest]))
            chosen.append(row)
            if len(chosen) == x.shape[1] + 1:
                break
    return chosen


def solved(gram: NDArray[Any], target: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """det G · G⁻¹t and det G for a positive definite G of integers, by divisions without remainder."""
    size, last = len(target), 1
    system = np.concatenate([gram, target[:, None]], axis=1)
    for k in range(size):
        pivot = system[k, k]
        assert pivot > 0
        below = system[k + 1 :, k].copy()
        system[k + 1 :, k + 1 :] = (
            pivot * system[k + 1 :, k + 1 :] - below[:, None] * system[k, k + 1 :][None, :]
        ) // last
        last = pivot
    answer = np.zeros(size, dtype=object)
    for k in reversed(range(size)):
        rest = last * system[k, size] - sum(system[k, j] * answer[j] for j in range(k + 1, size))
        answer[k] = rest // system[k, k]
    return answer, last


def optimum(
    X: NDArray[Any], y: NDArray[Any], caps: list[Fraction], rows: NDArray[Any], multipliers: NDArray[Any]
) -> Optimum | None:
    """What the claimed multipliers lead to; None if they are no admissible ones even after the refinement.

    y is ±1. Multipliers that are not above zero, or not below the float64 of their bound, count as being there.
    """
    x, p = integers(X)
    signs = [int(sign) for sign in y.tolist()]
    alpha = [Fraction(0)] * len(signs)
    room: dict[int, Fraction] = {}
    for row, value in zip(rows.tolist(), multipliers.tolist(), strict=True):
        cap = caps[row]
        alpha[row] = cap if value >= float(cap) else Fraction(max(value, 0.0))
        if 0 < alpha[row] < cap:
            room[row] = min(alpha[row], cap - alpha[row]) / cap
    asked = basis(x, sorted(room, key=lambda row: -room[row]))
    signed, det, q = refined(x, p, signs, alpha, asked)
    if signed is None:
        return None
    one = p * q * det  # the unit of w
    w = np.sum(x * signed[:, None], axis=0)
    scores = [int(score) for score in x @ w]
    unit = p * one
    low, high = bias_interval(scores, unit, signs, caps)
    b = min(max(low, 0), high)
    over = [sign * (score + b) - unit for sign, score in zip(signs, scores, strict=True)]  # margins − 1
    found = [Fraction(int(s) * sign, q * det) for s, sign in zip(signed, signs, strict=True)]
    if any(not 0 <= a <= cap for a, cap in zip(found, caps, strict=True)):
        return None
    gap = sum(
        ((cap - a) * -m if m < 0 else a * m for a, cap, m in zip(found, caps, over, strict=True) if m), Fraction(0)
    )
    return Optimum(
        tuple(Fraction(int(value), one) for value in w),
        Fraction(b, unit),
        tuple(1 + Fraction(m, unit) for m in over),
        gap / unit,
    )


def refined(
    x: NDArray[Any], p: int, signs: list[int], alpha: list[Fraction], asked: list[int]
) -> tuple[NDArray[Any] | None, int, int]:
    """αᵢyᵢ of all samples as integers over q · det, where those asked have margin 1 and the sum is zero; det and q."""
    q = lcm(*(a.denominator for a in alpha))
    start = np.array([a.numerator * (q // a.denominator) * s for a, s in zip(alpha, signs, strict=True)], dtype=object)
    if not asked:
        return (start if sum(start) == 0 else None), 1, q
    start[asked] = 0
    first, others = asked[0], asked[1:]
    start[first] = -sum(start)
    w = np.sum(x * start[:, None], axis=0)
    if not others:
        return start, 1, q
    edges = x[others] - x[first]
    target = p * p * q * np.array([signs[row] - signs[first] for row in others], dtype=object) - edges @ w
    moved, det = solved(edges @ edges.T, target)
    signed = start * det
    signed[others] = moved
    signed[first] -= sum(moved)
    return signed, det, q


def bias_interval(scores: list[int], unit: int, signs: list[int], caps: list[Fraction]) -> tuple[int, int]:
    """The ends of the interval of optimal b, in the unit of the scores: where the slope of the loss changes sign."""
    q = lcm(*(cap.denominator for cap in caps))
    rises = [cap.numerator * (q // cap.denominator) for cap in caps]
    slope = -sum(rise for rise, sign in zip(rises, signs, strict=True) if sign > 0)
    turning = sorted((sign * unit - score, rise) for score, sign, rise in zip(scores, signs, rises, strict=True))
    low = None
    for place, (at, rise) in enumerate(turning):
        slope += rise
        if place + 1 < len(turning) and turning[place + 1][0] == at:
            continue
        if low is None and slope >= 0:
            low = at
        if slope > 0:
            assert low is not None
            return low, at
    raise AssertionError("only one class")


def canonical(x: Fraction, floor: int) -> float:
    """Form 2 of its specification."""
    size = abs(x)
    n = size * THETA
    e = floor
    if n:
        e = n.numerator.bit_length() - n.denominator.bit_length()
        e = max(e if n >= power(e) else e - 1, floor)
    step = (size * power(64 - e) + OFFSET).__floor__()
    return float(step * power(e - 64)) * (-1.0 if x < 0 else 1.0) + 0.0


def power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def published(exact: Optimum, X: NDArray[Any]) -> tuple[bytes, bytes]:
    """The bytes of w and b that belong to this optimum."""
    near = X[[margin <= 1 + TOUCHING for margin in exact.margins]].astype(np.float64)
    near = np.where(np.abs(near) < SMALLEST, 0.0, near)
    floor = FLOOR - int(np.frexp(np.max(np.abs(near)))[1])
    w = [canonical(part, floor) if near[:, k].any() else 0.0 for k, part in enumerate(exact.w)]
    return np.array(w).tobytes(), np.array(canonical(exact.b, FLOOR)).tobytes()


def false_claims(
    X: NDArray[Any], y: NDArray[Any], caps: list[Fraction], w: NDArray[Any], b: float, certificate: Any,
    rows: NDArray[Any], multipliers: NDArray[Any],
) -> Iterator[str]:  # fmt: skip
    """What is wrong with a head; "unproved" if its multipliers lead to a gap above zero, or to none."""
    wide = np.where(np.abs(X) < SMALLEST, 0.0, X.astype(np.float64))
    tops = np.array([float(cap) for cap in caps])
    if not (np.all(multipliers >= 0.0) and np.all(multipliers <= tops[rows])):
        yield "a multiplier is out of bounds"
    lengths = np.linalg.norm(wide, axis=1)
    if abs(np.sum(multipliers * y[rows])) > 2.0**-40 * np.sum(multipliers):
        yield "the multipliers are not balanced"
    if np.linalg.norm((multipliers * y[rows]) @ wide[rows] - w) > 2.0**-40 * np.sum(multipliers * lengths[rows]):
        yield "the weights are not the combination of the multipliers"
    exact = optimum(wide, y, caps, rows, multipliers)
    if exact is None or not exact.proved:
        yield "unproved"
    if exact is None:
        return
    off = [Fraction(ours) - theirs for ours, theirs in zip(w.tolist(), exact.w, strict=True)]
    if sum(part**2 for part in off) > (Fraction(certificate.weight_error) + exact.radius) ** 2:
        yield "the weights are further off than proved"
    if not exact.proved:
        return
    tilt = Fraction(b) - exact.b
    if abs(tilt) > Fraction(certificate.bias_error):
        yield "the bias is further off than proved"
    x, p = integers(wide)
    bottom = lcm(*(part.denominator for part in off))
    change = x @ np.array([part.numerator * (bottom // part.denominator) for part in off], dtype=object)
    if max(abs(Fraction(int(part), bottom * p) + tilt) for part in change) > Fraction(certificate.error):
        yield "a decision value is further off than proved"
    influential = [row for row, margin in enumerate(exact.margins) if margin <= 1 + TOUCHING]
    if rows.tolist() != influential:
        yield f"influential are {influential}, not {rows.tolist()}"
    inside = sum(exact.margins[row] < 1 - TOUCHING for row in influential)
    if (certificate.on_margin, certificate.inside) != (len(influential) - inside, inside):
        yield "samples on the margin or inside it are miscounted"
    if certificate.decided and (w.tobytes(), np.array(b).tobytes()) != published(exact, wide):
        yield "decided, but other bytes"
    losses = sum(cap * (1 - margin) for cap, margin in zip(caps, exact.margins, strict=True) if margin < 1)
    least = float(sum(part**2 for part in exact.w) / 2 + losses)
    size = 1.0 + abs(b) + float(np.linalg.norm(w)) * lengths + certificate.error * 2.0**40
    slack = float(np.sum(tops * size)) * (X.shape[1] + 8) * 2.0**-52 + 1e-12 * least
    if abs(certificate.primal - least) > slack + certificate.relative_gap * least:
        yield f"the objective is {least}, not {certificate.primal}"
    if not 0.0 <= certificate.relative_gap < np.inf:
        yield "the gap is no number"


@dataclass
class Tally:
    """What was looked at."""

    models: int = 0
    heads: int = 0
    proved: int = 0
    decided: int = 0

    def judge(
        self, model: Any, X: NDArray[Any], y: NDArray[Any], C: float, weights: NDArray[Any] | None = None
    ) -> None:
        """Assert that no claim of any head is false: X, y and the weights are those of its `rows_`, in their order."""
        rows = model._rows
        assert len(rows) == len(y)
        own = np.ones(len(y)) if weights is None else weights
        there = np.flatnonzero(own > 0.0)
        place = np.full(int(rows[-1]) + 1, -1)
        place[rows[there]] = np.arange(len(there))
        caps = [Fraction(C) * Fraction(weight) for weight in own[there].tolist()]
        present = np.unique(y[there])
        assert model.classes_.tolist() == present.tolist()
        positives = present if len(present) > 2 else present[1:]
        assert len(model.certificate_) == len(positives)
        self.models += 1
        heads = zip(
            positives, model.coef_, model.intercept_, model.certificate_, model.influential_, model.multipliers_,
            strict=True,
        )  # fmt: skip
        for positive, w, b, certificate, influential, multipliers in heads:
            signs = np.where(y[there] == positive, 1.0, -1.0)
            assert (place[influential] >= 0).all()
            wrong = list(false_claims(X[there], signs, caps, w, float(b), certificate, place[influential], multipliers))
            assert not [claim for claim in wrong if claim != "unproved"], (positive, wrong)
            self.heads += 1
            self.proved += not wrong
            self.decided += certificate.decided
        assert model.support_.tolist() == sorted(set(np.concatenate(model.influential_).tolist()))
