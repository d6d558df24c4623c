"""Networks of one kind that step together, and steps down any loss: what all techniques are made of.

On a graphics processor a hundred networks step hardly slower than one. Elsewhere, and where a network has running
statistics, they step one after the other, each in a stack of its own. A network never sees the others: its batches and
its draws follow from its own seed.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from maxrr.data import Dataset
from maxrr.nets.inputs import Records, records
from maxrr.nets.recipe import Recipe, batch_sizes
from maxrr.nets.seeding import shuffle
from maxrr.nets.stacked import many_convolutions

Weights = dict[str, Tensor]
Schedule = Literal["constant", "cosine", "linear"]


class Stack:
    """Copies of networks, with their weights as (networks, …); training mode."""

    def __init__(self, networks: Sequence[nn.Module], device: torch.device) -> None:
        self.template = copy.deepcopy(networks[0]).to(device).train()
        weights, state = stack_module_state(list(networks))
        self.weights = {name: value.detach().to(device).clone().requires_grad_() for name, value in weights.items()}
        self.state = {name: value.detach().to(device).clone() for name, value in state.items()}
        self.count, self.device = len(networks), device

    def scores(self, inputs: Tensor, weights: Weights | None = None) -> Tensor:
        """Scores (networks, batch, classes) of each network's own batch, perhaps with other weights."""
        given = self.weights if weights is None else weights
        if self.count == 1:
            alone = {name: value[0] for name, value in (given | self.state).items()}
            return torch.as_tensor(functional_call(self.template, alone, (inputs[0],)))[None]
        with many_convolutions(self.device, inputs.dtype):
            return torch.as_tensor(vmap(self.one)(given, self.state, inputs))

    def one(self, weights: Weights, state: Weights, inputs: Tensor) -> Tensor:
        """Scores of one network of the stack."""
        found: Tensor = functional_call(self.template, (weights, state), (inputs,))
        return found

    def gradient(self, losses: Tensor) -> Weights:
        """The gradient of each network's own loss."""
        found = torch.autograd.grad(losses.sum(), list(self.weights.values()))
        return dict(zip(self.weights, found, strict=True))

    def kernels(self) -> list[str]:
        """The names of the weights of convolutions."""
        layers = dict(self.template.named_modules())
        return [f"{name}.weight" for name, layer in layers.items() if isinstance(layer, nn.Conv2d)]

    def write_to(self, networks: Sequence[nn.Module]) -> None:
        """Give networks the weights and statistics that they have here."""
        with torch.no_grad():
            for number, network in enumerate(networks):
                for name, value in (*network.named_parameters(), *network.named_buffers()):
                    value.copy_((self.weights if name in self.weights else self.state)[name][number])


@dataclass(frozen=True, eq=False)
class Work:
    """What a technique is given: networks to change in place, the records that stay, and those to forget."""

    stack: Stack
    stay: Records
    leave: Records
    seeds: tuple[int, ...]
    classes: int
    batch: int = 64

    def draws(self, purpose: int) -> list[np.random.Generator]:
        """A source of random numbers for each network."""
        return [np.random.default_rng([seed, purpose]) for seed in self.seeds]

    def rows(self, drawn: Sequence[NDArray[np.int64]]) -> Tensor:
        """Rows (networks, batch) where the networks are."""
        return torch.from_numpy(np.stack(drawn)).to(self.stack.device)

    def batches(self, count: int, epoch: int) -> Iterator[Tensor]:
        """Rows of so many records, in the order of each network's seed."""
        order = self.rows([shuffle(seed, epoch, count) for seed in self.seeds])
        yield from torch.split(order, batch_sizes(Recipe(batch_size=self.batch), count), dim=1)


def descend(
    work: Work, losses: Callable[[Tensor], Tensor], *, count: int, epochs: int, lr: float, first: int = 0,
    schedule: Schedule = "constant", warm_up: float = 0.0, momentum: float = 0.9, weight_decay: float = 0.0,
    reins: Weights | None = None,
) -> None:  # fmt: skip
    """Step down by SGD through so many records.

    Parameters
    ----------
    work
        The networks.
    losses
        Each network's loss on a batch of rows (networks, batch), which are below `count`.
    first
        The number of the first epoch, of which the order of the records follows.
    schedule, warm_up
        How the rate changes; it rises during this share of the steps.
    reins
        By which factors gradients are multiplied, weight decay among them: 0 holds a weight where it is.
    """
    optimiser = torch.optim.SGD(work.stack.weights.values(), lr=lr, momentum=momentum)
    steps = epochs * len(batch_sizes(Recipe(batch_size=work.batch), count))
    step = 0
    for epoch in range(first, first + epochs):
        for rows in work.batches(count, epoch):
            optimiser.param_groups[0]["lr"] = lr * height(step, steps, schedule, warm_up)
            for (name, weights), slope in zip(
                work.stack.weights.items(), work.stack.gradient(losses(rows)).values(), strict=True
            ):
                slope = slope + weight_decay * weights.detach()
                weights.grad = slope if reins is None else slope * reins[name]
            optimiser.step()
            step += 1


def height(step: int, steps: int, schedule: Schedule, warm_up: float) -> float:
    """The share of the full rate at a step.

    >>> [round(height(step, 4, "linear", 0.5), 2) for step in range(4)]
    [0.5, 1.0, 1.0, 0.5]
    """
    rising = round(warm_up * steps)
    if step < rising:
        return (step + 1) / rising
    through = (step - rising) / (steps - rising)
    return {"constant": 1.0, "linear": 1.0 - through, "cosine": 0.5 * (1.0 + math.cos(math.pi * through))}[schedule]


def cross_entropies(scores: Tensor, labels: Tensor) -> Tensor:
    """Each network's mean cross-entropy: scores (networks, batch, classes), labels (networks, batch)."""
    flat = nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none")
    return flat.view_as(labels).mean(1)


Technique = Callable[[Work], None]


def change(
    technique: Technique, networks: Sequence[nn.Module], stay: Dataset, leave: Dataset, seeds: Sequence[int],
    device: torch.device, classes: int,
) -> None:  # fmt: skip
    """Apply a technique to networks, in place."""
    size = len(networks) if device.type == "cuda" and not [*networks[0].buffers()] else 1
    sides = [records(side, networks[0], device) if len(side) else nobody(stay, networks[0], device)
             for side in (stay, leave)]  # fmt: skip
    for first in range(0, len(networks), size):
        some = networks[first : first + size]
        work = Work(Stack(some, device), sides[0], sides[1], tuple(seeds[first : first + size]), classes)
        technique(work)
        work.stack.write_to(some)


def nobody(like: Dataset, network: nn.Module, device: torch.device) -> Records:
    """No records of this kind."""
    return records(like, network, device).only(np.zeros(0, dtype=np.int64))
