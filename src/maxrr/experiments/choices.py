"""Which of the choices that the paper leaves open explain where our numbers differ from its.

Two matter: how many classes are told apart by SVMs for two (it says one-vs-rest; scikit-learn's `SVC` is one-vs-one),
and how long the networks were trained (it does not say). Each reading ranks the records by itself and goes through
what did not match: the support vectors, the table's cells where only the top 10,000 are kept, and the coverage. The
profile `svc` does everything as the reading that fits.
"""

from dataclasses import dataclass, replace

import numpy as np

from maxrr.core import Ranking
from maxrr.core.frequency import ranking_seeds
from maxrr.experiments import comparison, published
from maxrr.experiments.comparison import Cell, compared
from maxrr.experiments.heads import Bools, Kind
from maxrr.experiments.lab import Lab
from maxrr.experiments.results import Json


@dataclass(frozen=True)
class Reading:
    """One way to fill in what the paper leaves open."""

    heads: Kind
    epochs: int

    @property
    def name(self) -> str:
        return f"{self.heads}, {self.epochs} epochs"


def readings(lab: Lab) -> list[Reading]:
    """Both kinds of heads, with networks trained as everywhere else and for three fifths of that, 11 epochs of 18."""
    usual = lab.profile.recipe.epochs
    kinds: tuple[Kind, Kind] = ("one-vs-rest", "one-vs-one")
    return [Reading(kind, epochs) for epochs in (usual, max(1, round(0.6 * usual))) for kind in kinds]


def choices(lab: Lab) -> Json:
    """Every reading beside the paper."""
    results = lab.results("choices")
    cells = {}
    for reading in readings(lab):
        found = results.piece(reading.name, lambda reading=reading: measured(lab, reading))  # type: ignore[misc]
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
    rows: dict[str, tuple[float, comparison.Kind]] = {
        "accuracy": (float(np.mean(list(table["No"].values()))), "accuracy"),
        "support vectors a run": (support, "count"),
        "SVM on the top 10k": (table["SVM"]["nontop10k"], "accuracy"),
        "FE on the top 10k": (table["FE"]["nontop10k"], "accuracy"),
        "FE+SVM on the top 10k": (table["FE+SVM"]["nontop10k"], "accuracy"),
        "FE on the top 20k": (table["FE"]["nontop20k"], "accuracy"),
        "core or influential": (covered, "count"),
    }
    return {name: compared(found[name], paper if comparable else None, kind) for name, (paper, kind) in rows.items()}


def measured(lab: Lab, reading: Reading) -> Json:
    """Everything that depends on the reading."""
    runs, kind = lab.profile.trials, reading.heads
    recipe = replace(lab.profile.recipe, epochs=reading.epochs)
    seeds, others = lab.seeds(runs), ranking_seeds(lab.seed, runs)
    all_: list[Bools | None] = [None] * runs
    # 1. A ranking of its own, from other networks than those that are looked at.
    ranked = lab.embedded(lab.extractors(others, lab.training, recipe=recipe, piece="choices-ranking"))
    marks = np.stack([head.influential for head in lab.heads(ranked, all_, kind)])
    ranking = Ranking(lab.training.ids, tuple(others), np.packbits(marks, axis=1), 0.0)
    small, large = (np.sort(ranking.top(k)) for k in (lab.profile.small, lab.profile.large))
    # 2. The table's column where only the top 10,000 are kept, and coverage.
    full = lab.embedded(lab.extractors(seeds, lab.training, recipe=recipe, piece="choices-full"))
    few = lab.embedded(lab.extractors(seeds, lab.training.select(small), recipe=recipe, piece="choices-small"))
    core = lab.embedded(lab.extractors(seeds, lab.training.select(large), recipe=recipe, piece="choices-core"))
    only_small: list[Bools | None] = [lab.mask(small)] * runs
    heads = list(lab.heads([*full, *few, *core, *full, *few], [*all_ * 3, *only_small * 2], kind))
    groups = [heads[at : at + runs] for at in range(0, len(heads), runs)]
    return {
        "accuracy": lab.correct(full, groups[0]),
        "support vectors a run": marks.sum(1).astype(float).tolist(),
        "SVM on the top 10k": lab.correct(full, groups[3]),
        "FE on the top 10k": lab.correct(few, groups[1]),
        "FE+SVM on the top 10k": lab.correct(few, groups[4]),
        "FE on the top 20k": lab.correct(core, groups[2]),
        "core or influential": [float(np.sum(head.influential | lab.mask(large))) for head in groups[2]],
    }
