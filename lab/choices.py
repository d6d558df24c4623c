"""Which of the choices that the paper leaves open explain where our numbers differ from its.

How many classes are told apart by SVMs for two (it says one-vs-rest; scikit-learn's `SVC` is one-vs-one), and how long
the networks were trained (it does not say): both ways of both. Then, with the SVMs and the accuracy that fit, other
ways to train. Each reading ranks the records by itself and goes through what did not match: the support vectors, the
table's cells where only the top 10,000 are kept, and the coverage. The profile `svc` does everything as one of the
readings that come nearest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lab import published
from lab.comparison import Cell, compare
from lab.heads import Bools
from lab.lab import Features, Lab
from lab.parts import Kind
from lab.profiles import DIVIDED, Pixels
from lab.results import Json
from maxrr.core.frequency import ranking_seeds
from maxrr.data import Dataset
from maxrr.nets import Recipe
from maxrr.svm.schemes import Scheme


@dataclass(frozen=True)
class Momentum(Recipe):
    """Stochastic gradient descent with momentum in the place of Adam."""

    @property
    def facts(self) -> Json:
        return super().facts | {"momentum": self.momentum}

    def make_optimiser(self, weights: Sequence[Tensor]) -> torch.optim.Optimizer:
        return torch.optim.SGD(weights, lr=self.lr, momentum=self.momentum)


@dataclass(frozen=True)
class Reading:
    """One way to fill in what the paper leaves open. The trait is what sets it apart, beside heads and epochs."""

    heads: Scheme
    recipe: Recipe
    trait: str = ""
    pixels: Pixels = DIVIDED

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.heads, f"{self.recipe.epochs} epochs", self.trait)))


def readings(lab: Lab) -> list[Reading]:
    """Both schemes of heads for both lengths of training; then other ways to train, to about the same accuracy.

    Lengths are given for a profile whose networks are trained for 18 epochs; they stretch with its own.
    """
    usual = lab.profile.recipe

    def lasting(epochs: int, batches: float = 1.0, lr: float = 1.0) -> Recipe:
        length = max(1, round(usual.epochs * epochs / 18))
        return Recipe(length, round(batches * usual.batch_size), lr * usual.lr)

    def descending(epochs: int, lr: float) -> Reading:
        recipe = lasting(epochs, lr=lr)
        return Reading("one-vs-one", Momentum(recipe.epochs, recipe.batch_size, recipe.lr), f"SGD at {recipe.lr:g}")

    schemes: tuple[Scheme, Scheme] = ("one-vs-rest", "one-vs-one")
    return [
        *(Reading(scheme, lasting(epochs)) for epochs in (18, 11) for scheme in schemes),
        Reading("one-vs-one", lasting(18, batches=2.0), "batches twice as large"),
        Reading("one-vs-one", lasting(8, batches=0.5), "batches half as large"),
        Reading("one-vs-one", lasting(8, lr=2.0), "twice the learning rate"),
        Reading("one-vs-one", lasting(20, lr=0.5), "half the learning rate"),
        Reading("one-vs-one", lasting(8), "standardised pixels", "standardised"),
        descending(14, lr=10.0),
        descending(9, lr=50.0),
    ]


def measure(lab: Lab) -> Json:
    """Every reading beside the paper."""
    results = lab.results("choices")
    cells = {}
    for reading in readings(lab):
        found = results.piece(reading.name, lambda reading=reading: measure_reading(lab, reading))  # type: ignore[misc]
        row = beside_the_paper(found, lab.comparable)
        cells[reading.name] = {quantity: cell.to_json() for quantity, cell in row.items()}
    return results.finish({
        "part": "choices", "title": "What the paper leaves open", "runs": lab.profile.trials, "cells": cells,
    })  # fmt: skip


def beside_the_paper(found: Json, comparable: bool) -> dict[str, Cell]:
    """Quantities of a reading, in the order of the work."""
    papers, table = published.published(), published.table()
    support = papers["support_vector_histogram"]["derived"]["mean_support_per_run"]
    covered = papers["coverage"]["union_of_support_and_core20k"]
    rows: dict[str, tuple[float, Kind]] = {
        "accuracy": (float(np.mean(list(table["No"].values()))), "accuracy"),
        "support vectors a run": (support, "count"),
        "SVM on the top 10k": (table["SVM"]["nontop10k"], "accuracy"),
        "FE on the top 10k": (table["FE"]["nontop10k"], "accuracy"),
        "FE+SVM on the top 10k": (table["FE+SVM"]["nontop10k"], "accuracy"),
        "FE on the top 20k": (table["FE"]["nontop20k"], "accuracy"),
        "core or influential": (covered, "count"),
    }
    return {name: compare(found[name], kind, paper if comparable else None) for name, (paper, kind) in rows.items()}


def measure_reading(lab: Lab, reading: Reading) -> Json:
    """Everything that depends on the reading."""
    lab = lab.with_pixels(reading.pixels)
    runs, scheme = lab.profile.trials, reading.heads
    seeds, others = lab.seeds(runs), ranking_seeds(lab.seed, runs)
    all_: list[Bools | None] = [None] * runs

    def features(seeds: Sequence[int], records: Dataset, piece: str) -> list[Features]:
        return lab.embed(lab.train(seeds, records, recipe=reading.recipe, piece=piece))

    # 1. A ranking of its own, from other networks than those that are looked at.
    ranked = features(others, lab.training, "choices-ranking")
    ranking_heads = list(lab.fit_heads(ranked, all_, scheme))
    ranking = lab.ranking_by(others, ranking_heads)
    small, large = (np.sort(ranking.top(k)) for k in (lab.profile.small, lab.profile.large))
    # 2. The table's column where only the top 10,000 are kept, and coverage.
    full = features(seeds, lab.training, "choices-full")
    few = features(seeds, lab.training.select(small), "choices-small")
    core = features(seeds, lab.training.select(large), "choices-core")
    only_small: list[Bools | None] = [lab.mask(small)] * runs
    solved = list(lab.fit_heads([*full, *few, *core, *full, *few], [*all_ * 3, *only_small * 2], scheme))
    groups = [solved[at : at + runs] for at in range(0, len(solved), runs)]
    return {
        "accuracy": lab.accuracies(full, groups[0]),
        "support vectors a run": [float(heads.influential.sum()) for heads in ranking_heads],
        "SVM on the top 10k": lab.accuracies(full, groups[3]),
        "FE on the top 10k": lab.accuracies(few, groups[1]),
        "FE+SVM on the top 10k": lab.accuracies(few, groups[4]),
        "FE on the top 20k": lab.accuracies(core, groups[2]),
        "core or influential": [float(np.sum(heads.influential | lab.mask(large))) for heads in groups[2]],
    }
