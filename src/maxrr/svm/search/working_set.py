"""Heads from nearly right to certified.

Each round improves every unfinished head on its *working set*, the samples with margins near 1, taking the others to
stay where they are; then one product of all samples with all weights shows whether they did. If some crossed, the
step is shortened to what is best for all samples, and the working set grows; if none did, the smoothing narrows, and
with it the working set. As soon as few enough multipliers are between their bounds, a path (`path.py`) leads on to a
clear partition of the working set. A head is finished when that holds for every sample.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np

from maxrr.parallel.engine import Engine, InProcess, single_threaded_blas
from maxrr.svm.arrays import AnyArray, Floats, Ints
from maxrr.svm.exact.deciding import Candidate, confirm, finish, propose
from maxrr.svm.exact.fallback import solve_surely
from maxrr.svm.exact.flat import flat_head
from maxrr.svm.problem import Head, Samples, Trial
from maxrr.svm.search import newton
from maxrr.svm.search.newton import Light
from maxrr.svm.search.path import Path

T = TypeVar("T")
R = TypeVar("R")

SMALLEST = 6  # a working set has at least this many times the d + 1 samples that can be on the margin without ties
SMALL = 4 * SMALLEST  # up to this many, one is worked on until nothing is left to do
SMALLER = 8000  # or so many
REACH = 10.0  # a working set holds the margins within this many widths of 1, or spreads of the band, if these are less
STRAYED = 4.0  # margins that move by this many times that are a reason to ask all samples
WIDTH = 5e-2  # of the smoothing that Newton's method goes on from near a solution,
NARROWING = 5.0  # how much narrower it gets,
NARROWING_WIDE = 2.5  # and then with many features: with more, multipliers leap over their bounds and return slowly
SLOW = 0.03  # where the band's margins did not come closer to 1 by this factor
NARROWEST = 1e-13  # below that, σ would blow up the rounding of margins to multiples of Cᵢ
LEVELS_PER_ROUND = 12
ACCURACY = 0.02  # of Newton, relative to the multipliers and to the width
TIED = 1e-12  # margins this close to 1 are taken for equal to it, as long as that holds good
ENOUGH = 2000  # for a path it has up to four times as many, as long as these are no more than this
ROUNDED = 1e-14  # margins this close to 1 cannot come closer
MOST_ROUNDS = 15  # five are usual
A_FEW_MORE = 1.2  # times as many are not worth a copy of those that are enough
MOST_LEFT = 100  # a path, which takes samples one by one, begins where no more leave the band from one smoothing to the
SETTLED = 0.6  # next, where so large a share stays,
LEAVING = 0.7  # and where there is room on the margin for those that stay if this share of those that left leaves next
MOST_CHANGED = 16  # samples that change: with more than this a path is longer than Newton's way,
MOST_CHANGED_WIDE = 2  # and with more than this where there are many features
NEARLY_FULL = 0.9  # of d + 1, which is all that there is room for on the margin
LONG, SHORT = 1000, 200  # lines of a path, beside one for each feature: from a solved problem, and from nearly there


@dataclass
class Proposal:
    """What a round on the working set suggests."""

    w: Floats
    b: float
    working: Ints  # the working set
    alpha: Floats  # its multipliers
    width: float
    spread: float
    strayed: bool = False
    candidate: Candidate | None = None  # if the partition is clear


def refine(samples: Samples, trials: list[Trial], engine: Engine) -> list[Head]:
    """Solve every head. One pass over the data per round, for all unfinished heads together.

    Heads far from their solution have large working sets and are worked on side by side; near it the work is in many
    small steps, which threads of one interpreter only hinder.
    """
    solved: dict[int, Head] = {}
    active = trials
    light = cache(lambda: Light.of(samples.X))  # one copy for all heads and rounds, while they are solved
    while active:
        proposals = for_each_head(engine, lambda trial: improve(samples, trial, light), active)
        scores = samples.scores(np.stack([proposal.w for proposal in proposals], axis=1))
        unfinished = []
        with single_threaded_blas():  # what follows is many small steps
            for trial, proposal, score in zip(active, proposals, scores.T, strict=True):
                margins = np.where(samples.alive, trial.y * (score + proposal.b), np.inf)
                head = review(samples, trial, proposal, margins)
                if head is None:
                    unfinished.append(trial)
                else:
                    solved[trial.positive] = head
        active = unfinished
    return [solved[trial.positive] for trial in trials]


def for_each_head(engine: Engine, work: Callable[[T], R], items: list[T]) -> list[R]:
    """What is done for every head; the products are small."""
    with single_threaded_blas():
        return list((engine if len(items) > 1 else InProcess()).map(work, items))


def improve(samples: Samples, trial: Trial, light: Callable[[], Light | None]) -> Proposal:
    """One round on the working set; `light` gives all samples in float32."""
    if trial.near:
        proposal = begin(samples, trial)
        if follow(samples, trial, proposal, samples.rows(proposal.working), LONG):
            return proposal
        trial.near = False
    proposal = begin(samples, trial)
    working = proposal.working
    if len(working) <= max(SMALL * (samples.X.shape[1] + 1), SMALLER):
        work_out(samples, trial, proposal)
    elif 3 * len(working) <= len(trial.y):
        X, cap, share = samples.as_kept(working), samples.caps[working], shares(samples, working)
        narrow(samples, trial, proposal, X, trial.y[working], proposal.alpha, cap, share, Light.of(X))
    else:  # all samples, to save a copy; those that are not in the working set are capped at zero
        alpha, cap = np.zeros(len(trial.y)), np.zeros(len(trial.y))
        alpha[working], cap[working] = proposal.alpha, samples.caps[working]
        X, share = samples.X, shares(samples, np.arange(len(trial.y)))
        narrow(samples, trial, proposal, X, trial.y, alpha, cap, share, light())
        proposal.alpha = proposal.alpha[working]
    return proposal


def begin(samples: Samples, trial: Trial) -> Proposal:
    """Begin a proposal on the working set around the trial."""
    working = choose_working_set(samples, trial)
    return Proposal(trial.w, trial.b, working, trial.alpha[working], trial.width, trial.spread)


def work_out(samples: Samples, trial: Trial, now: Proposal) -> None:
    """Solve ever narrower smoothings of a small working set by Newton's method, until the partition is clear."""
    X, y, cap = samples.rows(now.working), trial.y[now.working], samples.caps[now.working]
    share, light = shares(samples, now.working), Light.of(X)
    before, most = between_bounds(now.alpha, cap), X.shape[1] + 1
    for _ in range(LEVELS_PER_ROUND):
        narrow(samples, trial, now, X, y, now.alpha, cap, share, light)
        between = between_bounds(now.alpha, cap)
        left = before - between
        settled = left <= MOST_LEFT and SETTLED * before <= between <= most + LEAVING * left
        if now.strayed or (settled and follow(samples, trial, now, X, SHORT, abs(left))):
            break
        before = between
        if now.spread <= 10.0 * ROUNDED:  # the samples in the band are tied, and nothing is left to do
            break


