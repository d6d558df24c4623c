"""Heads from nearly right to certified.

Each round improves every unfinished head on its *working set*, the samples with margins near 1, taking the others to
stay where they are; then one product of all samples with all weights shows whether they did. If some crossed, the
step is shortened to what is best for all samples, and the working set grows; if none did, the smoothing narrows, and
with it the working set. A head is finished when a partition settled on the working set holds for every sample.
"""

from dataclasses import dataclass, replace

import numpy as np

from maxrr.svm import canonical, hinge, newton
from maxrr.svm.active_set import Settled, settle
from maxrr.svm.arrays import Bools, Floats, Ints, like, to_numpy
from maxrr.svm.problem import Head, Samples, Trial
from maxrr.svm.threads import in_parallel

WORKING_SET = 6  # the working set has at least this many times the d + 1 samples that can be free
TIED = 1e-9  # margins this close to 1 are taken for equal to it, as long as that holds good
TIES = 8  # at most this many times the least working set of them are worked on at once
NARROWING = 5.0  # how much the smoothing narrows from round to round
NARROWEST = 1e-13
REACH = 10.0  # working set: margins within this many widths of 1
ACCURACY = 0.02  # Newton stops at this many multipliers a sample, times the width
GOOD_GAP = 1e-12
LEVELS_A_ROUND = 12
MOST_ROUNDS = 50


@dataclass
class Proposal:
    """What a round on the working set suggests: new weights, and the partition behind them if it was settled."""

    w: Floats
    b: float
    inside: Ints
    alpha: Floats
    strayed: bool = False
    width: float = np.inf
    spread: float = np.inf
    free: Bools | None = None  # over all samples
    bounded: Bools | None = None
    bounded_sum: Floats | None = None

    def take(self, found: canonical.Weights) -> None:
        self.w, self.b, self.bounded_sum = found.w, found.b, found.bounded_sum


def refine(samples: Samples, C: float, trials: list[Trial], side_by_side: bool = True) -> list[Head]:
    """Solve every head. One pass over the data a round, for all unfinished heads together.

    Heads far from their solution have large working sets and are worked on side by side; near it the work is in many
    small steps, which threads of one interpreter only hinder.
    """
    solved: dict[int, Head] = {}
    active = trials
    while active:
        if side_by_side:
            proposals = in_parallel(lambda trial: improve(samples, C, trial), active, samples)
        else:
            proposals = [improve(samples, C, trial) for trial in active]
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


def improve(samples: Samples, C: float, trial: Trial) -> Proposal:
    """One round on the working set."""
    # 1. The working set, and what the samples outside it contribute.
    distance = np.abs(trial.margins - 1.0)
    least = WORKING_SET * (samples.X.shape[1] + 1)
    if len(distance) > least:
        trial.reach = max(trial.reach, float(np.partition(distance, least)[least]))
    else:
        trial.reach = np.inf
    near = (distance <= trial.reach) & samples.alive
    ties = np.flatnonzero(near & (distance <= TIED))
    if len(ties) > max(4000, TIES * least):  # thousands of samples with margin 1: some of them can balance all
        stride = len(ties) // (TIES * least) + 1
        near[ties] = False
        near[ties[trial.rounds % stride :: stride]] = True
    held = np.where(trial.margins < 1.0, C, 0.0)
    held[ties] = trial.alpha[ties]
    held[near] = 0.0
    trial.hold(samples, held)
    inside = np.flatnonzero(near)
    X, y, alpha = samples.on_device(inside), trial.y[inside], trial.alpha[inside]
    if len(inside) <= 16 * least:
        X = to_numpy(X)  # small systems are quicker in main memory than on any device
    signs, cap = like(y, X), like(np.full(len(y), C), X)
    proposal = Proposal(trial.w, trial.b, inside, alpha)
    length = float(np.mean(samples.lengths[inside])) or 1.0
    noise = hinge.EPSILON * C * length * (np.count_nonzero(held) + len(inside))

    def settled_from(alpha: Floats) -> Settled | None:
        between = (alpha > 0.0) & (alpha < C)
        if np.count_nonzero(between) > X.shape[1] + 1:
            return None
        return settle(to_numpy(X), y, C, trial.pull, trial.tilt, noise, between, alpha >= C)

    # 2. Newton on ever narrower smoothings, until the partition is clear or all samples must be asked again.
    proposal.width, proposal.spread = trial.width, trial.spread
    for _ in range(LEVELS_A_ROUND if len(inside) <= 16 * least else 1):
        problem = newton.Smoothed(
            X, signs, cap, like(proposal.alpha, X),
            sigma=C / (2.0 * proposal.width), pull=like(trial.pull, X), tilt=trial.tilt,
        )  # fmt: skip
        tolerance = ACCURACY * min(1.0, proposal.width, max(proposal.spread / proposal.width, 1e-14))
        point = newton.minimise(problem, like(proposal.w, X), proposal.b, length, tolerance, trial.reach)
        proposal.w, proposal.b, proposal.alpha = to_numpy(point.w), point.b, to_numpy(point.multipliers)
        proposal.strayed = point.strayed
        if point.strayed:
            break
        if settled := settled_from(proposal.alpha):
            return with_partition(samples, C, trial, proposal, settled)
        if point.spread > 1e-14 and point.spread > 0.1 * proposal.spread:
            proposal.width = max(proposal.width / NARROWING, NARROWEST)
        proposal.spread = point.spread
        if point.spread <= 1e-13:  # tied samples: nothing is left to decide here
            break
    return proposal


