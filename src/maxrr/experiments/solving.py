"""Many heads at once: here where they are small, else on all cores, with the device's help if there is one."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from typing import Any

import numpy as np

from maxrr.experiments.heads import (
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
from maxrr.progress import Report
from maxrr.svm import influential_in, threads
from maxrr.svm.arrays import Array, to_numpy
from maxrr.svm.parcels import Parcel
from maxrr.svm.processes import end_with_the_parent, without_the_script

SMALL = 2**18  # numbers in a run's features: up to here a head is solved before a process would have started
SOLVE: dict[Kind, Callable[[Array, Ints, Bools | None, float], Head]] = {
    "one-vs-rest": solve_one_vs_rest,
    "one-vs-one": solve_one_vs_one,
}


def solve(
    kind: Kind, runs: Sequence[Array], y: Ints, masks: Sequence[Bools | None], report: Report | None = None,
    C: float = 1.0,
) -> Iterator[Head]:  # fmt: skip
    """The head on each of these features, fitted to the records of the mask beside it; None stands for all.

    Neighbours with the same mask, the same array, are solved together where they can be.
    """
    if not runs or np.prod(runs[0].shape) <= SMALL:
        yield from (SOLVE[kind](X, y, mask, C) for X, mask in zip(runs, masks, strict=True))
    elif kind == "one-vs-rest":
        solved = influential_in(runs, y, C=C, masks=masks, report=report)
        for mask, found in zip(masks, solved, strict=True):
            classes, gap = np.unique(y if mask is None else y[mask]), worst(found.certificates)
            yield OneVsRest(classes, found.weights, found.biases, found.mask, gap)
    else:
        yield from in_processes(runs, y, masks, C, report)


def in_processes(
    runs: Sequence[Array], y: Ints, masks: Sequence[Bools | None], C: float, report: Report | None
) -> Iterator[OneVsOne]:  # fmt: skip
    """One-vs-one heads, a core each. Features are copied for those that are under way or next, not for all."""
    labels, most = Parcel.of(y), 2 * threads.cores()
    pool = ProcessPoolExecutor(threads.cores(), get_context("spawn"), initializer=settle_in, initargs=(labels,))
    waiting: deque[Future[OneVsOne]] = deque()
    ahead = zip(runs, masks, strict=True)
    try:
        for done in range(1, len(runs) + 1):
            for X, mask in islice(ahead, most - len(waiting)):
                parcel = Parcel.of(np.asarray(to_numpy(X)))
                with without_the_script():
                    future = pool.submit(solve_there, parcel, mask, C)
                future.add_done_callback(lambda _, parcel=parcel: parcel.close())  # type: ignore[misc]
                waiting.append(future)
            yield waiting.popleft().result()
            if report is not None:
                report("one-vs-one heads", done, len(runs))
    finally:
        pool.shutdown(cancel_futures=True)
        labels.close()


# In the worker processes

_labels: Any = None


def settle_in(labels: Parcel) -> None:
    """What a worker does once: remember the labels, use one thread, and end when its parent is killed."""
    global _labels
    end_with_the_parent()
    _labels = np.array(labels.opened())
    threads.alone()


def solve_there(X: Parcel, mask: Bools | None, C: float) -> OneVsOne:
    return solve_one_vs_one(np.array(X.opened()), _labels, mask, C)
