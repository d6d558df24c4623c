"""What is done for a head that did not settle: another method, and if that does not decide it, bounds."""

import math

import numpy as np

from maxrr.svm.arrays import Floats, Ints
from maxrr.svm.deciding import all_margins, bias, certify, finish, margin_error
from maxrr.svm.enclosure import TINY, UP
from maxrr.svm.fixed_point import ROWS_PER_SUM, Fixed, Integers, Slices, integers
from maxrr.svm.interior import follow
from maxrr.svm.problem import Head, Samples, Trial

BITS = 52  # of the multipliers
FEW = 200


def solve_surely(samples: Samples, C: float, trial: Trial) -> Head:
    """The head by the interior point method, proved if it can be, else with the bounds that its multipliers give."""
    rows = np.flatnonzero(samples.alive)
    X, y = samples.rows(rows), trial.y[rows]
    origin = np.mean(X, axis=0)
    path = follow(X - origin, y, C)
    a, b = np.zeros(len(trial.y)), path.b - float(path.w @ origin)
    # On the path both s and a of a sample are positive; at its end one of them is far smaller.
    typical = min(1.0, float(np.max(np.minimum(path.a, path.g))) * 2.0)
    outside, inside = path.s * typical > path.a, path.xi * typical > path.g
    a[rows] = np.where(outside, 0.0, np.where(inside, 1.0, np.clip(path.a, 0.0, 1.0)))
    margins = np.full(len(a), np.inf)
    margins[rows] = np.where(outside, 1.0 + path.s, np.where(inside, 1.0 - path.xi, 1.0))
    head = finish(samples, C, trial, a, margins, b)
    if head is None:
        trial.patient = True
        few = len(rows) <= FEW  # all of them may be pivoted on
        head = finish(samples, C, trial, a, np.where(samples.alive, 1.0, np.inf) if few else margins, b)
    if head is not None:
        return head
    a[rows] = path.a
    nothing = head_with_bounds(samples, C, trial, np.zeros(len(a)))
    return min(head_with_bounds(samples, C, trial, a), nothing, key=lambda found: found.certificate.primal)


def head_with_bounds(samples: Samples, C: float, trial: Trial, a: Floats) -> Head:
    """The head of these multipliers (in units of C) once they are admissible, with what float64 proves about it."""
    rows, y = np.flatnonzero(samples.alive), trial.y
    whole = balance(np.clip(a[rows], 0.0, 1.0), y[rows])
    w = combine(samples, rows, whole * integers(int(sign) for sign in y[rows])).times(C).rounded()
    b = bias(samples, y, all_margins(samples, y, w, 0.0), 0.0)
    margins = all_margins(samples, y, w, b)
    a = np.zeros(len(y))
    a[rows] = np.array([float(value) for value in whole]) * 2.0**-BITS
    # The gap at (w, b), all roundings charged in full.
    rounding = 2.0 * 2.0**-53 * float(np.linalg.norm(w)) + TINY
    error = margin_error(samples.lengths, w, b, rounding, 0.0)[rows]
    short = 1.0 - margins[rows]
    gap = C * UP * float(
        np.sum((1.0 - a[rows]) * np.maximum(0.0, short + error) + a[rows] * np.maximum(0.0, error - short))
    )  # fmt: skip
    radius = math.sqrt(2.0 * gap) * UP
    # b*: every turning point is known up to an error.
    turning, errors = b + y[rows] * short, error + radius * samples.lengths[rows] * UP
    count = int(np.count_nonzero(y[rows] > 0.0))
    low, high = (
        float(np.median([ends[count - 1], 0.0, ends[count]]))
        for ends in (np.sort(turning - errors), np.sort(turning + errors))
    )
    on_margin = np.abs(margins - 1.0) <= margin_error(samples.lengths, w, b, radius + rounding, max(b - low, high - b))
    inside = (margins < 1.0) & ~on_margin & samples.alive
    on_margin &= samples.alive
    certificate = certify(
        samples, C, w, margins, gap, radius + rounding, max(b - low, high - b) * UP,
        decided=False, on_margin=int(np.count_nonzero(on_margin)), inside=int(np.count_nonzero(inside)),
    )  # fmt: skip
    places = np.flatnonzero(on_margin)
    return Head(trial.positive, w, b, margins, places, np.flatnonzero(inside), C * a[places], certificate)


def balance(a: Floats, y: Floats) -> Integers:
    """Multipliers in units of 2^−BITS with Σ aᵢyᵢ = 0, near the given ones."""
    one = 1 << BITS
    whole = integers(int(value) for value in np.rint(a * one))
    signs = integers(int(sign) for sign in y)
    off = int(np.sum(whole * signs))
    for place in np.argsort(-np.minimum(a, 1.0 - a), kind="stable"):
        if off == 0:
            break
        toward = -1 if off * signs[place] > 0 else 1
        room = int(whole[place]) if toward < 0 else one - int(whole[place])
        step = min(room, abs(off))
        whole[place] += toward * step
        off += int(signs[place]) * toward * step
    return whole


def combine(samples: Samples, rows: Ints, signed: Integers) -> Fixed:
    """Σ signedᵢ 2^−BITS xᵢ."""
    total = Fixed.zeros(samples.X.shape[1])
    for start in range(0, len(rows), ROWS_PER_SUM):
        part = slice(start, start + ROWS_PER_SUM)
        total = total.plus(Slices.of(samples.rows(rows[part])).combination(Fixed(signed[part], BITS)))
    return total
