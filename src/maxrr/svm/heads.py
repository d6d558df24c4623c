"""All heads over one set of samples: solve them, and move the solution when samples leave or arrive.

Everything here returns a new `Solution` and changes nothing: the old one can still be used.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from maxrr.once import once
from maxrr.parallel.engine import Engine, InProcess, Threads, cores
from maxrr.parallel.processes import are_idle, staying
from maxrr.progress import Progress
from maxrr.svm.arrays import Bools, Floats, Ints, any_among, located, on_accelerator
from maxrr.svm.exact.deciding import TOUCHING, distances, kept, margin_error, screen_of, with_longest
from maxrr.svm.exact.flat import flat_head
from maxrr.svm.problem import Change, Head, Samples, Trial
from maxrr.svm.search.bands import Band, band_around, settle
from maxrr.svm.search.start import Guess, start_heads
from maxrr.svm.search.working_set import REACH, SMALLER, WIDTH, most_changed, refine

Class = TypeVar("Class")
T = TypeVar("T")

LARGEST_SHARE = 0.5  # if more than this of those that shape a head leave from inside, to solve it anew is as fast
MANY = 16  # times d + 1: so many samples are worked on first where many have changed
BANDS_BYTES = 1 << 30  # meant for the features of these, of heads that are moved together
WIDER = 5000.0  # where narrow smoothings take dozens of Newton's steps each
WIDE = 256  # features from which on the steps of an update are large enough for threads
FEW = 5  # heads that are moved: for these no processes are started, and those that have stayed are used
NARROWEST, NARROWEST_OF_FEW = 1e-3, 1e-2  # their smoothing at least, and where samples are few
GROUP_BYTES = 1 << 26  # meant for what heads that are solved together need, or a quarter of what the samples do,
DEVICE_GROUP_BYTES = 1 << 31  # or so many where these are on a device, which works on many heads as fast as on one;
BYTES_PER_SAMPLE = 80  # and each of them needs so many;
MOST_TOGETHER = 16  # more of them than this gain nothing
WORTH_PROCESSES = 2000  # heads times features: with less than this the start of processes costs more
WORTH_THREADS = 1 << 19  # heads times features times samples: with less than this threads hinder each other


@dataclass(frozen=True)
class Work:
    """What the last change of a `LinearSVM` cost, for benchmarks and tests.

    Attributes
    ----------
    cold_solves
        Heads solved from scratch: all of them in a fit, otherwise those of new classes and of updates that failed.
    passes
        Products of all samples with the weights of one head or more.
    """

    cold_solves: int = 0
    passes: int = 0


@dataclass(frozen=True)
class Solution:
    """Samples, and the solved heads over them: one per class, or for two classes one that stands for the second."""

    samples: Samples
    heads: tuple[Head, ...]
    work: Work

    @once
    def shaping(self) -> Ints:
        """The samples that shape a head, sorted."""
        return np.unique(np.concatenate([head.influential for head in self.heads]))

    def influential(self, places: Ints) -> tuple[Bools, int]:
        """Which of these samples shape a head, and how many heads they shape."""
        found, shaped = np.zeros(len(places), dtype=bool), 0
        if any_among(places, self.shaping):
            for head in self.heads:
                if any_among(places, head.influential):
                    found |= located(places, head.influential)[1]
                    shaped += 1
        return found, shaped


def with_a_head(classes: Sequence[Class]) -> Sequence[Class]:
    """The classes that get a head of their own: all, or of two the second, because they share one.

    >>> with_a_head(["cat", "dog", "owl"]), with_a_head(["cat", "dog"])
    (['cat', 'dog', 'owl'], ['dog'])
    """
    return classes if len(classes) > 2 else classes[1:]


def heads_needed(samples: Samples) -> list[int]:
    """The classes that get a head, of those that have samples."""
    return list(with_a_head(samples.present))


def solve(samples: Samples, progress: Progress | None = None) -> Solution:
    """Solve every head from scratch."""
    samples = samples.counting()
    heads = from_scratch(samples, heads_needed(samples), progress)
    return Solution(samples, tuple(heads), Work(len(heads), samples.counter.passes))


def from_scratch(samples: Samples, classes: list[int], progress: Progress | None = None) -> list[Head]:
    """Solve these heads, in groups; on a graphics processor from where it can bring them."""
    size, found = group_size(samples), list[Head]()
    with engine_for(samples, len(classes)) as engine:
        for first in range(0, len(classes), size):
            some = classes[first : first + size]
            if on_accelerator(samples.X):
                from maxrr.svm.cuda import start as start_cuda  # brings torch

                found += from_guess(samples, some, start_cuda.guess_run(samples, some), engine)
            else:
                found += refine(samples, start_heads(samples, some, engine), engine)
            if progress is not None:
                progress("heads", len(found), len(classes))
    return found


def from_guess(samples: Samples, classes: list[int], guess: Guess, engine: Engine) -> list[Head]:
    """Solve these heads from a guess; where the guess has led astray, from scratch."""
    heads = solved(settle(samples, guess.bands(samples, classes, Threads()), engine))
    astray = [positive for positive in classes if positive not in heads]
    if astray:
        here, threads = samples.in_main_memory(), Threads()
        heads |= {head.positive: head for head in refine(here, start_heads(here, astray, threads), threads)}
    return [heads[positive] for positive in classes]


def solved(heads: Sequence[Head | None]) -> dict[int, Head]:
    """Those of the heads that are solved, by class."""
    return {head.positive: head for head in heads if head is not None and head.certificate.solved}


def group_size(samples: Samples) -> int:
    """The number of heads that share a pass over the samples without taking too much memory."""
    X = samples.X
    if on_accelerator(X):
        meant, most = DEVICE_GROUP_BYTES, len(X)
    else:
        meant, most = max(GROUP_BYTES, X.size * X.itemsize // 4), MOST_TOGETHER
    return max(cores(), min(most, meant // (BYTES_PER_SAMPLE * len(X))))


def engine_for(samples: Samples, heads: int, few: int = 1) -> AbstractContextManager[Engine]:
    """Choose where heads are solved: in threads, in processes, or here where they are small.

    What a graphics processor leaves to do is small steps, which hold the interpreter, and little data: much of it is
    done by processes, which are started for more than `few` heads.
    """
    enough = heads > few or (heads > 1 and are_idle())
    if on_accelerator(samples.X) and enough and heads * samples.X.shape[1] >= WORTH_PROCESSES and cores() > 2:
        return staying("maxrr.svm.search.bands")
    small = heads * samples.X.shape[1] * len(samples.X) < WORTH_THREADS
    return nullcontext(InProcess() if small or cores() == 1 else Threads())


def unmoved(samples: Samples, solution: Solution, changed: Ints) -> Solution | None:
    """Return the same heads if the samples that left shape none of them; None otherwise."""
    before = solution.samples
    if len(samples.codes) != len(before.codes) or samples.longest != before.longest:
        return None
    if samples.present != before.present or any_among(changed, solution.shaping):
        return None
    same = Solution(samples, tuple(head.unseen(changed) for head in solution.heads), Work())
    same.__dict__["shaping"] = solution.shaping
    return same


def move(samples: Samples, solution: Solution, changed: Ints) -> Solution:
    """Solve for `samples`, which differ from those of `solution` at the positions `changed` only."""
    if (same := unmoved(samples, solution, changed)) is not None:
        return same
    arrived = changed >= len(solution.samples.codes)
    changes = changes_of(samples, solution, changed[~arrived], changed[arrived])
    needed = heads_needed(samples)
    ready: dict[int, Head] = {}
    affected: list[tuple[Head, Change]] = []
    for positive in needed:
        if positive in changes:
            head, change = changes[positive]
            if change.count:
                affected.append((head, change))
            else:
                certificate = with_longest(head.certificate, samples)
                ready[positive] = head if certificate == head.certificate else replace(head, certificate=certificate)
    on_device, wide = on_accelerator(samples.X), samples.X.shape[1] >= WIDE
    ready |= solved([flat_again(samples, head) for head, _ in affected if not head.w.any()])
    moving = [(head, change) for head, change in affected if head.w.any()]  # without weights nothing says where to
    near = [(head, change) for head, change in moving if change.count <= most_changed(samples)]
    with engine_for(samples, len(affected), FEW) if wide or on_device else nullcontext(InProcess()) as engine:
        for part in pieces(samples, near):
            ready |= solved(settle(samples, bands_around(samples, part), engine))
        others = [each for each in moving if not (each[0].positive in ready or leaves_much(*each))]
        for piece in pieces(samples, others):
            ready |= solved(resume(samples, piece, engine))
    unknown = [positive for positive in needed if positive not in ready]
    if unknown:
        ready |= {found.positive: found for found in from_scratch(samples, unknown)}
    heads = tuple(ready[positive] for positive in needed)
    return Solution(samples, heads, Work(len(unknown), samples.counter.passes))


def flat_again(samples: Samples, head: Head) -> Head | None:
    """Return a head without weights after a change, if it still has none."""
    alpha = samples.caps
    alpha[head.on_margin] = head.multipliers
    return flat_head(samples, head.positive, alpha, head.known)


def leaves_much(head: Head, change: Change) -> bool:
    """Whether so many samples inside leave that a head is solved anew."""
    inside = np.count_nonzero(located(change.leaving, head.inside)[1])
    return bool(inside > LARGEST_SHARE * len(head.influential))


def pieces(samples: Samples, heads: list[T]) -> list[list[T]]:
    """Divide heads into groups whose bands fit into memory together."""
    features = samples.X.shape[1]
    size = group_size(samples)
    if not on_accelerator(samples.X):
        size = max(cores(), min(size, BANDS_BYTES // (8 * MANY * (features + 1) * features)))
    return [heads[first : first + size] for first in range(0, len(heads), size)]


def changes_of(samples: Samples, solution: Solution, leaving: Ints, arriving: Ints) -> dict[int, tuple[Head, Change]]:
    """Find for each solved head which leaving and arriving samples shape it or may do so."""
    known, found = {head.positive: head for head in solution.heads}, {}
    if len(arriving):
        weights = np.stack([head.w for head in known.values()], axis=1)
        scores = dict(zip(known, (samples.rows(arriving) @ weights).T, strict=True))
    for positive in heads_needed(samples):
        head = known.get(positive)
        if head is None:
            continue
        screen = head.screen and head.screen.without(leaving)
        head = head if screen is head.screen else replace(head, screen=screen)
        fresh, gone = arriving, head.shaped_by(leaving)
        if len(arriving):
            y = np.where(samples.codes[arriving] == positive, 1.0, -1.0)
            margins = np.where(samples.alive[arriving], y * (scores[positive] + head.b), np.inf)
            shaping = ~(margins > 1.0 + side_bound(samples, head, arriving))
            fresh = arriving[shaping]
            distance = distances(samples.lengths[arriving], head.w, head.b, margins)
            here = distance < np.inf
            screen = head.screen and head.screen.with_known(arriving[here], distance[here])
            head = replace(head, screen=screen and screen.of_nearest(2 * kept(len(head.w)), samples.lengths))
        found[positive] = head, Change(gone, fresh)
    return found


def side_bound(samples: Samples, head: Head, places: Ints) -> Floats:
    """Return the distance from 1 beyond which the margins of these samples prove their side."""
    known = head.certificate
    bound = margin_error(samples.lengths[places], head.w, head.b, known.weight_error, known.bias_error)
    return bound + 2.0 * TOUCHING


def margins_at(samples: Samples, heads: list[Head]) -> list[Floats]:
    """The margins of all samples, infinite for those that take no part. One pass over the data for all heads."""
    if not heads:
        return []
    scores = samples.scores(np.stack([head.w for head in heads], axis=1))
    return [
        np.where(samples.alive, samples.signs(head.positive) * (score + head.b), np.inf)
        for head, score in zip(heads, scores.T, strict=True)
    ]


def bands_around(samples: Samples, heads: Sequence[tuple[Head, Change]]) -> list[Band]:
    """Make bands for heads that were solved for almost these samples.

    A head that was read from a file has no screen, and all samples are looked at when it is solved. The same goes for
    one that has lost most of those that its screen knew.
    """
    few = min(kept(samples.X.shape[1]), int(np.count_nonzero(samples.alive))) // 2
    unseen = [head for head, _ in heads if head.screen is None or len(head.screen.places) < few]
    renewed = {
        head.positive: replace(head, screen=screen_of(samples, head.w, head.b, margins))
        for head, margins in zip(unseen, margins_at(samples, unseen), strict=True)
    }
    bands = []
    for head, change in heads:
        band = band_around(samples, renewed.get(head.positive, head), change)
        bands.append(replace(band, screen=None) if head.positive in renewed else band)
    return bands


def resume(samples: Samples, changes: list[tuple[Head, Change]], engine: Engine) -> Sequence[Head | None]:
    """Solve heads that were solved for other samples, many of which are the same; None for one that needs more."""
    heads = [head for head, _ in changes]
    classes = [head.positive for head in heads]
    if on_accelerator(samples.X):
        from maxrr.svm.cuda import start as start_cuda  # brings torch

        return settle(samples, start_cuda.resume_run(samples, heads).bands(samples, classes, Threads()), engine)
    margins = margins_at(samples, heads)
    trials = [resume_head(samples, *each, here) for each, here in zip(changes, margins, strict=True)]
    return refine(samples, trials, engine)


def resume_head(samples: Samples, head: Head, change: Change, margins: Floats) -> Trial:
    """Start a trial from a solved head, at the margins that these samples have there.

    The smoothing begins the wider, the more influential samples have changed, and the fewer samples there are.
    """
    alpha = np.where(margins < 1.0, samples.caps, 0.0)
    alpha[head.inside], alpha[head.on_margin] = samples.caps[head.inside], head.multipliers
    alpha[~samples.alive] = 0.0
    share = change.count / len(head.influential) * (len(head.w) / len(margins)) ** 2
    width = first_width(margins, len(head.w)) * max(1.0, WIDER * share)
    return Trial(
        head.positive, samples.signs(head.positive), head.w, head.b, margins, alpha, width=width, spread=width,
        reach=REACH * width, held=np.zeros(len(margins)), pull=np.zeros_like(head.w), tilt=0.0, known=head.known,
    )  # fmt: skip


def first_width(margins: Floats, features: int) -> float:
    """Choose the smoothing to begin with: just wide enough for enough samples to be worked on."""
    count = MANY * (features + 1)
    if len(margins) <= count:
        return WIDTH
    least = NARROWEST if len(margins) > SMALLER else NARROWEST_OF_FEW
    return float(np.clip(np.partition(np.abs(margins - 1.0), count)[count] / REACH, least, WIDTH))