def with_partition(samples: Samples, C: float, trial: Trial, proposal: Proposal, settled: Settled) -> Proposal:
    """The proposal that a settled working set makes for all samples, in canonical weights."""
    free, bounded = (trial.held > 0.0) & (trial.held < C), trial.held == C
    free[proposal.inside], bounded[proposal.inside] = settled.free, settled.bounded
    proposal.free, proposal.bounded, proposal.alpha = free, bounded, settled.multipliers
    proposal.take(canonical_weights(samples, C, trial.y, settled.b, free, bounded))
    return proposal


def canonical_weights(
    samples: Samples, C: float, y: Floats, b: float, free: Bools, bounded: Bools
) -> canonical.Weights:
    """Weights and bias of a partition; without free samples the bias stays `b`."""
    held, at_margin = samples.in_order(bounded), samples.in_order(free)
    found = canonical.weights(samples.rows(at_margin), y[at_margin], samples.rows(held), y[held], C)
    return found if len(at_margin) else replace(found, b=b)


def review(samples: Samples, C: float, trial: Trial, proposal: Proposal, margins: Floats) -> Head | None:
    """Hold a proposal against all samples: finish the head, or move it and set up the next round."""
    trial.rounds += 1
    outside = samples.alive.copy()
    outside[proposal.inside] = False
    moved = (margins < 1.0) != (trial.margins < 1.0)
    moved &= np.maximum(np.abs(margins - 1.0), np.abs(trial.margins - 1.0)) > TIED
    crossed = int(np.count_nonzero(outside & moved))
    alpha = trial.held.copy()
    alpha[proposal.inside] = proposal.alpha
    if proposal.free is not None and proposal.bounded is not None and crossed == 0:
        head = confirm(samples, C, trial, proposal, margins, alpha)
        if head is not None and head.certificate.relative_gap <= max(1e-10, head.certificate.rounding_floor):
            return head
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
        trial.reach = REACH * trial.width
        if proposal.free is None:
            trial.width, trial.spread = proposal.width, proposal.spread
        else:  # the settled partition did not hold: nothing is known about the smoothed problem there
            trial.width = max(trial.width / NARROWING, NARROWEST)
        head = from_ties(samples, C, trial, between, proposal.spread)
        if head is not None:
            return head
    if trial.rounds >= MOST_ROUNDS:
        return trial.best or as_it_stands(samples, C, trial)
    return None


def as_it_stands(samples: Samples, C: float, trial: Trial) -> Head:
    """A head that would not settle, with whatever its certificate has to say."""
    length = samples.longest((trial.alpha > 0.0) & (trial.alpha < C))
    free, bounded = hinge.partition(trial.margins, hinge.rounding_scale(length, trial.w, trial.b))
    free |= (trial.alpha > 0.0) & (trial.alpha < C)
    bounded &= ~free
    return finished(
        samples,
        C,
        trial.positive,
        trial.y,
        trial.w,
        trial.b,
        trial.margins,
        free,
        bounded,
        trial.alpha,
        length,
        trial.y[bounded] @ samples.rows(np.flatnonzero(bounded)),
    )


def from_ties(samples: Samples, C: float, trial: Trial, between: Bools, spread: float) -> Head | None:
    """Finish a head whose free samples depend on each other: repeated samples, grids, weights of zero."""
    if spread > 1e-6:
        return None
    scale = hinge.rounding_scale(samples.longest(between), trial.w, trial.b)
    near = np.abs(trial.margins - 1.0) <= max(2.0 * spread, hinge.TIE * scale)
    bounded = (trial.margins < 1.0) & ~near
    proposal = Proposal(trial.w, trial.b, np.flatnonzero(near), trial.alpha[near], free=near, bounded=bounded)
    proposal.take(canonical_weights(samples, C, trial.y, trial.b, near, bounded))
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
    bounded_sum = proposal.bounded_sum
    alpha = alpha.copy()
    for _ in range(4):
        assert free is not None
        assert bounded is not None
        assert bounded_sum is not None
        length = samples.longest(free)
        scale = hinge.rounding_scale(length, w, b)
        free_now, bounded_now = hinge.partition(margins, scale)
        shift = bias_toward_zero(y, margins, free_now, bounded_now, b)
        if shift == 0.0 and np.array_equal(free, free_now) and np.array_equal(bounded, bounded_now):
            return finished(samples, C, trial.positive, y, w, b, margins, free, bounded, alpha, length, bounded_sum)
        if shift != 0.0:
            margins = margins + y * shift
            b += shift
            free_now, bounded_now = hinge.partition(margins, scale)
        free, bounded = free_now, bounded_now
        alpha = np.where(bounded, C, np.where(free, alpha, 0.0))
        found = canonical_weights(samples, C, y, b, free, bounded)
        w, b, bounded_sum = found.w, found.b, found.bounded_sum
        margins = np.where(samples.alive, y * (samples.scores(w[:, None])[:, 0] + b), np.inf)
    return None


def finished(
    samples: Samples, C: float, positive: int, y: Floats, w: Floats, b: float, margins: Floats,
    free: Bools, bounded: Bools, alpha: Floats, length: float, bounded_sum: Floats,
) -> Head:  # fmt: skip
    held, at_margin = samples.in_order(bounded), samples.in_order(free)
    X_free, y_free, alpha_free = samples.rows(at_margin), y[at_margin], alpha[at_margin]
    combination = C * bounded_sum + (alpha_free * y_free) @ X_free
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
