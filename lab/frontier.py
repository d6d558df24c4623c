"""What a core costs and gives: accuracy against the shares of records that are free, exact and approximate."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.comparison import Cell, compare
from lab.heads import Heads
from lab.lab import Features, Lab
from lab.results import Json
from lab.selectors import FEW, SELECTORS, Selector
from maxrr.core import FrequencyCore


def measure(lab: Lab) -> Json:
    """Every selector with every size of core."""
    results = lab.results("frontier")
    cells: dict[str, Json] = {}
    points = []
    for k in lab.profile.cores:
        for name, selector in selectors(lab).items():
            found = results.piece(
                f"{name} {k}",
                lambda name=name, selector=selector, k=k: measure_core(lab, selector(lab, k)),  # type: ignore[misc]
            )
            row = compare_core(found)
            cells[f"{name}, {k:,}"] = {column: cell.to_json() for column, cell in row.items()}
            shares = {column: cell.mean for column, cell in row.items()}
            points.append({"selector": name, "k": k, "stderr": row["accuracy"].stderr, **shares})
    return results.finish({
        "part": "frontier", "title": "Which core", "runs": lab.profile.trials, "records": len(lab.training),
        "cells": cells, "points": points,
    })  # fmt: skip


def compare_core(found: Json) -> dict[str, Cell]:
    """What `describe_core` says of a core, as cells: its accuracy, and shares of the records."""
    return {
        quantity: compare(values, "accuracy" if quantity == "accuracy" else "share")
        for quantity, values in found.items()
    }


def selectors(lab: Lab) -> dict[str, Selector]:
    """All of them; but a short ranking needs a longer one beside it."""
    short = lab.profile.ranked <= FrequencyCore.runs
    return {name: selector for name, selector in SELECTORS.items() if name != FEW or not short}


def measure_core(lab: Lab, core: NDArray[Any]) -> Json:
    """Of models whose extractor saw this core: accuracy, and shares of all records by what forgetting them takes."""
    seeds = lab.seeds(lab.profile.trials)
    features = lab.embed(lab.train(seeds, lab.training.select(np.sort(core))))
    return describe_core(lab, core, features, list(lab.fit_heads(features, [None] * len(seeds))))


def describe_core(lab: Lab, core: NDArray[Any], features: Sequence[Features], solved: Sequence[Heads]) -> Json:
    """The same of models that are there: what their extractors give, and their heads."""
    in_core = lab.mask(core)
    exact = [float(np.mean(heads.influential & ~in_core)) for heads in solved]
    share = float(in_core.mean())
    return {
        "accuracy": lab.accuracies(features, solved),
        "free": [1.0 - share - one for one in exact],
        "exact": exact,
        "approximate": [share] * len(solved),
    }
