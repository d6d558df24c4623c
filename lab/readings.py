"""Which reading of the paper: pixels, kind of SVM, epochs and batches, judged by support vectors and accuracy alone.

The paper names neither epochs nor batches, and says that pixels are values from 0 to 255. Here all of it is varied on a
grid, with ten runs a reading, the same seeds for all. Networks are trained with a constant rate, so those that are
trained longest pass through the shorter trainings and are looked at there.

The rule, which stood here before any result:

- *Support vectors.* The paper's histogram is of 100 runs. A record that is a support vector in j of them is one in i of
  10 drawn among these with hypergeometric probability; so its histogram gives the one that ten of its runs would show,
  in expectation. The distance is the share of records that would have to move to another number of runs, of those that
  are ever a support vector in ten of the paper's runs: unlike a likelihood it does not take 60,000 records, which the
  same ten networks decide about, for independent.
- *Accuracy.* The distance of the mean from that of the paper's row 'No', the mean of its six numbers.
- *The score* is the root of the sum of both squares, the first in units of 2.5 %, the error that the rule for counts
  gives the paper (`rule`), the second in those of the standard error of its mean of six: how many of the paper's errors
  a reading is away. Both weigh the same. Cells of the table, coverage and verification have no part in it.
- For each kind of SVM the least score is the best; of equal ones that with fewer epochs, then that with larger batches.
- *Noise.* Leaving out one run after the other gives each score a standard error (jackknife), and each score's lead of
  the best one, too, paired by run, since runs share their seeds. A reading is within the noise of the best if the lead
  is not surely above zero (t-test, one-sided at 5 %). A bootstrap would draw runs twice, and a record that is in one
  run would be in two: it widens the histogram at both ends.

On other data than the paper's the score says nothing, and is there so that a small profile goes all the way.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from statistics import fmean
from typing import get_args

import numpy as np

from lab import published
from lab.comparison import compare, half_interval, spread
from lab.heads import Bools, Scheme
from lab.lab import Lab
from lab.profiles import Pixels, Profile
from lab.results import Json
from lab.rule import RELATIVE
from lab.stacking import Networks, train_together
from lab.verification import apart
from maxrr.core.ranking import ranking_seeds

PART = "readings"
PIXELS: tuple[Pixels, ...] = get_args(Pixels)
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
EPOCHS = (3, 5, 8, 12, 18)
BATCHES = (128, 64, 32)  # the cheapest first


@dataclass(frozen=True)
class Reading:
    """One way to fill in what the paper leaves open."""

    pixels: Pixels
    batch_size: int
    heads: Scheme
    epochs: int

    @property
    def training(self) -> str:
        """What the networks of several readings are called that one training passes through."""
        return f"{self.pixels}, batches of {self.batch_size}"

    @property
    def look(self) -> str:
        """What is looked at in this training."""
        return f"{self.heads}, {self.epochs} epochs"

    @property
    def name(self) -> str:
        """
        >>> Reading("raw", 64, "one-vs-one", 5).name
        'raw, batches of 64, one-vs-one, 5 epochs'
        """
        return f"{self.training}, {self.look}"


# In the order in which equal scores are preferred.
GRID = [Reading(pixels, batch, heads, epochs)
        for epochs, batch, pixels, heads in product(EPOCHS, BATCHES, PIXELS, SCHEMES)]  # fmt: skip


def measure(lab: Lab) -> Json:
    """All readings, and the best of each kind of SVM. A piece is a training, with all that is looked at in it."""
    results = lab.results(PART)
    pieces = {}
    for batch, pixels in product(BATCHES, PIXELS):
        name = Reading(pixels, batch, SCHEMES[0], EPOCHS[0]).training
        pieces[name] = results.piece(name, partial(train_and_look, lab, pixels, batch))
    found = {reading: pieces[reading.training][reading.look] for reading in GRID}
    best = {scheme: choose([one for one in GRID if one.heads == scheme], found) for scheme in SCHEMES}
    return results.finish({
        "part": PART, "title": "Readings of the paper", "runs": len(run_seeds(lab)),
        "cells": {reading.name: cells(lab, one) for reading, one in found.items()},
        "scores": {reading.name: judge(one, found[best[reading.heads]]) for reading, one in found.items()},
        "best": {scheme: asdict(reading) | {"name": reading.name} for scheme, reading in best.items()},
    })  # fmt: skip


def profile_of(content: Json, scheme: Scheme, usual: Profile) -> Profile:
    """The profile of the best reading with this kind of SVM: the sizes of another, and a name of its own."""
    best = content["best"][scheme]
    recipe = replace(usual.recipe, epochs=best["epochs"], batch_size=best["batch_size"])
    name = f"reading-{scheme.rpartition('-')[2]}"
    return replace(usual, name=name, heads=scheme, pixels=best["pixels"], recipe=recipe)


# Measuring


def run_seeds(lab: Lab) -> list[int]:
    """The seeds of the runs: the first of the ranking's. With fewer than two there is no error."""
    return ranking_seeds(lab.seed, max(2, lab.profile.trials))


