"""From a partition to a finished head: canonical weights, held against every sample.

A partition that is right gives weights under which the margins give back the same partition. Where they do not, but
nearly, because samples are tied or the bias is not unique, the partition that they give is tried in turn.
"""

from dataclasses import dataclass, replace

import numpy as np

from maxrr.svm import canonical, hinge
from maxrr.svm.arrays import Bools, Floats
from maxrr.svm.balance import balance
from maxrr.svm.problem import Head, Samples

MOST_TRIES = 4


@dataclass(frozen=True)
class Candidate:
    """A partition of all samples with multipliers that fit it, and the canonical weights that it gives."""

    free: Bools
    bounded: Bools
    alpha: Floats
    w: Floats
    b: float
    bounded_sum: Floats  # Σ yᵢxᵢ over the bounded samples


def propose(
    samples: Samples, C: float, y: Floats, b: float, free: Bools, bounded: Bools, alpha: Floats
) -> Candidate:  # fmt: skip
    """The candidate for a partition; without free samples its bias is `b`."""
    held, at_margin = samples.in_order(bounded), samples.in_order(free)
    found = canonical.weights(samples.rows(at_margin), y[at_margin], samples.rows(held), y[held], C)
    alpha = np.where(bounded, C, np.where(free, alpha, 0.0))
    return Candidate(free, bounded, alpha, found.w, found.b if len(at_margin) else b, found.bounded_sum)


def confirm(
    samples: Samples, C: float, positive: int, y: Floats, candidate: Candidate, margins: Floats | None = None
) -> Head | None:
    """The finished head, if a partition near the candidate's agrees with its own margins (given if known)."""
    for _ in range(MOST_TRIES):
        if margins is None:
            scores = samples.scores(candidate.w[:, None])[:, 0]
            margins = np.where(samples.alive, y * (scores + candidate.b), np.inf)
        scale = hinge.rounding_scale(samples.longest(candidate.free), candidate.w, candidate.b)
        free, bounded = hinge.partition(margins, scale)
        shift = bias_toward_zero(y, margins, free, bounded, candidate.b)
        if shift == 0.0 and np.array_equal(free, candidate.free) and np.array_equal(bounded, candidate.bounded):
            return certified(samples, C, positive, y, candidate, margins)
        if shift != 0.0:
            free, bounded = hinge.partition(margins + y * shift, scale)
        candidate = propose(samples, C, y, candidate.b + shift, free, bounded, candidate.alpha)
        margins = None
    return None


def certified(samples: Samples, C: float, positive: int, y: Floats, candidate: Candidate, margins: Floats) -> Head:
    """The head with its certificate, whatever that says."""
    at_margin = samples.in_order(candidate.free)
    alpha = candidate.alpha[at_margin]
    signed = alpha * y[at_margin]
    certificate = hinge.assemble(
        margins, candidate.free, candidate.bounded, candidate.alpha, candidate.w, candidate.b, C,
        lengths=samples.lengths,
        combination=C * candidate.bounded_sum + signed @ samples.rows(at_margin),
        imbalance=C * float(np.sum(y[candidate.bounded])) + float(np.sum(signed)),
    )  # fmt: skip
    held = samples.in_order(candidate.bounded)
    return Head(positive, candidate.w, candidate.b, margins, at_margin, held, alpha, certificate)


def balanced(samples: Samples, C: float, y: Floats, head: Head) -> Head:
    """The same head, which has free samples, with multipliers that follow from its partition alone."""
    free, bounded = np.zeros(len(y), dtype=bool), np.zeros(len(y), dtype=bool)
    free[head.free] = bounded[head.bounded] = True
    candidate = propose(samples, C, y, head.b, free, bounded, np.zeros(len(y)))
    missing = candidate.w - C * candidate.bounded_sum
    alpha = candidate.alpha.copy()
    alpha[head.free] = balance(
        samples.rows(head.free), y[head.free], C, missing, -C * float(np.sum(y[head.bounded]))
    )  # fmt: skip
    return certified(samples, C, head.positive, y, replace(candidate, alpha=alpha), head.margins)


def bias_toward_zero(y: Floats, margins: Floats, free: Bools, bounded: Bools, b: float) -> float:
    """How far b may move towards zero without any cost: 0.0 unless the optimal bias is an interval.

    The loss as a function of b alone is piecewise linear, and its slopes are whole multiples of C. Upwards it is
    (negatives with margin ≤ 1) − (positives with margin < 1), downwards the mirror image; b is free to move on the
    side where this count is zero, up to the next sample whose margin reaches 1.
    """
    if b == 0.0:
        return 0.0
    toward = -float(np.sign(b))
    losing, gaining = y == -toward, y == toward
    if np.count_nonzero((bounded | free) & losing) != np.count_nonzero(bounded & gaining):
        return 0.0
    # The next margins to reach 1: gaining bounded samples from below, losing ones outside from above.
    rising, falling = 1.0 - margins[bounded & gaining], margins[~bounded & ~free & losing] - 1.0
    return toward * min(abs(b), float(np.min(rising, initial=np.inf)), float(np.min(falling, initial=np.inf)))
