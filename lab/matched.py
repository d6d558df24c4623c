"""Support vectors forgotten, beside as many others: what of the sensitivity is their being support vectors.

In the sensitivity study fewer records are left as more are forgotten, whoever they are. Here the same models forget as
many that are not influential for them, or as many at random. The heads fitted without records that are not influential
need not be fitted: they are the same.
"""

from collections.abc import Sequence
from functools import partial
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from lab.comparison import compare
from lab.lab import Lab
from lab.results import Json
from lab.sensitivity import find_support
from lab.sensitivity import measure as measure_sensitivity
from lab.table import masks_without, train_without

ROWS = ("SVM", "FE+SVM", "FE")
IDLE, RANDOM = "not influential", "random"


def measure(lab: Lab) -> Json:
    """Accuracies and their differences, paired by run: the largest request first, and finished after each piece."""
    results, theirs = lab.results("matched"), measure_sensitivity(lab)["pieces"]
    cells: dict[str, Json] = {}
    content: Json = {}
    for fraction in sorted(lab.profile.fractions, reverse=True):
        name, others = f"{fraction:.0%}", dict[str, Json]()
        count = theirs[name]["forgotten"]
        share = f"{count / fmean(theirs['support']['records']):.0%}"
        for who in (IDLE, RANDOM):
            measure = partial(measure_without, lab, who, count, fraction, theirs["full"]["No"])
            others[who] = results.piece(f"{name}, {who}", measure)
            for row in ROWS:
                ours = theirs["full"][name] if row == "SVM" else theirs[name][row]
                cells[f"{share}, {row}"] = beside(ours, {who: one[row] for who, one in others.items() if one})
            content = results.finish({
                "part": "matched", "title": "Support vectors, and as many others", "runs": lab.profile.few,
                "cells": cells,
            })  # fmt: skip
    return content


def beside(ours: Sequence[float], others: dict[str, list[float]]) -> Json:
    """Accuracies after support vectors are forgotten, after others are, and what they differ by."""
    cells = {who: compare(values, "accuracy").to_json() for who, values in {"support vectors": ours, **others}.items()}
    for who, values in others.items():
        differences = [one - other for one, other in zip(ours, values, strict=True)]
        cells[f"support vectors less {who}"] = {**compare(differences, "accuracy").to_json(), "signed": True}
    return cells


def measure_without(lab: Lab, who: str, count: int, fraction: float, before: list[float]) -> Json:
    """Accuracies without as many others, from the heads, the extractor, or both; nothing where there are too few."""
    seeds = lab.seeds(lab.profile.few)
    pools = among(lab, who, seeds)
    if min(map(len, pools)) < count:
        return {}
    purpose = round(100 * fraction), 1 + (who == RANDOM)  # others than the sensitivity's draws
    gone = [lab.draw(ids, count, run, *purpose) for run, ids in enumerate(pools)]
    svm = lab.fit_and_test(lab.after_everything, masks_without(lab, gone)) if who == RANDOM else before
    return {"SVM": svm, **train_without(lab, seeds, gone)}


def among(lab: Lab, who: str, seeds: Sequence[int]) -> list[NDArray[np.int64]]:
    """The ids that each run may forget."""
    if who == RANDOM:
        return [lab.training.ids] * len(seeds)
    return [lab.training.ids[~votes] for votes in find_support(lab, seeds, lab.after_everything)]
