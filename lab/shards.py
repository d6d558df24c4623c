"""The core in shards: how accurate a model is, against what a request costs; beside SISA and training again.

Every network is trained once. Its features go into one exact SVM over those of all shards, and its own scores into
SISA's vote. `cells` and `work` hold accuracies, which are measured, and records × epochs that a request trains again,
which are worked out from the sizes of the shards (`shard_costs`). Seconds are worked out from what the parts of a
request took on a machine (`shard_seconds`).

A core of a third is gone through twice as often as all records, and shards more often than the whole: a network on few
records needs its steps. With several shards each still takes fewer than a network on all of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from lab.comparison import compare
from lab.heads import SOLVE, accuracy
from lab.lab import Lab
from lab.profiles import Profile
from lab.results import Json, Results
from lab.shard_costs import Speeds, Stage, expected_touched, expected_work, in_shards, in_slices
from lab.shard_networks import CORES, FULL, MIDDLE, embed_side_by_side, network, shard_rows, train_shards
from lab.shard_seconds import Setting, machine, time_parts
from lab.votes import by_majority, by_mean

PART = "shards"
REPEATS = 3
REQUESTS = (1, 10, 100, 1_000)  # records
SLICES = (4, 16)  # of SISA's shards
STRETCH = {1: 1.0, 2: 1.5, 4: 2.0, 8: 2.0, 16: 2.0}  # how much longer shards are trained than the whole, in epochs
MOST = {"smoke": 2, "quick": 4}  # shards, where there is not much time
FEW = (FULL, MIDDLE)  # cores, likewise
SECONDS = "seconds, "  # how the names of pieces with the seconds of a machine begin


@dataclass(frozen=True)
class Case:
    """What is compared: a core in so many shards, networks of a width, trained for so many epochs."""

    core: str
    shards: int
    width: float
    epochs: int

    @property
    def name(self) -> str:
        """
        >>> Case("middle", 4, 0.5, 72).name
        'middle, S = 4, width 0.5, 72 epochs'
        """
        return f"{self.core}, S = {self.shards}, width {self.width:g}, {self.epochs} epochs"


WIDEST = 8  # shards of full width: with more of them the heads on 84 features each take minutes


def cases(profile: Profile) -> list[Case]:
    """What a profile measures, the most important first."""
    most = MOST.get(profile.name, max(STRETCH))
    large = most == max(STRETCH)
    counts = [count for count in STRETCH if count <= most]
    several = counts[2:] or counts[-1:]
    narrow = (0.5, 0.25) if large else (0.5,)

    def case(core: str, shards: int, width: float) -> Case:
        twice = 1.0 if core == FULL else 2.0
        return Case(core, shards, width, round(profile.recipe.epochs * twice * STRETCH[shards]))

    wide = [(core, shards) for shards in counts for core in (CORES if large else FEW)]
    return [
        *(case(core, shards, 1.0) for core, shards in wide if shards <= WIDEST or core == FULL),
        *(case(core, shards, width) for width in narrow for shards in several for core in FEW),
    ]


def measure(lab: Lab) -> Json:
    """Every case, and how long the parts of a request take here unless that is known of some machine."""
    results = lab.results(PART)
    for case in cases(lab.profile):
        measure_case(lab, results, case)
    if not any(name.startswith(SECONDS) for name in results.read()["pieces"]):
        measure_seconds(lab, results)
    return summarise(lab, results)


def measure_case(lab: Lab, results: Results, case: Case) -> Json:
    """A case, unless the file has it."""
    return results.piece(case.name, lambda: try_case(lab, case))


def measure_seconds(lab: Lab, results: Results) -> Json:
    """Seconds on this machine, unless the file has them."""
    settings = [Setting(case.shards, case.width, case.epochs) for case in cases(lab.profile) if case.core == MIDDLE]
    return results.piece(SECONDS + machine(lab.device), lambda: time_parts(lab, settings, REQUESTS))


# One case


def try_case(lab: Lab, case: Case) -> Json:
    """Accuracies of all repeats, what the costs follow from, and how long it took here."""
    rows = shard_rows(lab, case.core, case.shards)
    in_core = lab.mask(lab.training.ids[np.concatenate(rows)])
    labels, seeds = lab.test.labels, lab.seeds(min(REPEATS, lab.profile.trials))
    recipe = replace(lab.profile.recipe, epochs=case.epochs)
    found: dict[str, list[float]] = {name: [] for name in ("accuracy", "vote", "mean", "influential")}
    started = perf_counter()
    repeats = list(train_shards(lab, network(lab, case.width), rows, recipe, seeds))
    trained = perf_counter() - started
    fits = []
    for networks in repeats:
        features, scores = embed_side_by_side(lab, networks)
        started = perf_counter()
        heads = SOLVE[lab.profile.heads](features.training, lab.training.labels, None, 1.0)
        fits.append(perf_counter() - started)
        found["accuracy"].append(accuracy(heads, features.test, labels))
        found["vote"].append(float(np.mean(by_majority(scores) == labels)))
        found["mean"].append(float(np.mean(by_mean(scores) == labels)))
        found["influential"].append(float(np.sum(heads.influential & ~in_core)))
    return {
        **found, "sizes": [len(mine) for mine in rows], "features": int(features.training.shape[1]),
        "seconds": {"training all networks": trained, "fit": fits},
    }  # fmt: skip


# All cases


def summarise(lab: Lab, results: Results) -> Json:
    """The result, of the cases that the file has."""
    pieces, records = results.read()["pieces"], len(lab.training)
    there = {case: pieces[case.name] for case in cases(lab.profile) if case.name in pieces}
    speeds = {
        name.removeprefix(SECONDS): read_speeds(piece) for name, piece in pieces.items() if name.startswith(SECONDS)
    }
    lines = [line for case, found in there.items() for line in methods(case, found, records, speeds)]
    return results.finish({
        "part": PART, "title": "The core in shards", "runs": min(REPEATS, lab.profile.trials), "records": records,
        "cells": {case.name: row(case, found, records) for case, found in there.items()}, "work": lines,
    })  # fmt: skip


def row(case: Case, found: Json, records: int) -> Json:
    """The cells of a case."""
    stages, core = in_shards(found["sizes"], case.epochs), sum(found["sizes"])
    cells = {
        "one exact SVM": compare(found["accuracy"], "accuracy"),
        "vote": compare(found["vote"], "accuracy"),
        "mean probability": compare(found["mean"], "accuracy"),
        "records × epochs, a random record": compare([expected_work(stages, records, 1)], "count"),
        "records × epochs, a core record": compare([expected_work(stages, core, 1)], "count"),
    }
    return {name: cell.to_json() for name, cell in cells.items()}


def methods(
    case: Case, found: Json, records: int, speeds: Mapping[str, Mapping[str, Speeds]]
) -> Iterator[Json]:  # fmt: skip
    """MaxRR as the case has it; where all records are core also SISA, with and without slices.

    SISA's accuracy with slices is taken to be that without, as its paper found it. In one shard without slices SISA is
    training from scratch again.
    """
    sizes, core = found["sizes"], sum(found["sizes"])
    facts = {"core": case.core, "S": case.shards, "width": case.width, "epochs": case.epochs}
    ways: list[tuple[str, int, str, list[Stage]]] = [("MaxRR", 1, "accuracy", in_shards(sizes, case.epochs))]
    if case.core == FULL:
        ways += [("SISA", slices, "vote", in_slices(sizes, case.epochs, slices)) for slices in (1, *SLICES)]
    influential = round(float(np.mean(found["influential"])))
    for method, slices, by, stages in ways:
        accuracy = compare(found[by], "accuracy")
        line: Json = {
            "method": method, **facts, "slices": slices, "accuracy": accuracy.mean, "stderr": accuracy.stderr,
            "touched": {}, "work": {}, "seconds": {place: {} for place in speeds},
        }  # fmt: skip
        if method == "SISA":
            line["accuracy of mean probabilities"] = compare(found["mean"], "accuracy").mean
        for among, population in (("random", records), ("core", core)):
            asked = {str(count): count for count in REQUESTS if count <= population}
            line["touched"][among] = {name: expected_touched(sizes, population, count) for name, count in asked.items()}
            line["work"][among] = {name: expected_work(stages, population, count) for name, count in asked.items()}
            for place, known in speeds.items():
                if (speed := known.get(Setting(case.shards, case.width, case.epochs).name)) is None:
                    continue
                line["seconds"][place][among] = {
                    name: speed.training(stages, sizes, population, count) if method == "SISA"
                    else speed.request(stages, sizes, influential * (among == "random"), population, count)
                    for name, count in asked.items()
                }  # fmt: skip
        yield line


def read_speeds(piece: Json) -> dict[str, Speeds]:
    """The speeds of a machine by their settings."""
    return {
        key: Speeds(**{**found, "move": {int(count): value for count, value in found["move"].items()}})
        for key, found in piece["speeds"].items()
    }
