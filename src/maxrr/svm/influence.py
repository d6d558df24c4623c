"""Which samples are influential, in one run after another.

The ranking asks this of a hundred networks trained on the same samples: only the features differ. Runs are independent,
and the solver's late steps are too small for threads of one interpreter, so every core gets a process of its own with
one thread. Features on a graphics processor are brought near the solution there, all heads at once (`device.py`), while
the processes finish the runs before; the few numbers that say where it ended travel with the features.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import groupby, islice, repeat
from multiprocessing import get_context
from operator import length_hint

import numpy as np
from numpy.typing import ArrayLike

from maxrr.progress import Report
from maxrr.svm import classifier, threads, validation
from maxrr.svm.arrays import Array, Bools, Floats, Ints, is_numpy, is_torch, on_accelerator, to_numpy
from maxrr.svm.certificate import Certificate
from maxrr.svm.guess import Guess
from maxrr.svm.parcels import Parcel
from maxrr.svm.problem import Samples
from maxrr.svm.processes import end_with_the_parent, without_the_script

WAITING = 2  # runs prepared beyond those that are being worked on
TOGETHER = 8  # runs begun together on a graphics processor
MOST_NUMBERS = 2**26  # of all these, or the memory of smaller ones would not do


@dataclass(frozen=True, eq=False)
class Influence:
    """The solution of a run: which samples shape it, in any of its heads, its proof, and its weights.

    Weights and biases are (heads × features) and (heads), of the classes that have a head.
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
    report: Report | None = None,
) -> Iterator[Influence]:
    """For each run the samples that `LinearSVM(C).fit(X, y)` finds influential, in the order of the runs.

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
        For each run the samples that take part in it; None stands for all. On a graphics processor neighbouring runs
        with the same array are begun together.
    report
        Called after every run.

    Raises
    ------
    ValueError
        For features that `LinearSVM.fit` would refuse, naming the number of the run. The runs before have been given.
    """
    C = validation.penalty(C)
    array = np.asarray(to_numpy(y) if is_torch(y) else y)
    _, codes = validation.classes(validation.labels(array, len(np.atleast_1d(array)), None))
    return spread(runs, repeat(None) if masks is None else masks, without_features(codes), C, report)


def without_features(codes: Ints) -> Samples:
    """What the runs have in common."""
    nothing, count = np.zeros((len(codes), 0)), len(codes)
    return Samples(nothing, np.zeros(count), np.zeros(count, dtype=np.int64), codes, np.ones(count, dtype=bool))


def spread(
    runs: Iterable[Array], masks: Iterable[Bools | None], blank: Samples, C: float, report: Report | None
) -> Iterator[Influence]:  # fmt: skip
    """All runs over all cores. `blank` are the samples without features."""
    cores = threads.cores()
    total, ahead = length_hint(runs), groups(zip(runs, masks, strict=False))
    pending: deque[Future[Influence]] = deque()
    shared = Parcel.of(blank.codes)  # a process starts faster the less it must be told
    pool = ProcessPoolExecutor(cores, get_context("spawn"), initializer=settle_in, initargs=(shared, C))
    try:
        done, more = 0, True
        while more or pending:
            while more and len(pending) < cores + WAITING:
                group, mask = next(ahead, ([], None))
                more = bool(group)
                pending.extend(begun(pool, group, mask, blank, C))
                if pending and pending[0].done():
                    break
            if pending:
                yield outcome(pending.popleft(), done)
                done += 1
                if report is not None:
                    report("influential samples", done, max(total, done + len(pending)))
    finally:
        pool.shutdown(cancel_futures=True)
        shared.close()


