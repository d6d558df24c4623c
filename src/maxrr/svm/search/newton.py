"""Newton's method on a smoothed problem: from any starting point to nearly the solution of one head.

The hinge has a kink, so Newton cannot be applied to it directly. The method of multipliers smooths it *around the
current multipliers*: given centres αᵢ and steepnesses σᵢ, minimise

    ½|w|² − pull·w − tilt·b + Σ ψᵢ(1 − mᵢ),    ψᵢ(t) = max_{0≤a≤capᵢ} a·t − (a − αᵢ)²/2σᵢ,

whose slope in t is the new multiplier clip(αᵢ + σᵢt, 0, capᵢ). Repeating this with the new multipliers as centres
converges to the solution of the SVM itself, for any σᵢ, and the faster the larger they are. Where samples weigh
differently σᵢ is the same share of capᵢ for all, which smooths every kink over the same width of margins. Only samples
strictly between their bounds (the *band*) have curvature, so a Newton step costs one product with the working set, one
with its transpose, and a d × d system over the band. `pull` and `tilt` carry the samples outside the working set.

This is the augmented Lagrangian method with semismooth Newton steps (Li, Sun & Toh 2018), with the paper's α and C.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtrs

from maxrr.parallel.engine import Threads
from maxrr.svm.arrays import AnyArray, Bools, Floats, Ints, blocks, is_narrow, times, wide

# Rows in float32, for Newton's steps where there are many features.
#
# They are half as much to read, and conjugate gradients find a direction with a dozen products of the band with a
# vector, unless its directions differ much in size; making and solving the d × d system costs as much as hundreds. What
# rounding does here is estimated, and where it would matter Newton's method goes on in float64.


WIDE = 256  # features from which on this is worth while
MOST_NUMBERS = 1 << 25  # of rows in another type, which are copied
ROUNDING_LIGHT = 1.2e-7  # of a number in float32
LEAST, MOST = 1e-15, 1e15  # lengths of samples between which their products are numbers in float32
LEFT = 0.1  # of the gradient, where a direction is good enough for an exact line search
MOST_PRODUCTS = 60  # that are tried: with more than this, the system itself is solved as fast


@dataclass(frozen=True)
class Light:
    """Rows (m × d) in float32."""

    X: NDArray[np.float32]

    @classmethod
    def of(cls, X: AnyArray) -> "Light | None":
        """A copy of the rows, if copying is worth while."""
        if X.shape[1] < WIDE or (X.dtype != np.float32 and X.size > MOST_NUMBERS):
            return None
        with np.errstate(all="ignore"):  # numbers that overflow are seen in the result
            return cls(X.astype(np.float32, copy=False))

    @np.errstate(all="ignore")
    def times(self, w: Floats) -> Floats:
        """X @ w."""
        return np.asarray(self.X @ w.astype(np.float32), dtype=np.float64)

    @np.errstate(all="ignore")
    def combined(self, multipliers: Floats) -> Floats:
        """multipliers @ X."""
        return np.asarray(multipliers.astype(np.float32) @ self.X, dtype=np.float64)

    @np.errstate(all="ignore")
    def direction(
        self, chosen: Ints, sigma: float, share: Floats | None, gradient_w: Floats, gradient_b: float
    ) -> tuple[Floats, float] | None:
        """What `newton.direction` finds, roughly; None if that takes too many products."""
        band = self.X[chosen]
        weights = np.ones(len(band), dtype=np.float32) if share is None else share[chosen].astype(np.float32)
        size = float(weights.sum())
        mean, steepness = weights @ band / np.float32(size), np.float32(sigma) * weights
        residual = (gradient_b * mean - gradient_w).astype(np.float32)
        step, along, square = np.zeros_like(residual), residual, float(residual @ residual)
        enough = LEFT**2 * square
        for _ in range(MOST_PRODUCTS):
            if square <= enough:
                found = step.astype(np.float64)
                return found, -gradient_b / (sigma * size) - float(mean @ found)
            part = steepness * (band @ along - mean @ along)
            image = along + part @ band - part.sum() * mean
            length = np.float32(square / float(along @ image))
            step, residual = step + length * along, residual - length * image
            before, square = square, float(residual @ residual)
            along = residual + np.float32(square / before) * along
        return None


def noise(multipliers: Floats, sigma: float, in_band: int, length: float, w: Floats) -> float:
    """How far off a gradient may be, in multipliers: by the rounding of margins, and of its own sum."""
    margin = ROUNDING_LIGHT * length * math.sqrt(float(w @ w))
    return sigma * margin * math.sqrt(in_band) + ROUNDING_LIGHT * float(multipliers.sum())


MOST_STEPS = 60
ROUNDING = 4e-16  # of a sum, relative to its terms
MOST_BAND_ROWS, MOST_BAND_NUMBERS = 16_384, 1 << 22  # a part of a larger band gives its curvature well enough
RIDGE = 1e-15  # of the trace: keeps the system regular in floating point, below its rounding otherwise
ROUGH_RIDGE = 1e-7  # the same for products in float32, of the mean of the diagonal
TOLD = 0.5  # of the gradient that is allowed to be left: where rounding to float32 may be more, it is not told apart
LINE_SEARCH_TOLERANCE = 1e-2  # of the initial slope; more accuracy does not save Newton steps


@dataclass
class Smoothed:
    """One head over a working set: features (m × d), signs, upper bounds, centres, and what lies outside.

    A sample with an upper bound of zero is not in the working set, and only there to save a copy of the others.
    """

    X: AnyArray
    y: Floats
    cap: Floats
    centre: Floats
    sigma: float
    pull: Floats
    tilt: float
    share: Floats | None = None  # σᵢ/σ, if they are not all 1
    light: Light | None = None  # the features in float32, for steps that need no more

    def steepened(self, values: Floats) -> Floats:
        """valuesᵢ · σᵢ/σ."""
        return values if self.share is None else self.share * values


@dataclass
class Point:
    """The point where Newton's method stopped, and what was computed there."""

    w: Floats
    b: float
    multipliers: Floats
    spread: float  # the largest distance from 1 of a margin in the band: nothing at the solution
    strayed: bool  # margins moved so far that the working set may no longer stand for all samples