def between_bounds(alpha: Floats, cap: Floats) -> int:
    """How many multipliers are strictly between their bounds."""
    return int(np.count_nonzero((alpha > 0.0) & (alpha < cap)))


def follow(samples: Samples, trial: Trial, now: Proposal, X: Floats, most: int, doubtful: int = 0) -> bool:
    """Follow a path to a clear partition of the working set, whose rows are X; return whether there is a candidate.

    So many of the samples between their bounds may not belong on the margin. Room is left for as many there: where
    wrong ones fill it, they alone determine where the path begins, which is far away.
    """
    filled = X.any(axis=0)  # a unit of a network that never fires, or only far from the margin, says nothing here
    dimension, y, caps = int(np.count_nonzero(filled)), trial.y[now.working], samples.caps_at(now.working)
    on_margin = (now.alpha > 0.0) & (now.alpha < caps)
    between, room = int(np.count_nonzero(on_margin)), max(dimension + 1 - doubtful, (dimension + 1) // 2)
    if between > dimension + 1 + doubtful:
        return False
    margins = y * (X @ now.w + now.b)
    if between > room:
        furthest = np.argpartition(np.where(on_margin, np.abs(margins - 1.0), np.inf), room)[room:]
        on_margin[furthest] = False
    # 1. Samples far from the margin are taken to stay where they are.
    distance = np.where(on_margin, 0.0, np.abs(margins - 1.0))
    inside, alpha, enough = margins < 1.0, np.where(margins < 1.0, caps, 0.0), enough_for_path(dimension)
    part: Ints | slice = slice(None)
    pull, tilt = trial.pull, trial.tilt
    if len(y) > A_FEW_MORE * enough:
        nearest = np.argpartition(distance, enough)
        part, far = np.sort(nearest[:enough]), nearest[enough:]
        signed = alpha[far] * y[far]
        pull, tilt = pull + signed @ X[far], tilt + float(signed.sum())
    here = X[part] if dimension == len(pull) else X[part][:, filled]
    path = Path(here, y[part], now.w[filled], now.b, on_margin[part], caps[part], pull[filled], tilt)
    found = path.follow(most + dimension)
    if found is None:
        return False
    # 2. The candidate that follows from it.
    on_margin[part], inside[part], alpha[part] = found.on_margin, found.inside, found.multipliers
    near, within = (trial.held > 0.0) & (trial.held < samples.caps), trial.held == samples.caps
    near[now.working], within[now.working] = on_margin, inside
    multipliers = trial.with_held(now.working, alpha)
    candidate = propose(samples, trial, near, within, multipliers / samples.penalties.C, found.b)
    if candidate is None:
        return False
    now.alpha, now.candidate = alpha, candidate
    now.w, now.b = candidate.published.w, candidate.published.b
    return True


def enough_for_path(dimension: int) -> int:
    """How many samples nearest to the margin a path is about."""
    smallest = SMALLEST * (dimension + 1)
    return max(smallest, min(4 * smallest, ENOUGH))


def shares(samples: Samples, places: Ints) -> Floats | None:
    """Steepnesses of the smoothing, relative to that of a sample of weight 1; None if they are all the same."""
    return None if samples.penalties.even else samples.bounds[places]


def narrow(
    samples: Samples, trial: Trial, now: Proposal, X: AnyArray, y: Floats, alpha: Floats, cap: Floats,
    share: Floats | None, light: Light | None,
) -> None:  # fmt: skip
    """Newton on one smoothing; the next will be narrower if the multipliers still change much."""
    sigma = samples.penalties.C / (2.0 * now.width)
    problem = newton.Smoothed(X, y, cap, alpha, sigma, trial.pull, trial.tilt, share, light)
    length = float(np.mean(samples.lengths[now.working])) or 1.0
    tolerance = ACCURACY * min(1.0, now.width, max(now.spread / now.width, ROUNDED))
    point = newton.minimise(problem, now.w, now.b, length, tolerance, STRAYED * trial.reach)
    now.w, now.b, now.alpha, now.strayed = point.w, point.b, point.multipliers, point.strayed
    if point.spread > ROUNDED and point.spread > SLOW * min(now.spread, now.width):
        by = NARROWING_WIDE if X.shape[1] >= newton.WIDE and now.width <= 2.0 * WIDTH else NARROWING
        now.width = max(now.width / by, NARROWEST)
    now.spread = point.spread


def choose_working_set(samples: Samples, trial: Trial) -> Ints:
    """The samples with margins near 1. The trial takes the others to keep the multipliers that they have."""
    distance = np.abs(trial.margins - 1.0)
    smallest = enough_for_path(samples.X.shape[1]) if trial.near else SMALLEST * (samples.X.shape[1] + 1)
    reach = float(np.partition(distance, smallest)[smallest]) if len(distance) > smallest else np.inf
    if not trial.near:
        trial.reach = reach = max(trial.reach, reach)
    near = (distance <= reach) & samples.alive
    near[trial.moved] = True
    trial.hold(samples, np.where((trial.margins < 1.0) & ~near, samples.caps, 0.0))
    return np.flatnonzero(near)


def review(samples: Samples, trial: Trial, proposal: Proposal, margins: Floats) -> Head | None:
    """Hold a proposal against all samples: finish the head, or move it and set up the next round."""
    trial.rounds += 1
    # 1. Is this the solution?
    if proposal.candidate is not None:
        wrong = samples.alive & ~proposal.candidate.near & ((margins < 1.0) != proposal.candidate.inside)
        count = np.count_nonzero(wrong)
        head = None if count else confirm(samples, trial, proposal.candidate, margins)
        if head is not None:
            return head
        if 0 < count <= samples.X.shape[1] and trial.rounds < MOST_ROUNDS:  # nearly: go on from there
            trial.w, trial.b, trial.margins = proposal.w, proposal.b, margins
            trial.reach = REACH * min(proposal.width, proposal.spread)
            full = is_nearly_full(int(np.count_nonzero(proposal.candidate.near)), proposal.w)
            trial.near = bool(full and count <= most_changed(samples))
            trial.width = trial.spread = proposal.width if trial.near else max(proposal.width, WIDTH)
            trial.moved = np.union1d(trial.moved, np.flatnonzero(wrong))
            trial.alpha = trial.with_held(proposal.working, proposal.alpha)
            return None
    # 2. Or has it no weights?
    alpha = trial.with_held(proposal.working, proposal.alpha)
    if samples.base is None and (head := flat_head(samples, trial.positive, alpha, trial.known)):
        return head
    others = samples.alive.copy()
    others[proposal.working] = False
    away = np.maximum(np.abs(margins - 1.0), np.abs(trial.margins - 1.0))
    others &= ((margins < 1.0) != (trial.margins < 1.0)) & (away > TIED)
    crossed, beyond = int(np.count_nonzero(others)), float(np.max(away[others], initial=0.0))
    # 3. Go there, or as far as is good for all samples.
    change = np.subtract(margins, trial.margins, out=np.zeros(len(margins)), where=samples.alive)
    step = best_step(samples, trial, proposal, change) if crossed or proposal.strayed else 1.0
    trial.w = trial.w + step * (proposal.w - trial.w)
    trial.b += step * (proposal.b - trial.b)
    trial.margins = trial.margins + step * change
    # 4. Narrow the smoothing where the working set was right about the other samples, widen it where it was not.
    if proposal.strayed or step < 0.5:
        trial.reach *= 2.0
    else:
        if crossed:
            raised = trial.alpha + steepness(samples, trial) * (1.0 - trial.margins)
            trial.alpha = np.clip(raised, 0.0, samples.caps)
        else:
            trial.alpha = alpha
        trial.reach = REACH * min(trial.width, max(proposal.spread, beyond))
        if proposal.candidate is None:
            trial.width = max(proposal.width, min(trial.width, beyond))
            trial.spread = max(proposal.spread, beyond)
        else:  # the partition did not hold, and says nothing about the smoothed problem
            trial.width, trial.spread = max(trial.width / NARROWING, NARROWEST), np.inf
        head = finish_here(samples, trial)
        if head is not None:
            return head
    return solve_surely(samples, trial) if trial.rounds >= MOST_ROUNDS else None


def is_nearly_full(on_margin: int, w: Floats) -> bool:
    """Whether so many samples are on the margin that a path leads soonest to where others have crossed it or arrived.

    With room there weights can change in many ways that keep these samples there, and Newton's method finds the right
    one.
    """
    return on_margin >= NEARLY_FULL * (int(np.count_nonzero(w)) + 1)


def most_changed(samples: Samples) -> int:
    """How many samples may have changed for a path to lead to the solution soonest."""
    return MOST_CHANGED_WIDE if samples.X.shape[1] >= newton.WIDE else MOST_CHANGED


def best_step(samples: Samples, trial: Trial, proposal: Proposal, change: Floats) -> float:
    """How far to go towards a proposal, which changes margins by `change`: best for the smoothed objective of all."""
    raised = np.where(samples.alive, trial.alpha + steepness(samples, trial) * (1.0 - trial.margins), 0.0)
    step_w = proposal.w - trial.w
    offset = float(trial.w @ step_w)
    slope = offset - float(np.clip(raised, 0.0, samples.caps) @ change)
    return newton.line_search(
        raised, samples.caps, samples.penalties.C / (2.0 * trial.width), change, samples.bounds * change, slope,
        offset=offset, curvature=float(step_w @ step_w),
    )  # fmt: skip


def steepness(samples: Samples, trial: Trial) -> Floats:
    """σᵢ: how fast a multiplier follows its margin, so that it goes from one bound to the other over the width."""
    return samples.caps / (2.0 * trial.width)


def finish_here(samples: Samples, trial: Trial) -> Head | None:
    """Try to finish a head whose samples on the margin depend on each other, so that it does not settle."""
    if trial.spread > TIED:
        return None
    a = np.where(trial.alpha < samples.caps, trial.alpha / samples.penalties.C, samples.bounds)
    return finish(samples, trial, a, trial.margins, trial.b) or solve_surely(samples, trial)
