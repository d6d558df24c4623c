"""`sec:sensitivity`: random support vectors are unlearned from the SVM, the extractor, or both.

The paper does not say which fraction of them it took, so there are several.
"""

from collections.abc import Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from lab.comparison import compare
from lab.heads import Bools
from lab.lab import Features, Lab
from lab.published import published
from lab.results import Json
from lab.table import masks_without, train_without

ROWS = {"No": "none", "SVM": "SVM", "FE+SVM": "FE+SVM", "FE": "FE"}  # the table's rows by the paper's words


def measure(lab: Lab) -> Json:
    """The table's rows for each fraction."""
    results, seeds = lab.results("sensitivity"), lab.seeds(lab.profile.few)
    before = results.piece("full", lambda: measure_with_full_extractors(lab, seeds, lab.profile.fractions))
    size = results.piece("support", lambda: {"records": find_support(lab, seeds, ()).sum(1).tolist()})["records"]
    papers = published()["sensitivity"]["accuracy"]
    cells: dict[str, Json] = {row: {} for row in ROWS}
    forgotten = {}
    for fraction in lab.profile.fractions:
        name = f"{fraction:.0%}"
        found = results.piece(name, lambda fraction=fraction: measure_with_new_extractors(lab, seeds, fraction))  # type: ignore[misc]
        share = f"{found['forgotten'] / fmean(size):.0%}"  # less than the fraction: it is one of the smallest set
        forgotten[share] = found["forgotten"]
        for row, paper in ROWS.items():
            values = before["No"] if row == "No" else before[name] if row == "SVM" else found[row]
            cells[row][share] = compare(values, "accuracy", papers[paper] if lab.comparable else None).to_json()
    return results.finish({
        "part": "sensitivity", "title": "Unlearning random support vectors", "runs": lab.profile.few, "cells": cells,
        "once": {"No": next(iter(cells["No"].values()))}, "forgotten": forgotten,
    })  # fmt: skip


def find_support(lab: Lab, seeds: Sequence[int], features: Sequence[Features], group: str = "") -> Bools:
    """The support vectors of the models that saw everything, (runs × records); kept, under the name of a group."""

    def measure() -> Bools:
        there = features or lab.embed(lab.train(seeds, lab.training))
        return np.stack([heads.influential for heads in lab.fit_heads(there, [None] * len(seeds))])

    return lab.keep(f"support{group}", measure)


def draw_requests(lab: Lab, support: Bools, fraction: float, first: int = 0) -> list[NDArray[np.int64]]:
    """The ids that each run unlearns among its own support vectors: a fraction of the smallest set, as many for all.

    Runs are numbered from the first.
    """
    count = round(fraction * int(support.sum(1).min()))
    return [
        lab.draw(lab.training.ids[votes], count, run, round(100 * fraction))
        for run, votes in enumerate(support, first)
    ]  # fmt: skip


def measure_with_full_extractors(
    lab: Lab, seeds: Sequence[int], fractions: Sequence[float], first: int = 0, group: str = ""
) -> Json:  # fmt: skip
    """Accuracies before, and with the heads fitted without some of the support vectors."""
    features = lab.embed(lab.train(seeds, lab.training))
    solved = list(lab.fit_heads(features, [None] * len(seeds)))
    votes = lab.keep(f"support{group}", lambda: np.stack([heads.influential for heads in solved]))
    masks = [mask for fraction in fractions for mask in masks_without(lab, draw_requests(lab, votes, fraction, first))]
    accuracies = [*lab.accuracies(features, solved), *lab.fit_and_test(features * len(fractions), masks)]
    names = ["No", *(f"{fraction:.0%}" for fraction in fractions)]
    return {name: accuracies[at * len(seeds) :][: len(seeds)] for at, name in enumerate(names)}


def measure_with_new_extractors(
    lab: Lab, seeds: Sequence[int], fraction: float, first: int = 0, group: str = ""
) -> Json:
    """Extractors trained without the records, under heads with and without them."""
    gone = draw_requests(lab, find_support(lab, seeds, (), group), fraction, first)
    return {"forgotten": len(gone[0]), **train_without(lab, seeds, gone)}
