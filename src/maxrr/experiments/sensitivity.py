"""`sec:sensitivity`: random support vectors are unlearned from the SVM, the extractor, or both.

The paper does not say which fraction of them it took, so there are several.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maxrr.experiments.comparison import compared
from maxrr.experiments.lab import Lab
from maxrr.experiments.published import published
from maxrr.experiments.results import Json
from maxrr.experiments.table import masks_without

ROWS = {"No": "none", "SVM": "SVM", "FE+SVM": "FE+SVM", "FE": "FE"}  # the table's rows by the paper's words


def sensitivity(lab: Lab) -> Json:
    """The table's rows for each fraction."""
    results, seeds = lab.results("sensitivity"), lab.seeds(lab.profile.few)
    before = results.piece("full", lambda: from_full_extractors(lab, seeds))
    papers = published()["sensitivity"]["accuracy"]
    cells: dict[str, Json] = {row: {} for row in ROWS}
    for fraction in lab.profile.fractions:
        name = f"{fraction:.0%}"
        found = results.piece(
            name,
            lambda fraction=fraction: from_new_extractors(lab, seeds, before["support"], fraction),  # type: ignore[misc]
        )
        for row, paper in ROWS.items():
            values = before["No"] if row == "No" else before[name] if row == "SVM" else found[row]
            cells[row][name] = compared(values, papers[paper] if lab.comparable else None).to_json()
    return results.finish({
        "part": "sensitivity", "title": "Unlearning random support vectors", "runs": lab.profile.few, "cells": cells,
        "forgotten": {f"{fraction:.0%}": size(before["support"], fraction) for fraction in lab.profile.fractions},
    })  # fmt: skip


def size(support: Sequence[Sequence[int]], fraction: float) -> int:
    """How many records a run unlearns: a fraction of the smallest set of support vectors, as many in all runs."""
    return round(fraction * min(map(len, support)))


def drawn(lab: Lab, support: Sequence[Sequence[int]], fraction: float) -> list[NDArray[np.int64]]:
    """The ids that each run unlearns, drawn among its own support vectors."""
    count = size(support, fraction)
    return [lab.draw(lab.training.ids[rows], count, run, round(100 * fraction)) for run, rows in enumerate(support)]


def from_full_extractors(lab: Lab, seeds: Sequence[int]) -> Json:
    """Accuracies before, the rows of each run's support vectors, and accuracies with the head fitted without some."""
    features = lab.embedded(lab.extractors(seeds, lab.training, piece="sensitivity"))
    heads = list(lab.heads(features, [None] * len(seeds)))
    support = [np.flatnonzero(head.influential).tolist() for head in heads]
    found: Json = {
        "No": [head.accuracy(one.test, lab.test.labels) for one, head in zip(features, heads, strict=True)],
        "support": support,
    }
    for fraction in lab.profile.fractions:
        masks = masks_without(lab, drawn(lab, support, fraction))
        found[f"{fraction:.0%}"] = lab.accuracies(features, masks)
    return found


def from_new_extractors(lab: Lab, seeds: Sequence[int], support: Sequence[Sequence[int]], fraction: float) -> Json:
    """Extractors trained without the records, under heads with and without them."""
    gone = drawn(lab, support, fraction)
    features = lab.embedded(lab.extractors(seeds, lab.training, without=gone, piece=f"sensitivity-{fraction:.2f}"))
    everything: list[NDArray[np.bool_] | None] = [None] * len(seeds)
    accuracies = lab.accuracies([*features, *features], [*everything, *masks_without(lab, gone)])
    return {"FE": accuracies[: len(seeds)], "FE+SVM": accuracies[len(seeds) :]}
