"""From nearly right to exactly right: settle which samples are on the margin and which inside.

Given a guess of the partition, the weights and the multipliers of the samples on the margin follow from a small linear
system. Every sample that then contradicts the guess changes sides, all at once (a primal–dual active set method:
Newton's method on the optimality conditions). Near the solution this ends after a few rounds; where it does not,
because the guess was poor or samples are tied, it gives up and the caller goes on with Newton on the smoothed problem.
"""

from dataclasses import dataclass

import numpy as np

from maxrr.svm.arrays import Bools, Floats

MOST_ROUNDS = 30
SMALLEST_PIVOT = 1e-9  # in lengths of samples; below it samples depend on each other, and multipliers are loose


@dataclass
class Settled:
    """A partition of the working set that satisfies every optimality condition on it."""

    w: Floats
    b: float
    on_margin: Bools
    inside: Bools
    multipliers: Floats


def settle(
    X: Floats, y: Floats, C: float, bounds: Floats, pull: Floats, tilt: float, noise: float, on_margin: Bools,
    inside: Bools,
) -> Settled | None:  # fmt: skip
    """The settled partition reached from a guess, or None.

    The upper bounds of multipliers are `C` · `bounds`. `pull` and `tilt` are Σ Cᵢyᵢxᵢ and Σ Cᵢyᵢ over the samples
    inside the margin that are not in the working set, `noise` the rounding error to expect in the former.
    """
    signed, caps = bounds * y, C * bounds
    seen: set[bytes] = set()
    if np.count_nonzero(on_margin) > X.shape[1] + 1:
        return None
    for _ in range(MOST_ROUNDS):
        capped = np.flatnonzero(inside)
        held = pull + C * (signed[capped] @ X[capped])
        solved = solve_on_margin(X[on_margin], y[on_margin], held, tilt + C * float(np.sum(signed[capped])), noise)
        if solved is None:
            return None
        w, b, alpha = solved
        margins = y * (X @ w + b)
        low, high = np.zeros_like(on_margin), np.zeros_like(on_margin)
        low[on_margin], high[on_margin] = alpha < 0.0, alpha > caps[on_margin]
        entering = (inside & (margins > 1.0)) | (~on_margin & ~inside & (margins < 1.0))
        if not (low.any() or high.any() or entering.any()):
            multipliers = np.where(inside, caps, 0.0)
            multipliers[on_margin] = alpha
            return Settled(w, b, on_margin, inside, multipliers)
        on_margin = (on_margin & ~low & ~high) | entering
        inside = (inside & ~entering) | high
        partition = np.packbits(on_margin).tobytes() + np.packbits(inside).tobytes()
        if partition in seen:
            return None
        seen.add(partition)
    return None


def solve_on_margin(
    X: Floats, y: Floats, pull: Floats, tilt: float, noise: float
) -> tuple[Floats, float, Floats] | None:
    """Weights, bias and multipliers when these samples have margin 1; None if they do not determine them.

    The algebra is that of `basis.py`.
    """
    count, dimension = X.shape
    if count == 0 or count > dimension + 1:
        return None
    rows = X[1:] - X[0]
    toward = pull - tilt * X[0]
    Q, R = np.linalg.qr(rows.T)
    pivots = np.abs(np.diag(R))
    if count > 1 and pivots.min() <= SMALLEST_PIVOT * float(np.max(np.linalg.norm(X, axis=1))):
        return None
    levels, inside = np.linalg.solve(R.T, y[1:] - y[0]), Q.T @ toward
    signed = np.linalg.solve(R, levels - inside)
    w = Q @ levels
    rest = toward - Q @ inside
    if count <= dimension and np.max(np.abs(rest)) > noise:  # otherwise these samples alone determine w
        w += rest
    b = float(np.mean(y - X @ w))
    return w, b, np.concatenate([[-tilt - np.sum(signed)], signed]) * y
