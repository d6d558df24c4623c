"""Many networks of one kind in one step.

A GPU needs far more work at once than a batch of one small network gives it. Weights of all networks are stacked, and
one pass of the network over the stack (`torch.func.vmap`) moves every network by one step on its own batch. The
networks do not see each other: a sum of losses has each network's own gradient in its own slice. On CUDA a step is
recorded once and replayed as a graph, so that nothing waits for Python.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from maxrr.nets.inputs import Inputs, Records, arguments
from maxrr.nets.recipe import Recipe, batch_sizes, torch_optimiser
from maxrr.nets.recorded import WARM_UP
from maxrr.nets.seeding import shuffle

Watcher = Callable[[int, float, float], None]
"""Called now and then with the records gone through so far, the mean loss and the accuracy of this epoch."""


class Stack:
    """Networks that step together.

    Parameters
    ----------
    networks : list of torch.nn.Module
        Alike but for their weights; left as they are.
    records : Records
        On the device to train on.
    recipe : Recipe
        Its optimiser and its loss are used; the rest is for `fit`. A schedule or variations of images it cannot follow.
    """

    def __init__(self, networks: Sequence[nn.Module], records: Records, recipe: Recipe) -> None:
        device = records.labels.device
        self.records = records
        self.template = copy.deepcopy(networks[0]).to(device)
        parameters, buffers = stack_module_state(list(networks))
        self.weights = {name: value.detach().to(device) for name, value in parameters.items()}
        self.state = {name: value.to(device) for name, value in buffers.items()}
        for name, value in networks[0].named_parameters():
            self.weights[name].requires_grad_(value.requires_grad)
        trained = [value for value in self.weights.values() if value.requires_grad]
        self.optimiser = torch_optimiser(recipe, trained)
        self.label_smoothing = recipe.label_smoothing
        count = len(networks)
        self.loss_sum = torch.zeros(count, dtype=torch.float64, device=device)
        self.correct = torch.zeros(count, dtype=torch.int64, device=device)
        self.forward = vmap(self._scores)

    def _scores(self, weights: dict[str, Tensor], state: dict[str, Tensor], inputs: Inputs) -> Tensor:
        scores: Tensor = functional_call(self.template, (weights, state), *arguments(inputs))
        return scores

    def step(self, rows: Tensor) -> None:
        """Take one step with every network, each on its own records: rows (networks, batch)."""
        inputs, labels = self.records.batch(rows)
        with many_convolutions(labels.device, self.records.dtype):
            scores = self.forward(self.weights, self.state, inputs)
        losses = F.cross_entropy(
            scores.flatten(0, 1), labels.flatten(), reduction="none", label_smoothing=self.label_smoothing
        ).view_as(labels)
        self.optimiser.zero_grad(set_to_none=True)
        losses.mean(1).sum().backward()
        self.optimiser.step()
        with torch.no_grad():
            self.loss_sum += losses.detach().sum(1, dtype=torch.float64)
            self.correct += (scores.argmax(2) == labels).sum(1)

    def fitted(self) -> Iterator[dict[str, Tensor]]:
        """Yield each network's weights and state, on the CPU."""
        moved = {name: value.detach().cpu() for name, value in (self.weights | self.state).items()}
        for number in range(len(self.loss_sum)):
            yield {name: value[number].clone() for name, value in moved.items()}


def fit(
    stack: Stack, recipe: Recipe, seeds: Sequence[int], seen: Watcher, rows: NDArray[np.int64] | None = None
) -> tuple[list[float], list[float]]:
    """Train a stack; returns every network's loss and accuracy over the last epoch.

    Where networks see only some of the records, `rows` (networks × records that one sees) says which.
    """
    device = stack.loss_sum.device
    count = len(stack.records) if rows is None else rows.shape[1]
    *full, last = batch_sizes(recipe, count)
    steps: list[tuple[Callable[[int], None], Tensor]] = []
    for number, size in ((len(full), recipe.batch_size), (1, last)):
        if number:
            batches = torch.zeros(number, len(seeds), size, dtype=torch.int64, device=device)
            steps.append((stepper(stack, batches), batches))
    for epoch in range(recipe.epochs):
        shuffles = np.stack([shuffle(seed, epoch, count) for seed in seeds])
        order = torch.from_numpy(shuffles if rows is None else np.take_along_axis(rows, shuffles, 1)).to(device)
        stack.loss_sum.zero_(), stack.correct.zero_()
        first = 0
        for advance, batches in steps:
            number, _, size = batches.shape
            batches.copy_(order[:, first : first + number * size].unflatten(1, (number, size)).transpose(0, 1))
            first += number * size
            for at in range(number):
                advance(at)
        loss, accuracy = stack.loss_sum.cpu() / count, stack.correct.cpu().double() / count
        seen((epoch + 1) * count, float(loss.mean()), float(accuracy.mean()))
    return loss.tolist(), accuracy.tolist()


def stepper(stack: Stack, batches: Tensor) -> Callable[[int], None]:
    """A function that does step number i on batches[i]."""
    if batches.device.type == "cuda":
        return StepGraph(stack, batches)
    return lambda number: stack.step(batches[number])


class StepGraph:
    """A recorded step on CUDA, which reads the number of the next batch by itself and moves it on.

    It knows what it reads by address, so that must live as long as it does.
    """

    def __init__(self, stack: Stack, batches: Tensor) -> None:
        self.batches = batches
        self.position = torch.zeros(1, dtype=torch.int64, device=batches.device)
        self.graph = torch.cuda.CUDAGraph()
        with untouched(stack):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(WARM_UP):
                    stack.step(batches[0])
            torch.cuda.current_stream().wait_stream(side)
            stack.optimiser.zero_grad(set_to_none=True)
            with torch.cuda.graph(self.graph):
                stack.step(batches.index_select(0, self.position)[0])
                self.position += 1
                self.position %= len(batches)

    def __call__(self, number: int) -> None:
        self.graph.replay()


@contextmanager
def untouched(stack: Stack) -> Iterator[None]:
    """Restore everything that the steps of a block change: weights, running statistics, the optimiser's memory."""
    values = list((stack.weights | stack.state).values())
    kept = [value.detach().clone() for value in values]
    yield
    with torch.no_grad():
        for value, before in zip(values, kept, strict=True):
            value.copy_(before)
        for memory in stack.optimiser.state.values():
            for value in memory.values():
                value.zero_()


def many_convolutions(device: torch.device, dtype: torch.dtype) -> AbstractContextManager[object]:
    """Use our kernels for the convolutions of many networks, where they can run: float32 on CUDA, with Triton."""
    if device.type != "cuda" or dtype != torch.float32:
        return nullcontext()
    try:
        from maxrr.nets.convolutions import ManyConvolutions
    except ImportError:  # no Triton: PyTorch's grouped convolutions, which are slower
        return nullcontext()
    return ManyConvolutions()