def minimise(problem: Smoothed, w: Floats, b: float, length: float, tolerance: float, reach: float) -> Point:
    """Minimise the smoothed problem until its gradient is small, or margins have moved by `reach`.

    The gradient is measured in multipliers (its w-part is divided by `length`, the typical one of a sample), and
    `tolerance` is relative to the norm of their vector.
    """
    X, y, cap, sigma = problem.X, problem.y, problem.cap, problem.sigma
    # With tiny features all margins are within rounding of b: counting b from where it starts keeps their digits.
    base, shift = 1.0 - y * b, 0.0
    rough = X.shape[1] >= WIDE and LEAST < length < MOST
    light, patient = problem.light if rough else None, True
    start = shortfall = base - y * scores(X, light, w)
    steps, strayed, bottom = 0, False, np.zeros_like(cap)
    while True:
        # 1. Multipliers and gradient at this point.
        raised = problem.centre + sigma * problem.steepened(shortfall)
        multipliers = np.minimum(np.maximum(raised, bottom), cap)
        signed = multipliers * y
        gradient_w = w - problem.pull - (combined(signed, X) if light is None else light.combined(signed))
        gradient_b = -problem.tilt - float(np.sum(signed))
        if abs(gradient_b) <= ROUNDING * (abs(problem.tilt) + float(np.sum(multipliers))):
            gradient_b = 0.0  # the classes balance as well as sums can tell
        in_band = (raised > 0.0) & (raised < cap)
        n_band = int(np.count_nonzero(in_band))
        error = math.hypot(math.sqrt(float(gradient_w @ gradient_w)) / length, gradient_b)
        allowed = tolerance * math.sqrt(float(multipliers @ multipliers))
        if light is not None and not noise(multipliers, sigma, n_band, length, w) <= TOLD * allowed:
            light, shortfall = None, base - y * (times(X, w) + shift)
            start = start if steps else shortfall
            continue
        if error <= allowed or steps == MOST_STEPS or strayed:
            break
        # 2. Newton's direction. Centring the band separates w from b and keeps the system well conditioned.
        found = None
        if light is not None and patient and n_band > 0:
            stride = every(n_band, X.shape[1])
            chosen = np.nonzero(in_band)[0][::stride]
            found = light.direction(chosen, sigma * stride, problem.share, gradient_w, gradient_b)
            patient = found is not None
        step_w, step_b = found or direction(X, in_band, n_band, sigma, problem.share, gradient_w, gradient_b, rough)
        change = y * (scores(X, light, step_w) + step_b)
        # 3. The exact minimiser along it: the function is piecewise quadratic there.
        slope = float(gradient_w @ step_w) + gradient_b * step_b
        size = line_search(
            raised, cap, sigma, change, problem.steepened(change), slope,
            offset=float((w - problem.pull) @ step_w) - problem.tilt * step_b,
            curvature=float(step_w @ step_w),
        )  # fmt: skip
        if size == 0.0 and not rough:
            break
        rough = rough and size > 0.0
        if light is not None and not rough:
            light, shortfall = None, base - y * (times(X, w) + shift)
            continue
        w, shift, steps = w + size * step_w, shift + size * step_b, steps + 1
        shortfall = base - y * (scores(X, light, w) + shift) if steps % 8 == 0 else shortfall - size * change
        strayed = float(np.max(np.where(cap > 0.0, np.abs(shortfall - start), bottom))) > reach
    spread = float(np.max(np.where(in_band, np.abs(shortfall), bottom)))
    return Point(w, b + shift, multipliers, spread, strayed)


def scores(X: AnyArray, light: Light | None, w: Floats) -> Floats:
    """X @ w, in float32 if that is enough."""
    return times(X, w) if light is None else light.times(w)


