"""All heads over one set of samples: solve them, and move the solution when samples leave or arrive.

Everything here returns a new `Solution` and changes nothing: whoever holds the old one can go on using it.
"""

from dataclasses import dataclass, replace

import numpy as np

from maxrr.svm import cold, hinge, refine
from maxrr.svm.arrays import Array, Bools, Floats, Ints, namespace
from maxrr.svm.problem import Head, Samples, Trial

FEW = 100  # requests up to this many samples move margins little, and start from a narrower smoothing
FEW_WIDTH, MANY_WIDTH = 1e-3, 1e-2


@dataclass(frozen=True)
class Work:
    """What an operation cost."""

    cold_solves: int = 0  # heads solved from scratch: all in a fit, else those of new classes and failed updates
    passes: int = 0  # products of all samples with the weights of one or more heads
    rows_touched: int = 0  # rows of X read, counted again each time they are


@dataclass(frozen=True)
class Solution:
    """Samples, and the solved heads over them: one a class, or for two classes one that stands for the second."""

    samples: Samples
    heads: tuple[Head, ...]
    work: Work


def heads_needed(codes: Ints, alive: Bools) -> list[int]:
    """The classes that get a head: all that have samples, or of two the second."""
    present = [int(code) for code in np.unique(codes[alive])]
    if len(present) < 2:
        raise ValueError("an SVM needs samples of at least two classes")
    return present if len(present) > 2 else present[1:]


def solve(samples: Samples, C: float) -> Solution:
    """Every head from scratch."""
    samples = samples.counting()
    needed = heads_needed(samples.codes, samples.alive)
    heads = refine.refine(samples, C, cold.start(samples, C, needed))
    return Solution(samples, tuple(heads), measured(samples, cold_solves=len(needed)))


def remove(solution: Solution, C: float, positions: Ints) -> Solution:
    """The solution without these samples. Heads that they do not influence are not computed again."""
    alive = solution.samples.alive.copy()
    alive[positions] = False
    return move(replace(solution.samples, alive=alive), C, solution, positions)


def add(solution: Solution, C: float, X: Array, lengths: Floats, codes: Ints, rank: Ints) -> Solution:
    """The solution with more samples; `rank` is that of all samples, old ones first."""
    old = solution.samples
    samples = Samples(
        namespace(old.X).concat([old.X, X]),
        np.concatenate([old.lengths, lengths]),
        np.concatenate([old.codes, codes]),
        rank,
        np.concatenate([old.alive, np.ones(len(codes), dtype=bool)]),
    )
    return move(samples, C, solution, np.arange(len(old.codes), len(samples.codes)))


def move(samples: Samples, C: float, solution: Solution, changed: Ints) -> Solution:
    """Solve for `samples`, which differ from those of `solution` at the positions `changed` only."""
    samples = samples.counting()
    known = {head.positive: head for head in solution.heads}
    needed = heads_needed(samples.codes, samples.alive)
    width = FEW_WIDTH if len(changed) <= FEW else MANY_WIDTH
    ready: dict[int, Head] = {}
    trials: list[Trial] = []
    unknown: list[int] = []
    for positive in needed:
        head = known.get(positive) or mirrored(known, positive, solution.samples)
        if head is None:
            unknown.append(positive)
            continue
        margins, alpha = extended(samples, C, head)
        if influences(head, samples, margins, changed):
            trials.append(resume(samples, head, margins, alpha, width))
        else:
            ready[positive] = unmoved(head, samples, margins)
    for head in refine.refine(samples, C, trials, side_by_side=False):
        if head.certificate.solved:
            ready[head.positive] = head
        else:
            unknown.append(head.positive)
    if unknown:
        for head in refine.refine(samples, C, cold.start(samples, C, unknown)):
            ready[head.positive] = head
    heads = tuple(ready[positive] for positive in needed)
    return Solution(samples, heads, measured(samples, len(unknown)))


def measured(samples: Samples, cold_solves: int) -> Work:
    return Work(cold_solves, samples.counter.passes, samples.counter.rows)


def mirrored(known: dict[int, Head], positive: int, before: Samples) -> Head | None:
    """With two classes there was one head. Seen from the other class it is the same head with its sign turned."""
    present = [int(code) for code in np.unique(before.codes[before.alive])]
    if len(present) != 2 or positive != present[0]:
        return None
    head = known[present[1]]
    return replace(head, positive=positive, w=0.0 - head.w, b=0.0 - head.b)


def extended(samples: Samples, C: float, head: Head) -> tuple[Floats, Floats]:
    """A head's margins and multipliers for the samples as they are now: new ones get theirs, erased ones none."""
    margins, alpha = head.margins, head.alpha(C)
    fresh = np.arange(len(margins), len(samples.codes))
    if len(fresh):
        new = samples.signs(head.positive)[fresh] * (samples.rows(fresh) @ head.w + head.b)
        margins = np.concatenate([margins, new])
        alpha = np.concatenate([alpha, np.where(new < 1.0, C, 0.0)])
    return np.where(samples.alive, margins, np.inf), np.where(samples.alive, alpha, 0.0)


def influences(head: Head, samples: Samples, margins: Floats, changed: Ints) -> bool:
    """Whether the head depends on any changed sample: it was free or bounded, or arrives with a margin not above 1."""
    old = changed[changed < len(head.margins)]
    new = changed[changed >= len(head.margins)]
    tie = hinge.TIE * hinge.rounding_scale(float(np.max(samples.lengths[new], initial=0.0)), head.w, head.b)
    return bool(head.influential()[old].any() or (margins[new] <= 1.0 + tie).any())


def unmoved(head: Head, samples: Samples, margins: Floats) -> Head:
    """The head itself. Only its separation can change, when the sample nearest to the margin leaves or arrives."""
    separation = head.certificate.separation
    if separation > 0.0:
        scale = hinge.rounding_scale(float(np.max(samples.lengths[head.free], initial=0.0)), head.w, head.b)
        others = np.abs(margins - 1.0)
        others[head.free] = np.inf
        separation = float(np.min(others)) / scale
    return replace(head, margins=margins, certificate=replace(head.certificate, separation=separation))


def resume(samples: Samples, head: Head, margins: Floats, alpha: Floats, width: float) -> Trial:
    """A trial that starts at a head solved for almost these samples."""
    return Trial(
        head.positive, samples.signs(head.positive), head.w, head.b, margins, alpha,
        width=width, reach=refine.REACH * width, held=np.zeros(len(margins)), pull=np.zeros_like(head.w), tilt=0.0,
    )  # fmt: skip