def train_and_look(lab: Lab, pixels: Pixels, batch: int) -> Json:
    """Every length of training under both kinds of SVM: accuracies, and in how many runs records are influential."""
    lab, seeds = lab.with_pixels(pixels), run_seeds(lab)
    found: Json = {}

    def look(epoch: int, networks: Networks) -> None:
        if epoch not in EPOCHS:
            return
        features = lab.embed(iter(networks))
        for scheme in SCHEMES:
            solved = list(lab.fit_heads(features, [None] * len(seeds), scheme))
            support = np.stack([heads.influential for heads in solved])
            accuracies = lab.accuracies(features, solved)
            found[Reading(pixels, batch, scheme, epoch).look] = {"accuracy": accuracies, **count_by_runs(support)}

    recipe = replace(lab.profile.recipe, epochs=max(EPOCHS), batch_size=batch)
    train_together(lab, seeds, recipe=recipe, look=look)
    return found


def count_by_runs(support: Bools) -> Json:
    """Records by the number of runs in which they are influential, of all runs, and without each of them in turn."""
    runs, often = len(support), support.sum(0)
    return {
        "by_runs": np.bincount(often, minlength=runs + 1).tolist(),
        "without": [np.bincount(often - one, minlength=runs).tolist() for one in support],
        "a_run": support.sum(1).tolist(),
    }


# Judging


def expected(runs: int) -> list[float]:
    """The share of the records that would be support vectors in none, one, … all of so many of the paper's runs."""
    found = published.published()["support_vector_histogram"]
    total, records, ever = found["runs"], found["samples"], found["derived"]["ever_support"]
    counts = {0: records - ever} | {int(often): count for often, count in found["count_by_number_of_runs"].items()}
    ways = math.comb(total, runs) * records
    return [
        sum(count * math.comb(often, i) * math.comb(total - often, runs - i) for often, count in counts.items()) / ways
        for i in range(runs + 1)
    ]


def moved(by_runs: Sequence[int]) -> float:
    """The records in other columns than the paper's would be, as a share of those that are ever support vectors."""
    theirs, records = expected(len(by_runs) - 1), sum(by_runs)
    return apart([count / records for count in by_runs], theirs) / (1.0 - theirs[0])


def score(by_runs: Sequence[int], accuracies: Sequence[float]) -> float:
    """How many of the paper's errors a reading is away from it."""
    papers = list(published.table()["No"].values())
    error = spread() / math.sqrt(len(papers))
    return math.hypot(moved(by_runs) / RELATIVE, (fmean(accuracies) - fmean(papers)) / error)


def choose(among: Sequence[Reading], found: dict[Reading, Json]) -> Reading:
    """The one with the least score; of equal ones the first."""
    return min(among, key=lambda one: score(found[one]["by_runs"], found[one]["accuracy"]))


def judge(found: Json, best: Json) -> Json:
    """The score with its error, how far it is above the best one's, and whether that may be noise."""
    here, ahead = score(found["by_runs"], found["accuracy"]), score(best["by_runs"], best["accuracy"])
    each, others = leave_one_out(found), leave_one_out(best)
    reach = half_interval(jackknife([one - other for one, other in zip(each, others, strict=True)]), len(each))
    return {
        "score": here, "stderr": jackknife(each), "moved": moved(found["by_runs"]), "behind": here - ahead,
        "within_noise": here - ahead <= reach,
    }  # fmt: skip


def leave_one_out(found: Json) -> list[float]:
    """The scores without each run in turn."""
    right = found["accuracy"]
    return [score(one, right[:at] + right[at + 1 :]) for at, one in enumerate(found["without"])]


def jackknife(values: Sequence[float]) -> float:
    """The standard error of a number, from its values without each run in turn.

    >>> jackknife([1.0, 2.0, 3.0])  # of a mean it is the usual one
    1.1547005383792515
    """
    mean = fmean(values)
    return math.sqrt((len(values) - 1) / len(values) * sum((value - mean) ** 2 for value in values))


def cells(lab: Lab, found: Json) -> Json:
    """What is shown of a reading beside what as many of the paper's runs would give."""
    by_runs, papers = found["by_runs"], list(published.table()["No"].values())
    shares, records = expected(len(by_runs) - 1), sum(by_runs)
    support = published.published()["support_vector_histogram"]["derived"]["mean_support_per_run"]
    ever, always = records * (1.0 - shares[0]), records * shares[-1]
    row = {
        "accuracy": compare(found["accuracy"], "accuracy", fmean(papers) if lab.comparable else None, len(papers)),
        "support vectors a run": compare(found["a_run"], "count", support if lab.comparable else None),
        "ever": compare([records - by_runs[0]], "count", ever if lab.comparable else None),
        "in every run": compare([by_runs[-1]], "count", always if lab.comparable else None),
    }
    return {name: cell.to_json() for name, cell in row.items()}
