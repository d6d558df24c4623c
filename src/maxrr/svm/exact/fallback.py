"""What is done for a head that did not settle: another method, and if that does not decide it, bounds."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxrr.svm.arrays import Floats
from maxrr.svm.exact.deciding import all_margins, bias, certify, finish, margin_error, middle_bias
from maxrr.svm.exact.enclosure import TINY
from maxrr.svm.exact.fixed_point import Fixed, combination, integers
from maxrr.svm.problem import UP, Head, Samples, Trial

# The slow and sure way to a head: an interior point method, for what Newton on smoothed problems does not settle.
#
# It follows the central path of
#
#     minimise ½|w|² + Σ Cᵢξᵢ  under  yᵢ(w·xᵢ + b) − 1 + ξᵢ = sᵢ,  sᵢ ≥ 0,  ξᵢ ≥ 0
#
# with multipliers aᵢ of the first bound and gᵢ of the second, aᵢ + gᵢ = Cᵢ, in units of C, by Mehrotra's predictor and
# corrector. Ties, dead columns and weights of zero are nothing special on that path, and it needs a few dozen steps
# whatever the data: each costs one product of the samples with themselves, and one small positive definite system. It
# ends near the solution, in the middle of the multipliers that fit; `deciding.py` goes the rest of the way.


MOST_STEPS = 120
CENTRED = 1e-13  # Σ aᵢsᵢ + gᵢξᵢ, relative to the objective, at which to stop
BACK = 0.995  # of the way to the nearest bound
RIDGE = 1e-15
BETTER = 0.95  # a step that leaves less than this of it is progress
STALLED = 12  # steps without


@dataclass
class Path:
    """Where the method is. All vectors are of the samples but for w."""

    w: Floats
    b: float
    a: Floats
    g: Floats
    s: Floats
    xi: Floats

    def complementarity(self) -> float:
        return float(self.a @ self.s + self.g @ self.xi) / (2 * len(self.a))


def follow(X: Floats, y: Floats, C: float, bounds: Floats) -> Path:
    """The end of the central path, to about rounding. X is best centred; Cᵢ are `C` · `bounds`."""
    n, d = X.shape
    Z = y[:, None] * X
    path = Path(np.zeros(d), 0.0, 0.5 * bounds, 0.5 * bounds, np.ones(n), np.full(n, 2.0))
    best, kept, waited = np.inf, path, 0
    for _ in range(MOST_STEPS):
        # 1. What is missing: w = C · Σ aᵢyᵢxᵢ, Σ aᵢyᵢ = 0, and the definition of s.
        lacking_w = C * (path.a @ Z) - path.w
        lacking_b = float(path.a @ y)
        lacking_s = 1.0 - (Z @ path.w + y * path.b) - path.xi + path.s
        mu = path.complementarity()
        objective = 0.5 * float(path.w @ path.w) / C + float(np.sum(bounds * path.xi))
        if mu < BETTER * best:
            best, kept, waited = mu, path, 0
        else:
            waited += 1
        if 2 * n * mu <= CENTRED * objective or waited > STALLED:
            break
        # 2. One matrix for predictor and corrector.
        inverse = 1.0 / (path.s / path.a + path.xi / path.g)
        try:
            solve = factorise(Z, y, C, inverse)
        except (LinAlgError, ValueError):  # not positive definite, or not finite
            break

        def direction(target_s: Floats, target_xi: Floats) -> tuple[Floats, float, Floats, Floats, Floats]:
            h = lacking_s + target_s / path.a - target_xi / path.g  # noqa: B023
            step_w, step_b = solve(lacking_w + C * ((inverse * h) @ Z), lacking_b + float((inverse * h) @ y))  # noqa: B023
            step_a = inverse * (h - Z @ step_w - y * step_b)  # noqa: B023
            step_s = (target_s - path.s * step_a) / path.a  # noqa: B023
            step_xi = (target_xi + path.xi * step_a) / path.g  # noqa: B023
            return step_w, step_b, step_a, step_s, step_xi

        _, _, step_a, step_s, step_xi = direction(-path.a * path.s, -path.g * path.xi)
        reach = longest(path, step_a, step_s, step_xi)
        ahead = float(
            (path.a + reach * step_a) @ (path.s + reach * step_s)
            + (path.g - reach * step_a) @ (path.xi + reach * step_xi)
        ) / (2 * n)
        centre = mu * min(1.0, max(ahead / mu, 0.0)) ** 3
        step_w, step_b, step_a, step_s, step_xi = direction(
            centre - path.a * path.s - step_a * step_s, centre - path.g * path.xi + step_a * step_xi
        )
        reach = BACK * longest(path, step_a, step_s, step_xi)
        path = Path(
            path.w + reach * step_w, path.b + reach * step_b, path.a + reach * step_a, path.g - reach * step_a,
            path.s + reach * step_s, path.xi + reach * step_xi,
        )  # fmt: skip
        if not np.isfinite(path.b + float(np.sum(path.a) + np.sum(path.s) + np.sum(path.xi)) + float(np.sum(path.w))):
            break
    return kept


def factorise(Z: Floats, y: Floats, C: float, inverse: Floats):  # type: ignore[no-untyped-def]
    """A solver for [I + C ZᵀEZ, C ZᵀEy; yᵀEZ, yᵀEy] (w, b) = right sides, with E the diagonal `inverse`."""
    d = Z.shape[1]
    matrix = np.empty((d + 1, d + 1))
    weighted = Z * np.sqrt(inverse)[:, None]
    matrix[:d, :d] = weighted.T @ weighted
    matrix[:d, d] = matrix[d, :d] = (inverse * y) @ Z
    matrix[d, d] = np.sum(inverse)
    matrix[np.arange(d), np.arange(d)] += 1.0 / C
    scale = 1.0 / np.sqrt(np.diag(matrix))
    matrix *= scale[:, None] * scale
    matrix[np.arange(d + 1), np.arange(d + 1)] += RIDGE * d
    factor = cho_factor(matrix, check_finite=True)

    def solve(right_w: Floats, right_b: float) -> tuple[Floats, float]:
        found = scale * cho_solve(factor, scale * np.append(right_w / C, right_b), check_finite=False)
        return found[:d], float(found[d])

    return solve


def longest(path: Path, step_a: Floats, step_s: Floats, step_xi: Floats) -> float:
    """The longest step up to 1 that leaves everything positive."""
    pairs = ((path.a, step_a), (path.g, -step_a), (path.s, step_s), (path.xi, step_xi))
    return min(1.0, *(float(np.min(-part[step < 0.0] / step[step < 0.0], initial=np.inf)) for part, step in pairs))


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
        # Few may all be pivoted on.
        head = finish(samples, trial, a, np.where(samples.alive, 1.0, np.inf) if len(rows) <= FEW else margins, b)
    if head is not None:
        return head
    a[rows] = path.a
    heads = [head_with_bounds(samples, trial, each) for each in (a, np.zeros(len(a)))]
    return min(heads, key=lambda found: found.certificate.error)


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
    most = rest * np.maximum(0.0, short + error) + a[rows] * np.maximum(0.0, error - short)
    gap = samples.penalties.C * UP * float(np.sum(most))
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
