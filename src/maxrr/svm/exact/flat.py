"""Heads without weights: proved by a few products of the samples, all of which shape such a head.

With w = 0 and b = ±1 the samples of the heavier side are tied on the margin, and all others are inside. That is the
solution where multipliers 0 ≤ aᵢ ≤ cᵢ of the tied ones balance the others: Σ aᵢzᵢ = t with zᵢ = (xᵢ, 1) and t = Σ cⱼzⱼ
over those inside. Least squares find them but for rounding. What leaves its bounds is put back and kept there, and the
others, which are *free*, make up for it.

That some balance exactly follows without computing them. Let r = t − Σ aᵢzᵢ, and G = Σ zᵢzᵢᵀ over the free ones. Then
aᵢ + zᵢ·G⁻¹r do, and |zᵢ·G⁻¹r|² ≤ (zᵢ·G⁻¹zᵢ)(r·G⁻¹r) ≤ |r|²/λ, where λ is the least eigenvalue of G. It is enough that
every free multiplier has so much room. As some have, the tied ones outweigh the others, and no other b is optimal.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from maxrr.parallel.engine import InProcess, Threads, single_threaded_blas
from maxrr.svm.arrays import AnyArray, Floats, Ints, blocks, joined, like, to_numpy, wide
from maxrr.svm.exact.deciding import UNIT, certify, inside_sum
from maxrr.svm.problem import UP, Head, InsideSum, Samples, size

ENOUGH_FREE = 2  # times d + 1: with fewer free multipliers it is no use to try
ROOM = 1e-4  # of cᵢ: so far is a free multiplier from its bounds
MOST_ROUNDS = 12  # three or four are usual
BALANCED = 2.0**-46  # of the sizes of what is summed: multipliers that are told balance so far, too
NONE = np.empty(0)
EIGENVALUE = 1e-6  # at least, of a matrix with about 1 on its diagonal


def flat_head(samples: Samples, positive: int, alpha: Floats, known: InsideSum | None) -> Head | None:
    """The head if it is proved to have no weights, from a guess of all multipliers and the sums that it had."""
    y, bounds = samples.signs(positive), samples.bounds
    heavier = 1.0 if np.sum((bounds * y)[samples.alive]) > 0.0 else -1.0
    places, inside = (np.flatnonzero(samples.alive & (y == sign)) for sign in (heavier, -heavier))
    a, top = np.clip(alpha[places] / samples.penalties.C, 0.0, bounds[places]), bounds[places]
    few = np.count_nonzero(np.minimum(a, top - a) > ROOM * top) < ENOUGH_FREE * (samples.X.shape[1] + 1)
    if few or (alpha[inside] < samples.caps_at(inside)).any():
        return None
    known = inside_sum(samples, y, inside, known)
    target = np.append(-heavier * known.total.rounded(), known.weight.rounded())
    with single_threaded_blas():
        if not balance(samples, places, target, a, top):
            return None
    w, loss = np.zeros(samples.X.shape[1]), 2.0 * float(np.sum(bounds[inside]))
    proved = certify(samples, w, loss, 0.0, 0.0, 0.0, decided=True, on_margin=len(places), inside=len(inside))
    return Head(positive, w, heavier, places, inside, samples.penalties.C * a, proved, known)


def balance(samples: Samples, places: Ints, target: Floats, a: Floats, top: Floats) -> bool:
    """Change multipliers so that others near them balance exactly; return whether that is proved."""
    gamma = (len(a) + 16) * UNIT * UP  # what a sum of so many products is off by at most, of the sum of their sizes
    free, before, proved = np.ones(len(a), dtype=bool), 0, False
    for _ in range(MOST_ROUNDS):
        free &= np.minimum(a, top - a) > ROOM * top
        if not free.any():
            return proved
        if np.count_nonzero(free) != before:
            before = int(np.count_nonzero(free))
            gram = sum(products(samples, places[free], lambda rows, _: rows.T @ rows))
            dead = np.diagonal(gram) == 0.0
            scale = np.where(dead, 1.0, np.exp2(-np.frexp(np.sqrt(np.diagonal(gram)))[1]))  # nothing is rounded
            gram = gram * scale * scale[:, None] + np.diag(dead)
            rounding = (2.0 * gamma + 8.0 * (len(gram) + 8) * UNIT) * float(np.trace(gram))
            try:  # the first of these proves that all eigenvalues are larger
                cho_factor(gram - np.diag(np.full(len(gram), EIGENVALUE + rounding)))
                factor = cho_factor(gram)
            except np.linalg.LinAlgError:
                return proved
        some = np.flatnonzero(a)
        sums = products(samples, places[some], lambda rows, part: joined([part @ rows, part @ abs(rows)]), a[some])
        total, terms = np.split(sum(sums), 2)
        error = scale * (np.abs(target - total) + gamma * (terms + np.abs(target)))  # at most, of what is missing
        room = np.min(np.minimum(a, top - a)[free])
        proved = proved or (not error[dead].any() and size(error) ** 2 * UP < room**2 * EIGENVALUE)
        if proved and (np.abs(target - total) <= BALANCED * (terms + np.abs(target))).all():
            return True
        step = like(scale * cho_solve(factor, scale * (target - total)), samples.X)
        raised = a[free] + np.concatenate(products(samples, places[free], lambda rows, _: rows @ step))  # noqa: B023
        a[free] = np.clip(raised, 0.0, top[free])
    return proved


def products(
    samples: Samples, places: Ints, work: Callable[[AnyArray, AnyArray], AnyArray], weights: Floats = NONE
) -> list[Floats]:
    """What is made of the rows zᵢ of some samples and their weights, a part of them at a time."""

    def of_part(part: slice) -> Floats:
        rows = wide(samples.as_kept(places[part]))
        return to_numpy(work(joined([rows, like(np.ones((len(rows), 1)), rows)], 1), like(weights[part], rows)))

    parts = blocks(samples.X[: len(places)])
    return list((Threads() if len(parts) > 1 else InProcess()).map(of_part, parts))
