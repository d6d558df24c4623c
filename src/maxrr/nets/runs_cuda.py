"""Runs that step together on CUDA, as many at a time as its memory holds."""

from collections.abc import Generator, Sequence
from itertools import chain

import numpy as np
import torch

from maxrr.nets import stacked
from maxrr.nets.recipe import Recipe, Run
from maxrr.nets.records import Records
from maxrr.nets.seeding import begin
from maxrr.nets.task import Tally, Task

AT_ONCE = 100  # more bring no more speed


def run_together(task: Task, data: Records, seeds: Sequence[int], tally: Tally) -> Generator[Run]:
    """The runs in the order of the seeds. Where memory runs out, fewer at a time."""
    at_once, first = AT_ONCE, 0
    while first < len(seeds):
        group = seeds[first : first + at_once]
        try:
            finished = run_group(task, data, group, tally)
        except torch.cuda.OutOfMemoryError:
            if len(group) == 1:
                raise
            at_once = max(1, len(group) // 2)
            torch.cuda.empty_cache()
            continue
        first += len(group)
        yield from finished


def run_group(task: Task, data: Records, seeds: Sequence[int], tally: Tally) -> list[Run]:
    """Some runs, from beginning to end."""
    networks, recipe = [begin(task.network, seed) for seed in seeds], task.recipe
    assert isinstance(recipe, Recipe)

    def seen(through: int, loss: float, accuracy: float) -> None:
        for seed in seeds:
            tally.seen(seed, through, loss, accuracy)
        tally.show()

    stack = stacked.Stack(networks, data, recipe)
    rows = None if task.rows is None else np.stack([task.rows[seed] for seed in seeds])
    losses, accuracies = stacked.fit(stack, recipe, seeds, seen, rows)
    runs, errors = [], []
    for seed, network, state, loss, accuracy in zip(
        seeds, networks, stack.fitted(), losses, accuracies, strict=True
    ):  # fmt: skip
        with torch.no_grad():
            for name, value in chain(network.named_parameters(), network.named_buffers()):
                value.copy_(state[name])
        try:
            runs.append(task.finish(seed, network, loss, accuracy))
        except ValueError as error:  # this one diverged; the others shall not be lost
            errors.append(error)
    if errors:
        raise errors[0]
    return runs
