"""Many heads at once: here where they are small, else on all cores, with the device's help if there is one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import numpy as np

from maxrr.paper.heads import (
    Bools,
    Head,
    Ints,
    Kind,
    OneVsOne,
    OneVsRest,
    solve_one_vs_one,
    solve_one_vs_rest,
    worst,
)
from maxrr.parallel import Processes, cores
from maxrr.progress import Progress
from maxrr.svm import influential_in
from maxrr.svm.arrays import Array, to_numpy

SMALL = 2**18  # numbers in a run's features: up to here a head is solved before a process would have started
SOLVE: dict[Kind, Callable[[Array, Ints, Bools | None, float], Head]] = {
    "one-vs-rest": solve_one_vs_rest,
    "one-vs-one": solve_one_vs_one,
}


def solve(
    kind: Kind, runs: Sequence[Array], y: Ints, masks: Sequence[Bools | None], progress: Progress | None = None,
    C: float = 1.0,
) -> Iterator[Head]:  # fmt: skip
    """The head on each of these features, fitted to the records of the mask beside it; None stands for all.

    Neighbours with the same mask, the same array, are solved together where they can be.
    """
    if not runs or np.prod(runs[0].shape) <= SMALL:
        yield from (SOLVE[kind](X, y, mask, C) for X, mask in zip(runs, masks, strict=True))
    elif kind == "one-vs-rest":
        solved = influential_in(runs, y, C=C, masks=masks, progress=progress)
        for mask, found in zip(masks, solved, strict=True):
            classes, gap = np.unique(y if mask is None else y[mask]), worst(found.certificates)
            yield OneVsRest(classes, found.weights, found.biases, found.mask, gap)
    else:
        yield from in_processes(runs, y, masks, C, progress)


def in_processes(
    runs: Sequence[Array], y: Ints, masks: Sequence[Bools | None], C: float, progress: Progress | None
) -> Iterator[OneVsOne]:  # fmt: skip
    """One-vs-one heads, one per core. Features are copied for those that are under way or next, not for all."""
    jobs = ((np.asarray(to_numpy(X)), mask) for X, mask in zip(runs, masks, strict=True))
    with closing(Processes(ahead=cores()).map(solve_there, jobs, y, C)) as solved:
        for done, head in enumerate(solved, 1):
            yield head
            if progress is not None:
                progress("one-vs-one heads", done, len(runs))


def solve_there(job: tuple[Array, Bools | None], y: Ints, C: float) -> OneVsOne:
    """In the worker process."""
    X, mask = job
    return solve_one_vs_one(np.array(X), np.array(y), mask, C)
