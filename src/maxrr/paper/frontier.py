"""What a core costs and gives: accuracy against the shares of records that are free, exact and approximate."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.core import FrequencyCore
from maxrr.paper.comparison import compared
from maxrr.paper.heads import Head
from maxrr.paper.lab import Features, Lab
from maxrr.paper.results import Json
from maxrr.paper.selectors import FEW, SELECTORS, Selector


def frontier(lab: Lab) -> Json:
    """Every selector with every size of core."""
    results = lab.results("frontier")
    cells: dict[str, Json] = {}
    points = []
    for k in lab.profile.cores:
        for name, selector in selectors(lab).items():
            found = results.piece(
                f"{name} {k}",
                lambda name=name, selector=selector, k=k: cost_and_accuracy(lab, selector(lab, k), f"{name}-{k}"),  # type: ignore[misc]
            )
            row = {column: compared(values) for column, values in found.items()}
            cells[f"{name}, {k:,}"] = {column: cell.to_json() for column, cell in row.items()}
            shares = {column: cell.mean for column, cell in row.items()}
            points.append({"selector": name, "k": k, "stderr": row["accuracy"].stderr, **shares})
    return results.finish({
        "part": "frontier", "title": "Which core", "runs": lab.profile.trials, "records": len(lab.training),
        "cells": cells, "points": points,
    })  # fmt: skip


def selectors(lab: Lab) -> dict[str, Selector]:
    """All of them; but a short ranking needs a longer one beside it."""
    short = lab.profile.ranked <= FrequencyCore.runs
    return {name: selector for name, selector in SELECTORS.items() if name != FEW or not short}


def cost_and_accuracy(lab: Lab, core: NDArray[Any], piece: str) -> Json:
    """Of models whose extractor saw this core: accuracy, and shares of all records by what forgetting them takes."""
    seeds = lab.seeds(lab.profile.trials)
    features = lab.embedded(lab.extractors(seeds, lab.training.select(np.sort(core)), piece=piece))
    return told(lab, core, features, list(lab.heads(features, [None] * len(seeds))))


def told(lab: Lab, core: NDArray[Any], features: Sequence[Features], heads: Sequence[Head]) -> Json:
    """The same of models that are there: what their extractors give, and their heads."""
    in_core = lab.mask(core)
    exact = [float(np.mean(head.influential & ~in_core)) for head in heads]
    share = float(in_core.mean())
    return {
        "accuracy": lab.correct(features, heads),
        "free": [1.0 - share - one for one in exact],
        "exact": exact,
        "approximate": [share] * len(heads),
    }
