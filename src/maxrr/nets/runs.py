"""The runs of a training: what they have in common, how far they are, and how they are carried out.

On the CPU each network takes its own steps, several of them side by side, one thread each. PyTorch lets go of the
interpreter while it computes, so threads keep all cores busy, and unlike processes they need no copies of the records
and take any network, also one defined in a notebook. On CUDA this is the way for networks that cannot step together.
"""

import math
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from maxrr.data import Dataset
from maxrr.errors import DataError, TrainingMissing
from maxrr.nets import stacked
from maxrr.nets.inputs import Inputs, Records, call
from maxrr.nets.networks import last_linear
from maxrr.nets.probe import with_weights_of
from maxrr.nets.recipe import Environment, Recipe, Run, Variations, batch_sizes, check_images, optimiser_of, rate_at
from maxrr.nets.recorded import Step, recorded
from maxrr.nets.seeding import (
    Network,
    all_drawing,
    as_asked,
    begin,
    is_frozen,
    pinned,
    random_states,
    repeatable,
    shuffle,
)
from maxrr.nets.stacked import Watcher
from maxrr.nets.training_function import OwnTraining, Training
from maxrr.parallel.engine import Engine, InProcess, Threads
from maxrr.plain_text import first_few
from maxrr.progress import Progress


@dataclass(frozen=True)
class Task:
    """A training that is repeated for many seeds."""

    network: Network
    dataset: Dataset
    recipe: Training
    device: torch.device
    threads: int  # of each run on the CPU
    rows: Mapping[int, NDArray[np.int64]] | None = None  # what each seed's run sees, in the order of ids; None: all
    tell: bool = True  # warn where runs could not go on side by side, or step together

    @property
    def count(self) -> int:
        """How many records a run sees, the same for all; or the fewest that one does, where they see parts."""
        return len(self.dataset) if self.rows is None else min(map(len, self.rows.values()))

    def lengths(self, seeds: Sequence[int]) -> dict[int, int]:
        """Return how many records each run goes through, over all epochs."""
        seen = {seed: len(self.dataset) if self.rows is None else len(self.rows[seed]) for seed in seeds}
        return {seed: self.recipe.epochs * count for seed, count in seen.items()}

    def finish(self, seed: int, network: nn.Module, loss: float, accuracy: float) -> Run:
        """Return the run of a trained network, as it comes back from a file."""
        known = math.isfinite(loss) or isinstance(self.recipe, OwnTraining)  # which does not tell
        if not (known and all(weights.isfinite().all() for weights in network.parameters())):
            raise ValueError(f"the run with seed {seed} diverged (loss {loss:g}): try a smaller learning rate")
        kept = with_weights_of(network, begin(self.network, seed), self.dataset.shape, self.dataset.inputs.dtype)
        return Run(seed, kept, loss, accuracy, Environment.here(self.device, self.threads))