def groups(runs: Iterable[tuple[Array, Bools | None]]) -> Iterator[tuple[list[Array], Bools | None]]:
    """Runs that are begun together: on a graphics processor several, which take hardly longer there than one."""
    for _, alike in groupby(runs, key=lambda run: id(run[1])):
        for X, mask in alike:
            more = min(TOGETHER, MOST_NUMBERS // max(math.prod(X.shape), 1)) - 1 if on_accelerator(X) else 0
            yield [X, *(X for X, _ in islice(alike, max(more, 0)))], mask


def begun(
    pool: ProcessPoolExecutor, group: list[Array], mask: Bools | None, blank: Samples, C: float
) -> list[Future[Influence]]:  # fmt: skip
    """Runs on their way. What is wrong with one is said when its turn comes, after the runs before."""
    checked = [features_or_error(X, blank) for X in group]
    guesses = iter(guessed([X for X in checked if not isinstance(X, ValueError)], masked(blank, mask), C))
    return [
        refused(features) if isinstance(features, ValueError)
        else sent(pool, in_memory(X, features), mask, next(guesses))
        for X, features in zip(group, checked, strict=True)
    ]  # fmt: skip


def masked(blank: Samples, mask: Bools | None) -> Samples:
    """Those samples that take part."""
    return blank if mask is None else replace(blank, alive=np.asarray(mask, dtype=bool))


def features_or_error(X: Array, blank: Samples) -> Array | ValueError:
    """The features as the solver wants them. Those of NumPy are left to the worker."""
    try:
        if not is_torch(X):
            return X
        features = validation.features(X, None)
        check_length(features, blank)
        return features
    except ValueError as error:
        return error


def guessed(features: list[Array], blank: Samples, C: float) -> list[Guess | None]:
    """Where the heads of each run are, if a device has worked on them."""
    there = [X for X in features if on_accelerator(X)]
    if not there:
        return [None] * len(features)
    from maxrr.svm import device

    classes = classifier.heads_needed(blank.codes, blank.alive)
    stacks = [there] if len({(X.shape, X.device) for X in there}) == 1 else [[X] for X in there]
    found = iter([guess for stack in stacks for guess in device.guesses(blank, stack, C, classes)])
    return [next(found) if on_accelerator(X) else None for X in features]


def in_memory(X: Array, features: Array) -> Array:
    """What is sent to a worker: float32 as it is, half as much and the same numbers."""
    return to_numpy(X if str(X.dtype) == "torch.float32" else features) if is_torch(X) else X


def sent(pool: ProcessPoolExecutor, X: Array, mask: Bools | None, guess: Guess | None) -> Future[Influence]:
    """A run with a worker."""
    if not is_numpy(X) or X.dtype.hasobject:  # lists and the like: what is wrong with them, the worker says
        return submitted(pool, X, mask, guess)
    parcel = Parcel.of(X)
    future = submitted(pool, parcel, mask, guess)
    future.add_done_callback(lambda _: parcel.close())
    return future


def submitted(
    pool: ProcessPoolExecutor, X: Array | Parcel, mask: Bools | None, guess: Guess | None
) -> Future[Influence]:  # fmt: skip
    """A run in the queue, which may start a process."""
    with without_the_script():
        return pool.submit(finish, X, mask, guess)


def refused(error: ValueError) -> Future[Influence]:
    """A run that failed before it began."""
    future: Future[Influence] = Future()
    future.set_exception(error)
    return future


def check_length(features: Array, blank: Samples) -> None:
    if len(features) != len(blank.codes):
        raise ValueError(f"X has {len(features)} samples, but y has {len(blank.codes)} labels")


def filled(blank: Samples, features: Array) -> Samples:
    """The samples with the features of a run."""
    check_length(features, blank)
    lengths, exponents = validation.sizes(features)
    return replace(blank, X=features, lengths=lengths, exponents=exponents).counting()


def outcome(future: Future[Influence], number: int) -> Influence:
    """What a worker found; its errors name the run."""
    try:
        return future.result()
    except ValueError as error:
        raise ValueError(f"run {number}: {error}") from error
    except BrokenProcessPool as error:
        raise RuntimeError(f"run {number}: a worker process ended early; it may have run out of memory") from error
    except Exception as error:
        raise RuntimeError(f"run {number}: {type(error).__name__}: {error}") from error


# In the worker processes

_blank: Samples
_C: float


def settle_in(codes: Parcel, C: float) -> None:
    """What a worker does once: remember what all runs share, use one thread, and end when its parent is killed."""
    end_with_the_parent()
    global _blank, _C
    _blank, _C = without_features(np.array(codes.opened())), C
    threads.alone()


def finish(X: Array | Parcel, mask: Bools | None, guess: Guess | None) -> Influence:
    """Solve one run."""
    if isinstance(X, Parcel):
        X = X.opened()
    samples = filled(masked(_blank, mask), validation.owned(validation.features(X, None)))
    needed = classifier.heads_needed(samples.codes, samples.alive)
    if guess is None:
        heads = classifier.from_scratch(samples, _C, needed)
    else:
        heads = classifier.from_guess(samples, _C, needed, guess)
    return Influence(
        np.any([head.influential() for head in heads], axis=0),
        tuple(head.certificate for head in heads),
        np.stack([head.w for head in heads]),
        np.array([head.b for head in heads]),
    )
