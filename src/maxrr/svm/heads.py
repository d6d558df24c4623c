"""All heads over one set of samples: solve them, and move the solution when samples leave or arrive.

Everything here returns a new `Solution` and changes nothing: the old one can still be used.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from maxrr.parallel import Engine, InProcess, Threads, cores
from maxrr.svm.arrays import AnyArray, Bools, Floats, Ints, is_numpy, namespace, on_accelerator
from maxrr.svm.deciding import TOUCHING, margin_error, with_longest
from maxrr.svm.penalties import Penalties
from maxrr.svm.problem import Change, Head, InsideSum, Samples, Trial
from maxrr.svm.start import Guess, start_heads
from maxrr.svm.working_set import REACH, refine

Class = TypeVar("Class")

WIDTH = 5e-2  # of the smoothing that Newton's method starts from, where a path is not tried or does not lead there
MOST_CHANGED = 4  # samples that leave or arrive: with more than this a path is longer than Newton's way
WIDE = 256  # features from which on the steps of an update are large enough for threads


@dataclass(frozen=True)
class Work:
    """What the last change of a `LinearSVM` cost.

    Attributes
    ----------
    cold_solves
        Heads solved from scratch: all of them in a fit, otherwise those of new classes and of updates that failed.
    passes
        Products of all samples with the weights of one head or more.
    rows_touched
        Rows of the features that were read, each counted every time.
    """

    cold_solves: int = 0
    passes: int = 0
    rows_touched: int = 0


@dataclass(frozen=True)
class Solution:
    """Samples, and the solved heads over them: one per class, or for two classes one that stands for the second."""

    samples: Samples
    heads: tuple[Head, ...]
    work: Work


def classes_present(codes: Ints, alive: Bools) -> list[int]:
    """The classes that have samples."""
    return [int(code) for code in np.flatnonzero(np.bincount(codes[alive]))]


def with_a_head(classes: Sequence[Class]) -> Sequence[Class]:
    """The classes that get a head of their own: all, or of two the second, because they share one.

    >>> with_a_head(["cat", "dog", "owl"]), with_a_head(["cat", "dog"])
    (['cat', 'dog', 'owl'], ['dog'])
    """
    return classes if len(classes) > 2 else classes[1:]


def heads_needed(codes: Ints, alive: Bools) -> list[int]:
    """The classes that get a head, of those that have samples."""
    return list(with_a_head(classes_present(codes, alive)))


def solve(samples: Samples) -> Solution:
    """Every head from scratch."""
    samples = samples.counting()
    needed = heads_needed(samples.codes, samples.alive)
    heads = from_scratch(samples, needed, engine_for(samples))
    return Solution(samples, tuple(heads), work_of(samples, cold_solves=len(needed)))


def engine_for(samples: Samples) -> Engine:
    """Where heads are solved from scratch: tensors in main memory are left to their own library's threads."""
    several = is_numpy(samples.X) or on_accelerator(samples.X)
    return Threads() if several and cores() > 1 else InProcess()


def from_scratch(samples: Samples, classes: list[int], engine: Engine) -> list[Head]:
    """These heads, solved; on a graphics processor from where it can bring them."""
    if not on_accelerator(samples.X):
        return refine(samples, start_heads(samples, classes, engine), engine)
    from maxrr.svm import start_cuda  # brings torch, which arrays of NumPy do without

    return from_guess(samples, classes, start_cuda.guess_run(samples, classes), engine)


def from_guess(samples: Samples, classes: list[int], guess: Guess, engine: Engine) -> list[Head]:
    """These heads, solved from a guess, or without it where it has led them astray."""
    found = {head.positive: head for head in refine(samples, guess.trials(samples, classes), engine)}
    failed = [positive for positive, head in found.items() if not head.certificate.solved]
    if failed:
        for head in refine(samples, start_heads(samples, failed, engine), engine):
            if head.certificate.relative_gap < found[head.positive].certificate.relative_gap:
                found[head.positive] = head
    return [found[positive] for positive in classes]


def remove(solution: Solution, positions: Ints) -> Solution:
    """The solution without these samples. Heads that they do not influence are not computed again."""
    held = solution.samples.held.copy()
    held[positions] = False
    return move(replace(solution.samples, held=held), solution, positions)


