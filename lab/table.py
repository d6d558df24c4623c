"""`tab:svm-accuracy-settings`: accuracy after unlearning six sets of records from the SVM, the extractor, or both.

Rows of the table: 'No', nothing is unlearned; 'SVM', the heads are fitted without the records; 'FE', the extractor is
trained without them and the heads are fitted on everything; 'FE+SVM', both go without.
"""

from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab import published
from lab.comparison import Cell, compare
from lab.heads import Bools
from lab.lab import Lab
from lab.results import Json

ROWS = ("No", "SVM", "FE+SVM", "FE")
COLUMNS = ("top10k", "top10k+random10k", "nontop10k", "top20k", "top20k+random10k", "nontop20k")


def measure(lab: Lab) -> Json:
    """All cells. A piece is a column, but for what needs the extractors that saw everything."""
    results, seeds = lab.results("table"), lab.seeds(lab.profile.runs)
    kept = results.piece("No and SVM", lambda: measure_with_full_extractors(lab, seeds))
    values: dict[str, dict[str, list[float]]] = {row: {} for row in ROWS}
    for column in COLUMNS:
        found = results.piece(column, lambda column=column: measure_with_new_extractors(lab, seeds, column))  # type: ignore[misc]
        values["No"][column], values["SVM"][column] = kept["No"], kept[column]
        values["FE"][column], values["FE+SVM"][column] = found["FE"], found["FE+SVM"]
    papers = published.table()
    return results.finish({
        "part": "table", "title": "Accuracy after unlearning", "runs": lab.profile.runs, "data": lab.profile.data,
        "cells": {
            row: {
                column: compare(
                    values[row][column], "accuracy", papers[row][column] if lab.comparable else None
                ).to_json()
                for column in COLUMNS
            }
            for row in ROWS
        },
        "once": {"No": before(kept["No"], list(papers["No"].values()) if lab.comparable else []).to_json()},
    })  # fmt: skip


def before(values: Sequence[float], papers: Sequence[float]) -> Cell:
    """The row 'No' is one number: ours once, and the mean of the paper's, which measured it for each column anew."""
    return compare(values, "accuracy", fmean(papers) if papers else None, max(1, len(papers)))


def draw_forgotten(lab: Lab, column: str, runs: int) -> list[NDArray[Any]]:
    """The ids that each run unlearns. Random ones differ between runs."""
    k = lab.profile.large if "20k" in column else lab.profile.small
    top = lab.top(k)
    if column.startswith("nontop"):
        return [lab.others(top)] * runs
    if "+" not in column:
        return [top] * runs
    rest = lab.others(top)
    return [np.union1d(top, lab.draw(rest, lab.profile.extra, k, run)) for run in range(runs)]


def masks_without(lab: Lab, forgotten: Sequence[NDArray[Any]]) -> list[Bools]:
    """Who is left in each run: one array where it is the same for neighbours, so that their heads begin together."""
    masks: list[Bools] = []
    for number, ids in enumerate(forgotten):
        same = number > 0 and ids is forgotten[number - 1]
        masks.append(masks[-1] if same else ~lab.mask(ids))
    return masks


def measure_with_full_extractors(lab: Lab, seeds: Sequence[int]) -> Json:
    """The rows 'No' and 'SVM': extractors see everything. Each set of SVMs is kept until all are there."""
    features = lab.embed(lab.train(seeds, lab.training))

    def test_without(column: str) -> NDArray[np.float64]:
        gone = None if column == "No" else draw_forgotten(lab, column, len(seeds))
        return np.array(lab.fit_and_test(features, [None] * len(seeds) if gone is None else masks_without(lab, gone)))

    return {name: lab.keep(f"table-{name}", partial(test_without, name)).tolist() for name in ("No", *COLUMNS)}


def measure_with_new_extractors(lab: Lab, seeds: Sequence[int], column: str) -> Json:
    """The rows 'FE' and 'FE+SVM': extractors are trained without the records."""
    return train_without(lab, seeds, draw_forgotten(lab, column, len(seeds)))


def train_without(lab: Lab, seeds: Sequence[int], gone: Sequence[NDArray[Any]]) -> Json:
    """Extractors trained without these ids, in each run its own, under heads with and without them."""
    features = lab.embed(lab.train(seeds, lab.training, without=gone))
    everything: list[Bools | None] = [None] * len(seeds)
    accuracies = lab.fit_and_test([*features, *features], [*everything, *masks_without(lab, gone)])
    return {"FE": accuracies[: len(seeds)], "FE+SVM": accuracies[len(seeds) :]}
