"""Runs side by side on the CPU, each in a thread of its own.

PyTorch lets go of the interpreter while it computes, so threads keep all cores busy, and unlike processes they need no
copies of the records and take any network, also one defined in a notebook.
"""

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import nullcontext, suppress
from itertools import islice
from weakref import WeakSet

import torch
from torch import nn

from maxrr.nets import training
from maxrr.nets.pinning import pinned
from maxrr.nets.recipe import Run
from maxrr.nets.records import Records
from maxrr.nets.seeding import DRAWS, begin, drawing
from maxrr.nets.task import Progress, Task

_stops: WeakSet[threading.Event] = WeakSet()


def _stop_all() -> None:
    for stop in _stops:
        stop.set()


# When the interpreter ends with runs still going on, it waits for their threads: ask these to stop first. There is no
# public way to be called before it waits; concurrent.futures uses this one as well.
threading._register_atexit(_stop_all)  # type: ignore[attr-defined]


def run_alongside(
    task: Task, data: Records, seeds: Sequence[int], workers: int, draws: bool, progress: Progress
) -> Iterator[Run]:  # fmt: skip
    """The runs in the order of the seeds, `workers` at a time. Whoever stops asking for them stops the others.

    Networks that draw random numbers take them from a source that this whole process shares: there is one worker
    then, and it works only while the caller waits.
    """
    stop, most = threading.Event(), 1 if draws else 2 * workers  # no more, or results would pile up

    def run(seed: int, network: nn.Module) -> Run:
        rows = None if task.rows is None else task.rows[seed]
        with drawing(seed, DRAWS) if draws else nullcontext():
            loss, accuracy = training.fit(
                network.to(task.device), data.only(rows), task.recipe, seed, stop,
                lambda *news: progress.seen(seed, *news),
            )  # fmt: skip
        return task.finish(seed, network, loss, accuracy)

    _stops.add(stop)
    waiting, ahead = deque[Future[Run]](), iter(seeds)
    with pinned(task.threads):
        pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(task.threads,))
        try:
            while True:
                for seed in islice(ahead, most - len(waiting)):
                    waiting.append(pool.submit(run, seed, begin(task.network, seed)))
                if not waiting:
                    return
                finished = watched(waiting[0], progress)
                waiting.popleft()
                yield finished
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


def watched(future: Future[Run], progress: Progress) -> Run:
    """Wait for a run, showing how far it is."""
    while not future.done():
        with suppress(NotYet):
            future.result(training.GLANCE)
        progress.show()
    progress.show()
    return future.result()
