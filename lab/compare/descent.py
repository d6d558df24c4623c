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
from maxrr.nets.recorded import WARM_UP
from maxrr.nets.seeding import shuffle
from maxrr.nets.stacked import many_convolutions

Weights = dict[str, Tensor]
Schedule = Literal["constant", "cosine", "linear"]


class Stack:
    """Copies of networks, with their weights as (networks, …); training mode."""

    def __init__(self, networks: Sequence[nn.Module], device: torch.device) -> None:
        self.template = copy.deepcopy(networks[0]).to(device).train()
        self.still = copy.deepcopy(networks[0]).to(device).eval()
        weights, state = stack_module_state(list(networks))
        self.weights = {name: value.detach().to(device).clone().requires_grad_() for name, value in weights.items()}
        self.state = {name: value.detach().to(device).clone() for name, value in state.items()}
        self.count, self.device = len(networks), device

    def scores(self, inputs: Tensor, weights: Weights | None = None, still: bool = False) -> Tensor:
        """Scores (networks, batch, classes) of each network's own batch, perhaps with other weights.

        A network that is still is in evaluation mode: it moves no running statistics.
        """
        given, network = self.weights if weights is None else weights, self.still if still else self.template
        if self.count == 1:
            alone = {name: value[0] for name, value in (given | self.state).items()}
            return torch.as_tensor(functional_call(network, alone, (inputs[0],)))[None]

        def one(weights: Weights, state: Weights, inputs: Tensor) -> Tensor:
            found: Tensor = functional_call(network, (weights, state), (inputs,))
            return found

        with many_convolutions(self.device, inputs.dtype):
            return torch.as_tensor(vmap(one)(given, self.state, inputs))

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

    def batches(self, count: int, epoch: int, batch: int | None = None) -> Iterator[Tensor]:
        """Rows of so many records, in the order of each network's seed."""
        order = self.rows([shuffle(seed, epoch, count) for seed in self.seeds])
        yield from torch.split(order, batch_sizes(Recipe(batch_size=batch or self.batch), count), dim=1)


class Descent:
    """Steps down losses by SGD with momentum, which is kept from one of them to the next.

    Parameters
    ----------
    work
        The networks.
    reins
        By which factors gradients are multiplied; with one of 0 and no decay a weight stays where it is.
    """

    def __init__(
        self, work: Work, *, momentum: float = 0.9, weight_decay: float = 0.0, reins: Weights | None = None
    ) -> None:  # fmt: skip
        # Leaves of their own in the same memory: gradients that somebody took before cannot stay in a recording.
        work.stack.weights = {name: weights.detach().requires_grad_() for name, weights in work.stack.weights.items()}
        self.work, self.momentum, self.weight_decay, self.reins = work, momentum, weight_decay, reins
        self.speeds = {name: torch.zeros_like(weights) for name, weights in work.stack.weights.items()}
        self.rate = torch.zeros((), device=work.stack.device)
        self.steps: dict[Callable[..., Tensor], Callable[..., None]] = {}  # recorded once for each of the losses

    def down(
        self, losses: Callable[..., Tensor], *, count: int, epochs: int, lr: float, first: int = 0, beside: int = 0,
        schedule: Schedule = "constant", warm_up: float = 0.0, batch: int | None = None,
    ) -> None:  # fmt: skip
        """Go through so many records.

        Parameters
        ----------
        losses
            Each network's loss on a batch of rows (networks, batch), which are below `count`. On CUDA it is recorded
            once for each size of a batch, and replayed.
        first
            The number of the first epoch, of which the order of the records follows.
        beside
            Of how many other records each step has a batch, too, over and over: a second argument of `losses`.
        schedule, warm_up
            How the rate changes; it rises during this share of the steps.
        batch
            The size of batches; by default that of the work.
        """
        others = forever(self.work, beside) if beside else None
        take = self.step_of(losses)
        steps = epochs * len(batch_sizes(Recipe(batch_size=batch or self.work.batch), count))
        number = 0
        for epoch in range(first, first + epochs):
            for rows in self.work.batches(count, epoch, batch):
                self.rate.fill_(lr * height(number, steps, schedule, warm_up))
                take(rows, *([] if others is None else [next(others)]))
                number += 1

    def step_of(self, losses: Callable[..., Tensor]) -> Callable[..., None]:
        """A step down these losses."""
        stack = self.work.stack

        def step(*rows: Tensor) -> None:
            slopes = stack.gradient(losses(*rows))
            with torch.no_grad():
                for name, weights in stack.weights.items():
                    slope = slopes[name] if self.reins is None else slopes[name] * self.reins[name]
                    self.speeds[name].mul_(self.momentum).add_(slope + self.weight_decay * weights)
                    weights.sub_(self.rate * self.speeds[name])

        if losses not in self.steps:
            moved = [*stack.weights.values(), *stack.state.values(), *self.speeds.values()]
            self.steps[losses] = Replayed(step, moved) if stack.device.type == "cuda" else step
        return self.steps[losses]


def forever(work: Work, count: int) -> Iterator[Tensor]:
    """Batches of so many records, over and over."""
    epoch = 0
    while True:
        yield from work.batches(count, epoch)
        epoch += 1


class Replayed:
    """Steps on CUDA, each recorded when the first rows of its sizes come, and replayed then: nothing waits for Python.

    Parameters
    ----------
    step
        What is done with rows.
    moved
        All that it changes in place: put back after the steps that a recording takes.
    """

    def __init__(self, step: Callable[..., None], moved: list[Tensor]) -> None:
        self.step, self.moved = step, moved
        self.known: dict[tuple[int, ...], tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...]]] = {}

    def __call__(self, *rows: Tensor) -> None:
        sizes = tuple(each.shape[1] for each in rows)
        if sizes not in self.known:
            self.known[sizes] = self.record(tuple(each.clone() for each in rows))
        graph, held = self.known[sizes]
        for mine, new in zip(held, rows, strict=True):
            mine.copy_(new)
        graph.replay()

    def record(self, rows: tuple[Tensor, ...]) -> tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...]]:
        """Record a step on rows that are then read from where these are."""
        kept = [value.detach().clone() for value in self.moved]
        graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self.step(*rows)
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            self.step(*rows)
        with torch.no_grad():
            for value, before in zip(self.moved, kept, strict=True):
                value.copy_(before)
        return graph, rows


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
