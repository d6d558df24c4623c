"""Networks on different cores in one stack, several of them with the same seed.

In `maxrr.nets.train_many` each network has a seed of its own. Cores are compared seed by seed, so here a seed has a
network for every core. On a graphics processor a hundred networks step hardly slower than ten: those of all cores step
together. On a CPU they are trained core by core, to the same weights but for rounding.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab.heads import Bools
from lab.lab import Lab, embed_on_device
from maxrr.nets import stacked
from maxrr.nets.inputs import records
from maxrr.nets.recipe import Recipe
from maxrr.nets.runs import AT_ONCE
from maxrr.nets.seeding import begin

Networks = list[torch.nn.Module]
Look = Callable[[int, Networks], None]
"""Called after an epoch with its number and the networks as they are then."""


def train_on_cores(lab: Lab, cores: Sequence[NDArray[Any]], seeds: Sequence[int]) -> Iterator[torch.nn.Module]:
    """For each core the networks of all seeds, core after core. The cores have equally many records."""
    if lab.device.type == "cpu":
        for core in cores:
            yield from lab.train(seeds, lab.training.select(np.sort(core)))
        return
    pairs = [(seed, np.sort(lab.training.rows(core))) for core in cores for seed in seeds]
    at_once = math.ceil(len(pairs) / math.ceil(len(pairs) / AT_ONCE))
    for first in range(0, len(pairs), at_once):
        group = pairs[first : first + at_once]
        yield from train_together(lab, [seed for seed, _ in group], np.stack([rows for _, rows in group]))


def train_together(
    lab: Lab, seeds: Sequence[int], rows: NDArray[np.int64] | None = None, recipe: Recipe | None = None,
    look: Look | None = None,
) -> Networks:  # fmt: skip
    """Networks of these seeds, each on its own rows of the training records; None stands for all."""
    how, networks = recipe or lab.profile.recipe, [begin(lab.network, seed) for seed in seeds]
    stack = stacked.Stack(networks, records(lab.training, networks[0], lab.device), how)
    count = len(lab.training) if rows is None else rows.shape[1]

    def seen(through: int, loss: float, accuracy: float) -> None:
        if lab.progress is not None:
            what = f"training {len(seeds)} networks"
            lab.progress(what, through, how.epochs * count, loss=loss, accuracy=accuracy)
        if look is not None:
            look(through // count, copy_weights(networks, stack))

    losses, _ = stacked.fit(stack, how, seeds, seen, rows)
    if not np.isfinite(losses).all():
        raise ValueError(f"the run with seed {seeds[int(np.argmin(np.isfinite(losses)))]} diverged")
    return copy_weights(networks, stack)


def copy_weights(networks: Networks, stack: stacked.Stack) -> Networks:
    """The networks with the weights that they have in the stack now."""
    for network, state in zip(networks, stack.fitted(), strict=True):
        with torch.no_grad():
            for name, value in chain(network.named_parameters(), network.named_buffers()):
                value.copy_(state[name])
        network.eval()
    return networks


def find_right(lab: Lab, seeds: Sequence[int], looks: Sequence[int]) -> list[Bools]:
    """Which training records networks get right after these epochs of one training: (networks, records) each."""
    found: list[Bools] = []

    def look(epoch: int, networks: Networks) -> None:
        if epoch in looks:
            scores = (embed_on_device(network, lab.on_device[0], lab.training.ids) for network in networks)
            found.append(np.stack([given.argmax(1).cpu().numpy() == lab.training.labels for given in scores]))

    train_together(lab, seeds, recipe=replace(lab.profile.recipe, epochs=max(looks)), look=look)
    return found
