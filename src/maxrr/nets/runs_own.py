"""Runs by a training function of the caller's own: one after the other, since it may use all that there is."""

import math
from collections.abc import Generator, Sequence

from maxrr.errors import DataError
from maxrr.nets.own_training import OwnTraining
from maxrr.nets.recipe import Run
from maxrr.nets.task import Tally, Task


def run_in_turn(task: Task, seeds: Sequence[int], tally: Tally) -> Generator[Run]:
    """The runs in the order of the seeds. Of their losses and accuracies nothing is known."""
    assert isinstance(task.recipe, OwnTraining)
    ordered = task.dataset.in_order()
    for seed in seeds:
        seen = ordered if task.rows is None else ordered.select(ordered.ids[task.rows[seed]])
        try:
            network = task.recipe.train(task.network, seen, seed, task.device, task.threads)
        except DataError as error:
            raise DataError(f"the run with seed {seed}: {error}") from error
        tally.trained(seed)
        tally.show()
        yield task.finish(seed, network, math.nan, math.nan)
