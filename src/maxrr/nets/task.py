"""What the runs of a training have in common, and how far they are."""

import math
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxrr.data import Dataset
from maxrr.nets.own_training import OwnTraining, Training
from maxrr.nets.probe import taken_over
from maxrr.nets.recipe import Environment, Run
from maxrr.nets.run_store import RunStore
from maxrr.nets.seeding import Network, begin
from maxrr.progress import Progress

Seen = Callable[[int, float, float], None]
"""Called now and then with the records gone through so far, the mean loss and the accuracy of this epoch."""


@dataclass(frozen=True)
class Task:
    """A training that is repeated for many seeds."""

    network: Network
    dataset: Dataset
    recipe: Training
    device: torch.device
    threads: int  # of each run on the CPU
    runs: RunStore | None  # where finished ones are stored
    rows: Mapping[int, NDArray[np.int64]] | None = None  # what each seed's run sees, in the order of ids; None: all
    tell: bool = True  # warn where runs could not go on side by side, or step together

    @property
    def count(self) -> int:
        """How many records a run sees, the same for all; or the fewest that one does, where they see parts."""
        return len(self.dataset) if self.rows is None else min(map(len, self.rows.values()))

    def lengths(self, seeds: Sequence[int]) -> dict[int, int]:
        """How many records each of these runs goes through, as often as it does."""
        seen = {seed: len(self.dataset) if self.rows is None else len(self.rows[seed]) for seed in seeds}
        return {seed: self.recipe.epochs * count for seed, count in seen.items()}

    def finish(self, seed: int, network: nn.Module, loss: float, accuracy: float) -> Run:
        """Return the run of a trained network, as it comes back from a file; with a folder, it is on the disk then."""
        known = math.isfinite(loss) or isinstance(self.recipe, OwnTraining)  # which does not tell
        if not (known and all(weights.isfinite().all() for weights in network.parameters())):
            raise ValueError(f"the run with seed {seed} diverged (loss {loss:g}): try a smaller learning rate")
        kept = taken_over(network, begin(self.network, seed), self.dataset.shape, self.dataset.inputs.dtype)
        run = Run(seed, kept, loss, accuracy, Environment.here(self.device, self.threads))
        if self.runs is not None:
            self.runs.add(run)
        return run


@dataclass
class Tally:
    """How far all runs are together, in records gone through."""

    progress: Progress | None
    lengths: Mapping[int, int]  # how many records each run goes through, by its seed
    stored: Collection[int] = ()  # the seeds of runs that were on the disk before
    through: dict[int, int] = field(default_factory=dict)
    numbers: dict[int, tuple[float, float]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    shown: int = -1

    def seen(self, seed: int, through: int, loss: float, accuracy: float) -> None:
        """Note how far a run is. Called from whichever thread it is in."""
        with self.lock:
            self.through[seed], self.numbers[seed] = through, (loss, accuracy)

    def trained(self, seed: int) -> None:
        """Note that a run is done of which nothing else is known."""
        with self.lock:
            self.through[seed] = self.lengths[seed]

    def finished(self, run: Run) -> None:
        """Note that a run is done, which went on elsewhere."""
        if math.isnan(run.loss):
            self.trained(run.seed)
        else:
            self.seen(run.seed, self.lengths[run.seed], run.loss, run.accuracy)

    def show(self) -> None:
        """Call `progress`, with means over the runs in progress, or at the end over all."""
        total, stored = sum(self.lengths.values()), sum(self.lengths[seed] for seed in self.stored)
        with self.lock:
            done = stored + sum(self.through.values())
            if self.progress is None or done <= self.shown:  # less where memory ran out and a group begins anew
                return
            self.shown = done
            going = [seed for seed, gone in self.through.items() if gone < self.lengths[seed]] or list(self.through)
            numbers = [self.numbers[seed] for seed in going if seed in self.numbers]
        what = "training" if len(self.lengths) == 1 else f"training {len(self.lengths)} networks"
        if numbers:
            loss, accuracy = (sum(values) / len(values) for values in zip(*numbers, strict=True))
            self.progress(what, done, total, loss=loss, accuracy=accuracy)
        else:
            self.progress(what, done, total)
