"""Which samples are influential, in one run after another.

The ranking asks this of a hundred networks trained on the same samples: only the features differ. Runs are independent,
and the solver's late steps are too small for threads of one interpreter, so every core gets a process of its own.
Features on a graphics processor are brought near the solution there, all heads at once (`cuda/start.py`), while
the processes finish the runs before; the few numbers that say where it ended travel with the features.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from itertools import combinations, groupby, islice, repeat
from operator import length_hint

import numpy as np
from numpy.typing import ArrayLike

from maxrr.errors import WorkerLostError
from maxrr.parallel.engine import Engine, InProcess
from maxrr.parallel.processes import staying
from maxrr.parallel.ray_cluster import EngineLike, engine_from
from maxrr.progress import Progress
from maxrr.svm import validation
from maxrr.svm.arrays import AnyArray, Array, Bools, Floats, Ints, is_torch, on_accelerator, to_numpy
from maxrr.svm.certificate import Certificate
from maxrr.svm.heads import from_guess, from_scratch, heads_needed
from maxrr.svm.problem import Penalties, Samples
from maxrr.svm.search.start import Guess

TOGETHER = 8  # runs begun together on a graphics processor
MOST_NUMBERS = 2**26  # in all of them together: a bound on the memory

Job = tuple[int, AnyArray, Ints | None, Guess | None]
"""A run's number, features of its samples, which these are if not all, and where its heads are if that is known."""


@dataclass(frozen=True, eq=False)
class Influence:
    """The heads of one run, and which samples are influential in any of them.

    Attributes
    ----------
    mask : ndarray of shape (samples,)
        Whether each sample is influential.
    certificates
        One certificate per head.
    weights : ndarray of shape (heads, features)
        The weights of the heads: one head per class, or one for two classes.
    biases : ndarray of shape (heads,)
        Their biases.
    """

    mask: Bools
    certificates: tuple[Certificate, ...]
    weights: Floats
    biases: Floats


def influential_in(
    runs: Iterable[Array],
    y: ArrayLike,
    *,
    C: float = 1.0,
    masks: Iterable[Bools | None] | None = None,
    pairs: bool = False,
    progress: Progress | None = None,
    engine: EngineLike = None,
) -> Iterator[Influence]:
    """The samples that `LinearSVM(C).fit(X, y)` finds influential, for the features X of each run.

    Runs are solved in worker processes, one per core, or where `engine` says.

    Parameters
    ----------
    runs
        The features of the samples in each run: NumPy arrays or torch tensors, on any device. They are taken from the
        iterable a few at a time, as they are needed.
    y
        Class labels, the same for all runs.
    C
        Weight of the losses, as in `LinearSVM`.
    masks
        For each run the samples that take part in it, as booleans; None stands for all. On a graphics processor
        neighbouring runs with the same array are begun together.
    pairs
        Whether there is a head for each pair of classes, positive for the second, over the samples of these two alone.
    progress
        Called after every result.
    engine
        Where runs are solved, as in `maxrr.parallel.engine_from`; by default in processes of this machine.

    Returns
    -------
    iterator of Influence
        One per run, in the order of the runs. With pairs one for each of a run's pairs of classes, in their order.

    Raises
    ------
    ValueError
        `LinearSVM.fit` would refuse the features of a run; the message has its number. The results of the runs before
        it have been given.
    """
    C = validation.penalty(C)
    array = np.asarray(to_numpy(y) if is_torch(y) else y)
    labels = validation.labels(array, len(np.atleast_1d(array)), None)
    _, codes = validation.classes(labels, np.ones(len(labels)))
    blank, masks = without_features(codes, C), repeat(None) if masks is None else masks
    return spread(runs, masks, blank, pairs, progress, engine_from(engine))


def without_features(codes: Ints, C: float) -> Samples:
    """Return the samples as all runs have them, without features and each as heavy as the others."""
    count = len(codes)
    penalties = Penalties(C, np.ones(count), np.ones(count))
    lengths, exponents = np.zeros(count), np.zeros(count, dtype=np.int64)
    return Samples(np.zeros((count, 0)), lengths, exponents, codes, np.ones(count, dtype=bool), penalties)


