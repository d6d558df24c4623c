"""Runs side by side on the CPU, each in a thread of its own.

PyTorch lets go of the interpreter while it computes, so threads keep all cores busy, and unlike processes they need no
copies of the records and take any network, also one defined in a notebook.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext

import torch
from torch import nn

from maxrr.nets import training
from maxrr.nets.pinning import pinned
from maxrr.nets.recipe import Run
from maxrr.nets.records import Records
from maxrr.nets.seeding import DRAWS, begin, drawing
from maxrr.nets.task import Progress, Task
from maxrr.parallel import Threads


def run_alongside(
    task: Task, data: Records, seeds: Sequence[int], workers: int, draws: bool, progress: Progress
) -> Iterator[Run]:  # fmt: skip
    """The runs in the order of the seeds, `workers` at a time. Whoever stops asking for them stops the others.

    Networks that draw random numbers take them from a source that this whole process shares: there is one worker
    then, and it works only while the caller waits.
    """
    stop = threading.Event()

    def run(started: tuple[int, nn.Module]) -> Run:
        seed, network = started
        torch.set_num_threads(task.threads)  # PyTorch keeps the number for every thread
        rows = None if task.rows is None else task.rows[seed]
        with drawing(seed, DRAWS) if draws else nullcontext():
            loss, accuracy = training.fit(
                network.to(task.device), data.only(rows), task.recipe, seed, stop,
                lambda *news: progress.seen(seed, *news),
            )  # fmt: skip
        return task.finish(seed, network, loss, accuracy)

    engine = Threads(workers, 0 if draws else None, progress.show, stop)
    with pinned(task.threads), closing(engine.map(run, ((seed, begin(task.network, seed)) for seed in seeds))) as runs:
        yield from runs
