"""What is done for a head that did not settle: another method, and if that does not decide it, bounds."""

import math

import numpy as np

from maxrr.svm.arrays import Floats
from maxrr.svm.deciding import all_margins, bias, certify, finish, margin_error
from maxrr.svm.enclosure import TINY, UP
from maxrr.svm.fixed_point import Fixed, Integers, combination, integers
from maxrr.svm.interior import follow
from maxrr.svm.problem import Head, Samples, Trial
from maxrr.svm.turning import ends

BITS = 52  # of the multipliers, or as many as their bounds have
FEW = 200


class UnsettledError(ArithmeticError):
    """A head cannot be settled on a part of the samples."""


def solve_surely(samples: Samples, trial: Trial) -> Head:
    """The head by the interior point method, proved if it can be, else with the bounds that its multipliers give."""
    if samples.base is not None:
        raise UnsettledError("this takes all samples")
    rows = np.flatnonzero(samples.alive)
    X, y = samples.rows(rows), trial.y[rows]
    origin = np.mean(X, axis=0)
    bounds = samples.bounds[rows]
    path = follow(X - origin, y, samples.penalties.C, bounds)
    a, b = np.zeros(len(trial.y)), path.b - float(path.w @ origin)
    # On the path both s and a of a sample are positive; at its end one of them is far smaller.
    typical = min(1.0, float(np.max(np.minimum(path.a, path.g) / bounds)) * 2.0)
    outside, inside = path.s * typical > path.a / bounds, path.xi * typical > path.g / bounds
    a[rows] = np.where(outside, 0.0, np.where(inside, bounds, np.clip(path.a, 0.0, bounds)))
    margins = np.full(len(a), np.inf)
    margins[rows] = np.where(outside, 1.0 + path.s, np.where(inside, 1.0 - path.xi, 1.0))
    head = finish(samples, trial, a, margins, b)
    if head is None:
        trial.patient = True
        few = len(rows) <= FEW  # all of them may be pivoted on
        head = finish(samples, trial, a, np.where(samples.alive, 1.0, np.inf) if few else margins, b)
    if head is not None:
        return head
    a[rows] = path.a
    nothing = head_with_bounds(samples, trial, np.zeros(len(a)))
    return min(head_with_bounds(samples, trial, a), nothing, key=lambda found: found.certificate.primal)


def head_with_bounds(samples: Samples, trial: Trial, a: Floats) -> Head:
    """The head of these multipliers (in units of C) once they are admissible, with what float64 proves about it."""
    rows, y = np.flatnonzero(samples.alive), trial.y
    bounds = samples.bounds[rows]
    whole = balance(np.clip(a[rows], 0.0, bounds), y[rows], bounds)
    signed = Fixed(whole.values * integers(int(sign) for sign in y[rows]), whole.bits)
    w = combination(samples.rows(rows), signed).times(samples.penalties.C).rounded()
    b = bias(samples, y, all_margins(samples, y, w, 0.0), 0.0)
    margins = all_margins(samples, y, w, b)
    a = np.zeros(len(y))
    a[rows], rest = whole.rounded(), Fixed.of(bounds).minus(whole).rounded()
    # The gap at (w, b), all roundings charged in full.
    rounding = 2.0 * 2.0**-53 * float(np.linalg.norm(w)) + TINY
    error = margin_error(samples.lengths, w, b, rounding, 0.0)[rows]
    short = 1.0 - margins[rows]
    gap = samples.penalties.C * UP * float(
        np.sum(rest * np.maximum(0.0, short + error) + a[rows] * np.maximum(0.0, error - short))
    )  # fmt: skip
    radius = math.sqrt(2.0 * gap) * UP
    # b*: every turning point is known up to an error.
    turning, errors = b + y[rows] * short, error + radius * samples.lengths[rows] * UP
    rises = Fixed.of(bounds).values
    low, high = (middle_bias(points, rises, y[rows]) for points in (turning - errors, turning + errors))
    on_margin = np.abs(margins - 1.0) <= margin_error(samples.lengths, w, b, radius + rounding, max(b - low, high - b))
    inside = (margins < 1.0) & ~on_margin & samples.alive
    on_margin &= samples.alive
    certificate = certify(
        samples, w, float(np.sum(samples.bounds * np.maximum(0.0, 1.0 - margins))), gap, radius + rounding,
        max(b - low, high - b) * UP,
        decided=False, on_margin=int(np.count_nonzero(on_margin)), inside=int(np.count_nonzero(inside)),
    )  # fmt: skip
    places = np.flatnonzero(on_margin)
    return Head(trial.positive, w, b, places, np.flatnonzero(inside), samples.penalties.C * a[places], certificate)


def middle_bias(points: Floats, rises: Integers, y: Floats) -> float:
    """The optimal b nearest to zero, for samples that turn at these points."""
    order = np.argsort(points)
    first, last = ends(order, rises, int(np.sum(rises[y > 0.0])))
    return float(np.median([points[order[first]], 0.0, points[order[last]]]))


def balance(a: Floats, y: Floats, bounds: Floats) -> Fixed:
    """Multipliers with Σ aᵢyᵢ = 0, near the given ones."""
    exact = Fixed.of(bounds)
    bits = max(BITS, exact.bits)
    top = exact.at(bits)
    whole = integers(min(int(value), most) for value, most in zip(np.rint(np.ldexp(a, bits)), top, strict=True))
    signs = integers(int(sign) for sign in y)
    off = int(np.sum(whole * signs))
    for place in np.argsort(-np.minimum(a, bounds - a), kind="stable"):
        if off == 0:
            break
        toward = -1 if off * signs[place] > 0 else 1
        room = int(whole[place]) if toward < 0 else int(top[place] - whole[place])
        step = min(room, abs(off))
        whole[place] += toward * step
        off += int(signs[place]) * toward * step
    return Fixed(whole, bits)