def spread(
    runs: Iterable[AnyArray], masks: Iterable[Bools | None], blank: Samples, pairs: bool,
    progress: Progress | None, engine: Engine | None,
) -> Iterator[Influence]:  # fmt: skip
    """Solve all runs on all workers. `blank` are the samples without features."""
    total, taken, done = length_hint(runs), 0, 0

    def jobs() -> Iterator[Job]:
        nonlocal taken
        for group, mask in groups(zip(runs, masks, strict=False)):
            try:
                taking_part = blank if mask is None else replace(blank, held=np.asarray(mask, dtype=bool))
                begun = list(begin_runs(group, taking_part, pairs))
            except ValueError as error:
                raise ValueError(f"run {taken}: {error}") from error
            for parts in begun:
                taken += 1
                yield from ((taken - 1, *part) for part in parts)

    with (
        nullcontext(engine) if engine is not None else staying(__name__) as workers,
        closing(workers.map(solve_run, jobs(), blank.codes, blank.penalties.C)) as solved,
    ):
        try:
            for found in solved:
                yield found
                done += 1
                if progress is not None:
                    progress("influential samples", done, max(total, taken))
        except WorkerLostError as error:
            raise RuntimeError(f"run {done}: {error}") from error


def groups(runs: Iterable[tuple[AnyArray, Bools | None]]) -> Iterator[tuple[list[AnyArray], Bools | None]]:
    """Group runs that can be begun together: on one device, with the same samples."""
    for _, alike in groupby(runs, key=lambda run: (id(run[1]), tuple(run[0].shape), getattr(run[0], "device", None))):
        for X, mask in alike:
            yield [X, *(X for X, _ in islice(alike, together(X) - 1))], mask


def together(X: AnyArray) -> int:
    """Return how many such runs a GPU begins together; one where that gains nothing."""
    return min(TOGETHER, MOST_NUMBERS // max(math.prod(X.shape), 1)) or 1 if on_accelerator(X) else 1


def begin_runs(
    group: list[AnyArray], samples: Samples, pairs: bool
) -> Iterator[Iterator[tuple[AnyArray, Ints | None, Guess | None]]]:
    """Prepare what workers get of each run, for each of its problems: see `Job`. A device guesses where heads are."""
    of_pairs = list(combinations(samples.present, 2)) if pairs else []
    guesses: Iterable[Guess | None] = repeat(None)
    if on_accelerator(group[0]) and len(samples.present) > 1:
        from maxrr.svm.cuda import start as start_cuda

        group = [validation.features(X, None) for X in group]
        for X in group:
            check_length(X, samples)
        against_all = [(None, positive) for positive in heads_needed(samples)]
        guesses = start_cuda.guess_runs(samples, group, of_pairs or against_all)
    for X, guess in zip(group, guesses, strict=False):
        if of_pairs or not samples.held.all():
            check_length(X, samples)
        yield parts_of(X, guess, samples, of_pairs)


def parts_of(
    X: AnyArray, guess: Guess | None, samples: Samples, pairs: list[tuple[int, int]]
) -> Iterator[tuple[AnyArray, Ints | None, Guess | None]]:
    """Divide a run into its problems: one for each pair of classes, or one."""
    there = to_numpy(X)
    if not pairs and samples.held.all():
        yield there, None, guess
        return
    chosen = [np.isin(samples.codes, pair) for pair in pairs] or [samples.held]
    for number, mine in enumerate(chosen):
        places = np.flatnonzero(mine & samples.held)
        heads = slice(number, number + 1) if pairs else slice(None)
        yield there[places], places, guess and guess.of(heads, places)


def check_length(features: AnyArray, blank: Samples) -> None:
    if len(features) != len(blank.codes):
        raise ValueError(f"X has {len(features)} samples, but y has {len(blank.codes)} labels")


def filled(blank: Samples, features: AnyArray) -> Samples:
    """Return the samples with the features of a run."""
    check_length(features, blank)
    lengths, exponents = validation.sizes(features)
    return replace(blank, X=features, lengths=lengths, exponents=exponents).counting()


def solve_run(job: Job, codes: Ints, C: float) -> Influence:
    """Solve one run in a worker; errors name the run."""
    number, X, chosen, guess = job
    try:
        blank = without_features(np.array(codes) if chosen is None else codes[chosen], C)
        samples = filled(blank, validation.owned(validation.features(X, None)))
        if len(samples.present) < 2:
            raise ValueError("an SVM needs samples of two classes, and the mask leaves fewer")
        if guess is None:
            heads = from_scratch(samples, heads_needed(samples))
        else:
            heads = from_guess(samples, heads_needed(samples), guess, InProcess())
    except ValueError as error:
        raise ValueError(f"run {number}: {error}") from error
    except Exception as error:
        raise RuntimeError(f"run {number}: {type(error).__name__}: {error}") from error
    mask, influential = np.zeros(len(codes), dtype=bool), np.concatenate([head.influential for head in heads])
    mask[influential if chosen is None else chosen[influential]] = True
    weights, biases = np.stack([head.w for head in heads]), np.array([head.b for head in heads])
    return Influence(mask, tuple(head.certificate for head in heads), weights, biases)