@dataclass
class Tally:
    """How far all runs are together, in records gone through."""

    progress: Progress | None
    lengths: Mapping[int, int]  # how many records each run goes through, by its seed
    through: dict[int, int] = field(default_factory=dict)
    numbers: dict[int, tuple[float, float]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    shown: int = -1

    def seen(self, seeds: Sequence[int], through: int, loss: float, accuracy: float) -> None:
        """Note how far runs are, in whichever thread they are, and show it. Losses that are not known are NaN."""
        with self.lock:
            for seed in seeds:
                self.through[seed] = through
                if not math.isnan(loss):
                    self.numbers[seed] = loss, accuracy
            self.show()

    def finished(self, run: Run) -> None:
        """Note that a run is done, and show it."""
        self.seen([run.seed], self.lengths[run.seed], run.loss, run.accuracy)

    def show(self) -> None:
        """Call `progress`, with means over the runs in progress, or at the end over all."""
        total, done = sum(self.lengths.values()), sum(self.through.values())
        if self.progress is None or done <= self.shown:  # less where memory ran out and a group begins anew
            return
        self.shown = done
        going = [seed for seed, gone in self.through.items() if gone < self.lengths[seed]] or list(self.through)
        known = [self.numbers[seed] for seed in going if seed in self.numbers]
        means = dict(zip(("loss", "accuracy"), np.mean(known, axis=0).tolist(), strict=True)) if known else {}
        what = "training" if len(self.lengths) == 1 else f"training {len(self.lengths)} networks"
        self.progress(what, done, total, **means)


GLANCE = 0.2  # seconds between two looks at how far a run is


class Stopped(Exception):
    """Raised in a run that was asked to stop."""


def run_side_by_side(
    task: Task, data: Records, seeds: Sequence[int], workers: int, draws: bool, tally: Tally
) -> Generator[Run]:
    """Yield the runs in the order of the seeds, `workers` at a time. Closing the generator stops all of them.

    Networks that draw random numbers take them from sources that this whole process shares: they are trained in the
    caller's thread, while it waits. So is one alone, which may begin to draw later than in its first step. Where one of
    several does, those that did not end before it did are trained again so.
    """
    stop, recipe, alone = threading.Event(), task.recipe, draws or len(seeds) == 1
    assert isinstance(recipe, Recipe)

    def run(started: tuple[int, nn.Module]) -> Run:
        seed, network = started
        torch.set_num_threads(task.threads)  # PyTorch keeps the number for every thread
        rows = None if task.rows is None else task.rows[seed]
        settings = repeatable() if task.device.type == "cuda" else nullcontext()
        with settings, as_asked(task.device), all_drawing(seed) if alone else nullcontext():
            loss, accuracy = fit(
                network.to(task.device), data.only(rows), recipe, seed, stop,
                lambda *news: tally.seen([seed], *news),
            )  # fmt: skip
        return task.finish(seed, network, loss, accuracy)

    engine: Engine = InProcess() if alone else Threads(workers, stop)
    started = ((seed, hold(begin(task.network, seed), recipe)) for seed in seeds)
    before, ended = random_states(task.device), 0
    with pinned(task.threads), closing(engine.map(run, started)) as runs:
        for done in runs:
            if not alone and random_states(task.device) != before:
                break
            ended += 1
            yield done
    if ended < len(seeds):
        yield from run_side_by_side(task, data, seeds[ended:], 1, True, tally)


def hold(network: nn.Module, recipe: Recipe) -> nn.Module:
    """Set a network so that training leaves frozen layers and kept statistics as they are."""
    for part in recipe.frozen:
        names = [name for name, _ in network.named_modules()]
        if part not in names:
            raise DataError(f"frozen names {part!r:.80}, and the network's layers are {first_few(names[1:])}")
        network.get_submodule(part).requires_grad_(False)
    if not any(weights.requires_grad for weights in network.parameters()):
        raise DataError(f"frozen is {first_few(recipe.frozen)}, and no weights are left to train")
    for name, layer in network.named_modules():
        kept = recipe.batch_norm == "kept" and isinstance(layer, nn.modules.batchnorm._BatchNorm)
        layer.training = layer.training and not kept and not is_frozen(network, name)
    return network


def fit(
    network: nn.Module, records: Records, recipe: Recipe, seed: int, stop: threading.Event, seen: Watcher
) -> tuple[float, float]:
    """Train a network in place; returns its loss and accuracy over the last epoch.

    Raises
    ------
    Stopped
        When `stop` is set.
    """
    count, device = len(records), records.labels.device
    groups = groups_of(network, recipe)
    check_images(recipe.augment, records.inputs)
    sizes, step = batch_sizes(recipe, count), 0
    steps = recipe.epochs * len(sizes)
    loss_sum, correct = torch.zeros((), dtype=records.dtype, device=device), torch.zeros((), device=device)

    def step_on(inputs: Inputs, labels: Tensor) -> None:
        with computing_in(recipe.precision, device):
            scores = call(network, inputs)
            loss = F.cross_entropy(scores, labels, label_smoothing=recipe.label_smoothing)
        torch.clear_autocast_cache()  # of these weights in the shorter type: within another block it would be kept
        loss.backward()
        loss_sum.add_(loss.detach(), alpha=len(labels))
        correct.add_((scores.detach().argmax(1) == labels).sum())

    compute: Step = step_on
    if device.type == "cuda":
        compute = recorded(step_on, network, *records.batch(torch.arange(sizes[0], device=device)))
    last_look = time.monotonic()
    for epoch in range(recipe.epochs):
        order = torch.from_numpy(shuffle(seed, epoch, count)).to(device)
        varied = Variations.drawn(recipe.augment, seed, epoch, count, device) if recipe.augment else None
        loss_sum.zero_(), correct.zero_()
        through = 0
        for rows in order.split(sizes):
            if stop.is_set():
                raise Stopped
            inputs, labels = records.batch(rows)
            if varied is not None and isinstance(inputs, Tensor):
                inputs = varied.of(inputs, rows)
            for group in groups:
                group.start(step, steps)
            compute(inputs, labels)
            for group in groups:
                group.optimiser.step()
            through, step = through + len(rows), step + 1
            if through == count or time.monotonic() - last_look > GLANCE:
                last_look = time.monotonic()
                seen(epoch * count + through, float(loss_sum) / through, float(correct) / through)
    for weights in network.parameters():
        weights.data, weights.grad = weights.detach().clone(), None
    return float(loss_sum) / count, float(correct) / count


def computing_in(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Let products be computed in a shorter type, where the recipe says so."""
    return nullcontext() if precision == "float32" else torch.autocast(device.type, getattr(torch, precision))


class Group:
    """Weights that are trained at one rate: in one tensor, and their gradients in another, so that a step is one call.

    The recipe has the rate of these weights as `lr`.
    """

    def __init__(self, trained: Sequence[Tensor], recipe: Recipe) -> None:
        flat = torch.cat([weights.detach().flatten() for weights in trained]).requires_grad_()
        self.gradient = flat.grad = torch.zeros_like(flat)
        self.recipe, self.optimiser = recipe, optimiser_of(recipe, flat)
        sizes = [weights.numel() for weights in trained]
        for weights, place, slope in zip(trained, flat.detach().split(sizes), self.gradient.split(sizes), strict=True):
            weights.data = place.view_as(weights)
            weights.grad = slope.view_as(weights)

    def start(self, step: int, steps: int) -> None:
        """Set the rate of a step, and forget the gradient of the step before."""
        if self.recipe.schedule != "constant" or self.recipe.warm_up:
            self.optimiser.param_groups[0]["lr"] = rate_at(self.recipe, step, steps)
        self.gradient.zero_()


def groups_of(network: nn.Module, recipe: Recipe) -> list[Group]:
    """Group the trained weights by their learning rate."""
    trained = [weights for weights in network.parameters() if weights.requires_grad]
    if recipe.body_lr is None:
        return [Group(trained, recipe)]
    last = set(network.get_submodule(last_linear(network)).parameters())
    body, head = ([each for each in trained if (each in last) is there] for there in (False, True))
    rates = (body, recipe.body_lr), (head, recipe.lr)
    return [Group(weights, replace(recipe, lr=rate)) for weights, rate in rates if weights]


# Runs by a training function of the caller's own: one after the other, since it may use all that there is.


def run_in_turn(task: Task, seeds: Sequence[int], tally: Tally) -> Generator[Run]:
    """Yield the runs of a caller's function in the order of the seeds. Their losses and accuracies are not known."""
    assert isinstance(task.recipe, OwnTraining)
    ordered = task.dataset.in_order()
    for seed in seeds:
        seen = ordered if task.rows is None else ordered.select(ordered.ids[task.rows[seed]])
        try:
            network = task.recipe.train(task.network, seen, seed, task.device, task.threads)
        except TrainingMissing:
            raise
        except DataError as error:
            raise DataError(f"the run with seed {seed}: {error}") from error
        run = task.finish(seed, network, math.nan, math.nan)
        tally.finished(run)
        yield run


# Runs that step together on CUDA, as many at a time as its memory holds.


AT_ONCE = 100  # more bring no more speed


def run_together(task: Task, data: Records, seeds: Sequence[int], tally: Tally) -> Generator[Run]:
    """Yield runs that step together, in the order of the seeds; fewer at a time where memory runs out."""
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
    """Train some networks together from beginning to end."""
    networks, recipe = [begin(task.network, seed) for seed in seeds], task.recipe
    assert isinstance(recipe, Recipe)

    stack = stacked.Stack(networks, data, recipe)
    rows = None if task.rows is None else np.stack([task.rows[seed] for seed in seeds])
    with as_asked(task.device):
        losses, accuracies = stacked.fit(stack, recipe, seeds, lambda *news: tally.seen(seeds, *news), rows)
    runs, errors = [], []
    for seed, network, state, loss, accuracy in zip(seeds, networks, stack.fitted(), losses, accuracies, strict=True):
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
