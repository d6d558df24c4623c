"""Heads from nearly right to certified.

Each round improves every unfinished head on its *working set*, the samples with margins near 1, taking the others to
stay where they are; then one product of all samples with all weights shows whether they did. If some crossed, the
step is shortened to what is best for all samples, and the working set grows; if none did, the smoothing narrows, and
with it the working set. A head is finished when a partition settled on the working set holds for every sample.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from maxrr.svm import canonical, hinge, newton
from maxrr.svm.active_set import Settled, settle
from maxrr.svm.arrays import Bools, Floats, Ints, is_numpy, like, rows, to_numpy
from maxrr.svm.problem import Head, Samples, Trial

LEAST_WORKING_SET = 1500
NARROWING = 5.0  # how much the smoothing narrows from round to round
NARROWEST = 1e-13
REACH = 10.0  # working set: margins within this many widths of 1
ACCURACY = 0.02  # Newton stops at this many multipliers a sample, times the width
GOOD_GAP = 1e-12
MOST_ROUNDS = 120


@dataclass
class Proposal:
    """What a round on the working set suggests: new weights, and the partition behind them if it was settled."""

    w: Floats
    b: float
    inside: Ints
    alpha: Floats
    strayed: bool = False
    spread: float = np.inf
    free: Bools | None = None  # over all samples
    bounded: Bools | None = None


def refine(samples: Samples, C: float, trials: list[Trial]) -> list[Head]:
    """Solve every head. One pass over the data a round, for all unfinished heads together."""
    solved: dict[int, Head] = {}
    active = trials
    while active:
        proposals = in_parallel(lambda trial: improve(samples, C, trial), active, samples)
        scores = samples.scores(np.stack([proposal.w for proposal in proposals], axis=1))
        unfinished = []
        for trial, proposal, score in zip(active, proposals, scores.T, strict=True):
            margins = np.where(samples.alive, trial.y * (score + proposal.b), np.inf)
            head = review(samples, C, trial, proposal, margins)
            if head is None:
                unfinished.append(trial)
            else:
                solved[trial.positive] = head
        active = unfinished
    return [solved[trial.positive] for trial in trials]


def in_parallel(work: Callable[[Trial], Proposal], items: list[Trial], samples: Samples) -> list[Proposal]:
    """Heads side by side, each on one thread: better than each small product on all threads."""
    return list(map(work, items))


def improve(samples: Samples, C: float, trial: Trial) -> Proposal:
    """One round on the working set."""
    # 1. The working set, and what the samples outside it contribute.
    distance = np.abs(trial.margins - 1.0)
    if len(distance) > LEAST_WORKING_SET:
        trial.reach = max(trial.reach, float(np.partition(distance, LEAST_WORKING_SET)[LEAST_WORKING_SET]))
    else:
        trial.reach = np.inf
    near = (distance <= trial.reach) & samples.alive
    trial.freeze(samples, C, (trial.margins < 1.0) & ~near)
    inside = np.flatnonzero(near)
    X, y, alpha = rows(samples.X, inside), trial.y[inside], trial.alpha[inside]
    if len(inside) <= 4 * LEAST_WORKING_SET:
        X = to_numpy(X)  # small systems are quicker in main memory than on any device
    proposal = Proposal(trial.w, trial.b, inside, alpha)
    noise = hinge.EPSILON * C * hinge.longest(to_numpy(X)) * (np.count_nonzero(trial.frozen) + len(inside))

    def settled_from(alpha: Floats) -> Settled | None:
        between = (alpha > 0.0) & (alpha < C)
        if np.count_nonzero(between) > X.shape[1] + 1:
            return None
        return settle(to_numpy(X), y, C, trial.pull, trial.tilt, noise, between, alpha >= C)

    if trial.warm and (settled := settled_from(alpha)):
        return with_partition(samples, C, trial, proposal, settled)
    # 2. Newton on the smoothed problem.
    problem = newton.Smoothed(
        X, like(y, X), like(np.full(len(y), C), X), like(alpha, X),
        sigma=C / (2.0 * trial.width), pull=like(trial.pull, X), tilt=trial.tilt,
    )  # fmt: skip
    tolerance = ACCURACY * min(1.0, trial.width, max(trial.spread / trial.width, 1e-14))
    point = newton.minimise(problem, like(trial.w, X), trial.b, tolerance, trial.reach)
    proposal.w, proposal.b, proposal.alpha = to_numpy(point.w), point.b, to_numpy(point.multipliers)
    proposal.strayed, proposal.spread = point.strayed, point.spread
    # 3. Is the partition clear already?
    if not point.strayed and (settled := settled_from(proposal.alpha)):
        return with_partition(samples, C, trial, proposal, settled)
    return proposal


def with_partition(samples: Samples, C: float, trial: Trial, proposal: Proposal, settled: Settled) -> Proposal:
    """The proposal that a settled working set makes for all samples, in canonical weights."""
    free, bounded = np.zeros_like(trial.frozen), trial.frozen.copy()
    free[proposal.inside], bounded[proposal.inside] = settled.free, settled.bounded
    proposal.free, proposal.bounded, proposal.alpha = free, bounded, settled.multipliers
    proposal.w, proposal.b = canonical_weights(samples, C, trial.y, settled.b, free, bounded)
    return proposal


def canonical_weights(
    samples: Samples, C: float, y: Floats, b: float, free: Bools, bounded: Bools
) -> tuple[Floats, float]:
    """Weights and bias of a partition; without free samples the bias stays `b`."""
    held, at_margin = samples.in_order(bounded), samples.in_order(free)
    w, bias = canonical.weights(samples.rows(at_margin), y[at_margin], samples.rows(held), y[held], C)
    return w, bias if len(at_margin) else b


def review(samples: Samples, C: float, trial: Trial, proposal: Proposal, margins: Floats) -> Head | None:
    """Hold a proposal against all samples: finish the head, or move it and set up the next round."""
    trial.rounds += 1
    outside = samples.alive.copy()
    outside[proposal.inside] = False
    crossed = int(np.count_nonzero(outside & ((margins < 1.0) != (trial.margins < 1.0))))
    alpha = np.where(trial.frozen, C, 0.0)
    alpha[proposal.inside] = proposal.alpha
    if proposal.free is not None and proposal.bounded is not None and crossed == 0:
        head = confirm(samples, C, trial, proposal, margins, alpha)
        if head is not None:
            return head
    trial.warm = False
    sigma = C / (2.0 * trial.width)
    change = np.where(samples.alive, margins - np.where(samples.alive, trial.margins, 0.0), 0.0)
    step = 1.0
    if crossed or proposal.strayed:
        raised = np.where(samples.alive, trial.alpha + sigma * (1.0 - np.where(samples.alive, trial.margins, 1.0)), 0.0)
        step_w = proposal.w - trial.w
        offset = float(trial.w @ step_w)
        slope = offset - float(np.clip(raised, 0.0, C) @ change)
        step = newton.line_search(
            raised, np.full(len(raised), C), sigma, change, slope, offset=offset, curvature=float(step_w @ step_w)
        )
    trial.w = trial.w + step * (proposal.w - trial.w)
    trial.b += step * (proposal.b - trial.b)
    trial.margins = trial.margins + step * change
    if proposal.strayed or step < 0.5:
        trial.reach *= 2.0
    elif crossed * 20 <= np.count_nonzero((alpha > 0.0) & (alpha < C)) or step == 1.0:
        trial.alpha = np.clip(trial.alpha + sigma * (1.0 - trial.margins), 0.0, C) if crossed else alpha
        between = (trial.alpha > 0.0) & (trial.alpha < C)
        spread = proposal.spread
        trial.reach = REACH * trial.width
        if spread > 1e-14 and spread > 0.1 * trial.spread:
            trial.width = max(trial.width / NARROWING, NARROWEST)
        trial.spread = spread
        head = from_ties(samples, C, trial, between, spread)
        if head is not None:
            return head
    if trial.rounds >= MOST_ROUNDS:
        return trial.best or as_it_stands(samples, C, trial)
    return None


def as_it_stands(samples: Samples, C: float, trial: Trial) -> Head:
    """A head that would not settle, with whatever its certificate has to say."""
    length = hinge.longest(samples.rows(np.flatnonzero((trial.alpha > 0.0) & (trial.alpha < C))))
    free, bounded = hinge.partition(trial.margins, hinge.rounding_scale(length, trial.w, trial.b))
    free |= (trial.alpha > 0.0) & (trial.alpha < C)
    bounded &= ~free
    return finished(
        samples, C, trial.positive, trial.y, trial.w, trial.b, trial.margins, free, bounded, trial.alpha, length
    )


def from_ties(samples: Samples, C: float, trial: Trial, between: Bools, spread: float) -> Head | None:
    """Finish a head whose free samples depend on each other: repeated samples, grids, weights of zero."""
    if spread > 1e-6:
        return None
    scale = hinge.rounding_scale(hinge.longest(samples.rows(np.flatnonzero(between))), trial.w, trial.b)
    near = np.abs(trial.margins - 1.0) <= max(2.0 * spread, hinge.TIE * scale)
    bounded = (trial.margins < 1.0) & ~near
    proposal = Proposal(trial.w, trial.b, np.flatnonzero(near), trial.alpha[near], free=near, bounded=bounded)
    proposal.w, proposal.b = canonical_weights(samples, C, trial.y, trial.b, near, bounded)
    margins = np.where(samples.alive, trial.y * (samples.scores(proposal.w[:, None])[:, 0] + proposal.b), np.inf)
    alpha = np.where(bounded, C, 0.0)
    alpha[near] = trial.alpha[near]
    head = confirm(samples, C, trial, proposal, margins, alpha)
    if head is not None:
        gap = head.certificate.relative_gap
        if trial.best is None or gap < 0.3 * trial.best.certificate.relative_gap:
            trial.best = head
        elif spread <= 1e-14 * scale or trial.width <= NARROWEST:
            trial.patience -= 1
    if trial.best is not None and (trial.best.certificate.relative_gap <= GOOD_GAP or trial.patience <= 0):
        return trial.best
    return None


def confirm(
    samples: Samples, C: float, trial: Trial, proposal: Proposal, margins: Floats, alpha: Floats
) -> Head | None:
    """The finished head if the margins under its weights give back the partition they were computed from."""
    y, w, b, free, bounded = trial.y, proposal.w, proposal.b, proposal.free, proposal.bounded
    alpha = alpha.copy()
    for _ in range(4):
        assert free is not None and bounded is not None
        length = hinge.longest(samples.rows(np.flatnonzero(free)))
        scale = hinge.rounding_scale(length, w, b)
        free_now, bounded_now = hinge.partition(margins, scale)
        shift = bias_toward_zero(y, margins, free_now, bounded_now, b)
        if shift == 0.0 and np.array_equal(free, free_now) and np.array_equal(bounded, bounded_now):
            return finished(samples, C, trial.positive, y, w, b, margins, free, bounded, alpha, length)
        if shift != 0.0:
            margins = margins + y * shift
            b += shift
            free_now, bounded_now = hinge.partition(margins, scale)
        free, bounded = free_now, bounded_now
        alpha = np.where(bounded, C, np.where(free, alpha, 0.0))
        w, b = canonical_weights(samples, C, y, b, free, bounded)
        margins = np.where(samples.alive, y * (samples.scores(w[:, None])[:, 0] + b), np.inf)
    return None


def finished(
    samples: Samples, C: float, positive: int, y: Floats, w: Floats, b: float, margins: Floats,
    free: Bools, bounded: Bools, alpha: Floats, length: float,
) -> Head:  # fmt: skip
    held, at_margin = samples.in_order(bounded), samples.in_order(free)
    X_free, y_free, alpha_free = samples.rows(at_margin), y[at_margin], alpha[at_margin]
    X_held = samples.rows(held)
    terms = (alpha_free * y_free)[:, None] * X_free
    combination = C * canonical.signed_sum(X_held, y[held]) + terms.sum(axis=0)
    certificate = hinge.assemble(
        margins, free, bounded, alpha, w, b, C,
        length=length, combination=combination,
        imbalance=C * float(np.sum(y[held])) + float(np.sum(alpha_free * y_free)),
    )  # fmt: skip
    return Head(positive, w, b, margins, at_margin, held, alpha_free, certificate)


def bias_toward_zero(y: Floats, margins: Floats, free: Bools, bounded: Bools, b: float) -> float:
    """How far b may move towards zero without any cost: 0.0 unless the optimal bias is an interval.

    The loss as a function of b alone is piecewise linear, and its slopes are whole multiples of C. Upwards it is
    (negatives with margin ≤ 1) − (positives with margin < 1), downwards the mirror image; b is free to move on the
    side where this count is zero, up to the next sample whose margin reaches 1.
    """
    if b == 0.0:
        return 0.0
    toward = -np.sign(b)  # +1: b grows
    losing, gaining = y == -toward, y == toward
    slope = np.count_nonzero((bounded | free) & losing) - np.count_nonzero(bounded & gaining)
    if slope != 0:
        return 0.0
    # The next margins to reach 1: those of gaining bounded samples from below, of losing ones outside from above.
    room = np.concatenate([
        1.0 - margins[bounded & gaining], margins[~bounded & ~free & losing] - 1.0, [abs(b)]
    ])  # fmt: skip
    return float(toward * np.min(room))


def solved_in(heads: Iterable[Head]) -> int:
    return len(list(heads))