def combined(multipliers: Floats, X: AnyArray) -> Floats:
    """multipliers @ X."""
    if not is_narrow(X):
        return np.asarray(multipliers @ X)
    total = np.zeros(X.shape[1])
    for part in Threads().map(lambda rows: multipliers[rows] @ wide(X[rows]), blocks(X)):
        total += part
    return total


def solve_positive(matrix: Floats, ridge: float, right: Floats) -> Floats:
    """Solve (matrix + ridge·I) x = right for a positive semidefinite matrix, which is overwritten."""
    matrix.flat[:: len(matrix) + 1] += ridge
    try:
        upper = np.linalg.cholesky(matrix).T  # unlike LAPACK called through SciPy, it lets other threads go on
    except np.linalg.LinAlgError:  # not quite positive, by rounding
        return np.asarray(np.linalg.lstsq(matrix, right)[0])
    return np.asarray(dtrtrs(upper, dtrtrs(upper, right, trans=1)[0])[0])


def every(n_band: int, dimension: int) -> int:
    """Return n where every n-th row of a band of this size is enough for its curvature."""
    return -(-n_band // min(MOST_BAND_ROWS, MOST_BAND_NUMBERS // dimension + 1))


def direction(
    X: AnyArray, in_band: Bools, n_band: int, sigma: float, share: Floats | None, gradient_w: Floats,
    gradient_b: float, rough: bool = False,
) -> tuple[Floats, float]:  # fmt: skip
    """Newton's direction for curvature I + Σ σᵢ(xᵢ, 1)(xᵢ, 1)ᵀ over the band, which may be computed roughly."""
    if n_band == 0:  # no curvature in b: first balance the classes, then shrink w; the line search finds the step
        if gradient_b != 0.0:
            return np.zeros_like(gradient_w), -math.copysign(1.0, gradient_b)
        return -gradient_w, 0.0
    chosen = np.nonzero(in_band)[0]
    stride = every(n_band, X.shape[1])
    centred = wide(np.take(X, chosen[::stride], axis=0))
    if share is None:
        mean, size = np.mean(centred, axis=0), float(n_band)
        centred -= mean
    else:
        part = np.take(share, chosen[::stride], axis=0)
        mean, size = part @ centred / np.sum(part), float(np.sum(np.take(share, chosen, axis=0)))
        centred = (centred - mean) * np.sqrt(part)[:, None]
    gradient = gradient_w - gradient_b * mean
    dimension = X.shape[1]
    if n_band < dimension:  # the small system (Woodbury): accurate in the directions the band does not see
        gram = products(centred.T, rough)
        inner = solve_positive(gram, 1.0 / sigma + ridge(gram, rough), centred @ gradient)
        step_w = centred.T @ inner - gradient
    else:
        hessian = (sigma * stride) * products(centred, rough)
        step_w = -solve_positive(hessian, 1.0 + ridge(hessian, rough), gradient)
    return step_w, -gradient_b / (sigma * size) - float(mean @ step_w)


def products(columns: Floats, rough: bool) -> Floats:
    """columnsᵀ · columns, in float32 if that is enough."""
    if not rough:
        return columns.T @ columns
    light = columns.astype(np.float32)
    return (light.T @ light).astype(np.float64)


def ridge(matrix: Floats, rough: bool) -> float:
    """What to add to the diagonal of such products."""
    trace = float(np.trace(matrix))
    return ROUGH_RIDGE * trace / len(matrix) if rough else RIDGE * trace


def line_search(
    raised: Floats, cap: Floats, sigma: float, change: Floats, fall: Floats, slope: float,
    *, offset: float, curvature: float,
) -> float:  # fmt: skip
    """The step at which the slope along a direction vanishes: a safeguarded Newton iteration on a monotone function.

    The slope at step s is offset + s·curvature − Σ clip(raisedᵢ − sσ·fallᵢ, 0, capᵢ)·changeᵢ, where fall is change
    times σᵢ/σ. Returns 0.0 when the direction does not descend, which at this accuracy means that rounding has taken
    over.
    """
    if not slope < 0.0:
        return 0.0
    low, high, step = 0.0, math.inf, 1.0
    bottom = np.zeros_like(cap)
    for _ in range(80):
        moved = raised - (step * sigma) * fall
        here = offset + step * curvature - float(np.minimum(np.maximum(moved, bottom), cap) @ change)
        if abs(here) <= LINE_SEARCH_TOLERANCE * -slope:
            return step
        if here > 0.0:
            high = step
        else:
            low = step
        bending = np.where((moved > 0.0) & (moved < cap), change, bottom)
        growth = curvature + sigma * float(bending @ fall)
        proposal = step - here / growth if growth > 0.0 else math.inf
        if not low < proposal < high:
            proposal = 0.5 * (low + high) if high < math.inf else 10.0 * step
        if proposal == step or proposal > 1e300:
            break
        step = proposal
    return low if low > 0.0 else (step if high < math.inf else 0.0)