def exchange(
    solution: Solution, leaving: Ints, X: AnyArray, sizes: tuple[Floats, Ints], codes: Ints, penalties: Penalties
) -> Solution:  # fmt: skip
    """The solution without some samples and with others; `sizes` are lengths and exponents of these."""
    old = solution.samples
    held = old.held.copy()
    held[leaving] = False
    samples = Samples(
        namespace(old.X).concat([old.X, X]),
        np.concatenate([old.lengths, sizes[0]]),
        np.concatenate([old.exponents, sizes[1]]),
        np.concatenate([old.codes, codes]),
        np.concatenate([held, np.ones(len(codes), dtype=bool)]),
        old.penalties.followed_by(penalties),
    )
    return move(samples, solution, np.concatenate([leaving, np.arange(len(old.codes), len(samples.codes))]))


def move(samples: Samples, solution: Solution, changed: Ints) -> Solution:
    """Solve for `samples`, which differ from those of `solution` at the positions `changed` only."""
    samples = samples.counting()
    known = {head.positive: head for head in solution.heads}
    needed = heads_needed(samples.codes, samples.alive)
    ready: dict[int, Head] = {}
    trials: list[Trial] = []
    unknown: list[int] = []
    for positive in needed:
        head = known.get(positive) or mirror_head(known, positive, solution.samples)
        if head is None:
            unknown.append(positive)
            continue
        margins = extend_margins(samples, head)
        if influences(head, samples, margins, changed):
            trials.append(resume(samples, head, margins, changed))
        else:
            ready[positive] = keep_head(head, samples, margins, changed)
    for head in refine(samples, trials, engine_for(samples) if samples.X.shape[1] >= WIDE else InProcess()):
        if head.certificate.solved:
            ready[head.positive] = head
        else:
            unknown.append(head.positive)
    if unknown:
        for head in from_scratch(samples, unknown, engine_for(samples)):
            ready[head.positive] = head
    heads = tuple(ready[positive] for positive in needed)
    return Solution(samples, heads, work_of(samples, len(unknown)))


def work_of(samples: Samples, cold_solves: int) -> Work:
    """What was counted."""
    return Work(cold_solves, samples.counter.passes, samples.counter.rows)


def mirror_head(known: dict[int, Head], positive: int, before: Samples) -> Head | None:
    """With two classes there was one head. Seen from the other class it is the same head with its sign turned."""
    present = classes_present(before.codes, before.alive)
    if len(present) != 2 or positive != present[0]:
        return None
    head = known[present[1]]
    sums = head.known
    inside = sums and InsideSum(sums.places, sums.total.negated(), sums.tilt.negated())
    return replace(head, positive=positive, w=0.0 - head.w, b=0.0 - head.b, known=inside)


def extend_margins(samples: Samples, head: Head) -> Floats:
    """A head's margins, with those of samples that it has not seen."""
    fresh = np.arange(len(head.margins), len(samples.codes))
    if not len(fresh):
        return head.margins
    y = np.where(samples.codes[fresh] == head.positive, 1.0, -1.0)
    return np.concatenate([head.margins, y * (samples.rows(fresh) @ head.w + head.b)])


def influences(head: Head, samples: Samples, margins: Floats, changed: Ints) -> bool:
    """Whether any of the changed samples shapes the head, or may do so: its margin is not proved to be above 1."""
    known = head.certificate
    bound = margin_error(samples.lengths[changed], head.w, head.b, known.weight_error, known.bias_error)
    return not bool((margins[changed] > 1.0 + bound + 2.0 * TOUCHING).all())


def keep_head(head: Head, samples: Samples, margins: Floats, changed: Ints) -> Head:
    """The head itself, with the margins of samples that arrived."""
    margins = margins.copy()
    margins[changed] = np.where(samples.alive[changed], margins[changed], np.inf)
    return replace(head, margins=margins, certificate=with_longest(head.certificate, samples))


def resume(samples: Samples, head: Head, margins: Floats, changed: Ints) -> Trial:
    """A trial that starts at a head solved for almost these samples."""
    alpha = np.where(margins < 1.0, samples.caps, 0.0)
    alpha[head.inside], alpha[head.on_margin] = samples.caps[head.inside], head.multipliers
    arrived = changed >= len(head.margins)
    leaving, arriving = changed[~arrived], changed[arrived]
    leaving = leaving[alpha[leaving] > 0.0]
    change = Change(leaving, alpha[leaving], arriving[margins[arriving] < 1.0])
    near = len(change.leaving) + len(change.arriving) <= MOST_CHANGED
    alpha[~samples.alive] = 0.0
    return Trial(
        head.positive, samples.signs(head.positive), head.w, head.b, np.where(samples.alive, margins, np.inf), alpha,
        width=WIDTH, reach=REACH * WIDTH, held=np.zeros(len(margins)), pull=np.zeros_like(head.w), tilt=0.0,
        known=head.known, near=near, moved=change.arriving, change=change if near else None,
    )  # fmt: skip
