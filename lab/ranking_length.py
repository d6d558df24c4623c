"""How many runs a ranking needs: the cores of shorter ones beside that of the longest."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.comparison import compare
from lab.frontier import measure_core
from lab.lab import Lab
from lab.results import Json
from lab.selectors import some_runs


def measure(lab: Lab) -> Json:
    """Overlap, accuracy and coverage of the cores from the first 1, 2, … runs."""
    results = lab.results("ranking-length")
    cells: dict[str, Json] = {}
    lines = []
    for runs in (*lab.profile.lengths, lab.profile.ranked):
        found = results.piece(str(runs), lambda runs=runs: measure_length(lab, runs))  # type: ignore[misc]
        records = len(lab.training)
        row = {
            **{
                f"shared with all {lab.profile.ranked}, k = {k}": compare([share], "share")
                for k, share in found["shared"].items()
            },
            **{f"shared with the others, k = {k}": compare([share], "share") for k, share in found["others"].items()},
            "accuracy": compare(found["accuracy"], "accuracy"),
            "core or influential": compare([records * (1.0 - share) for share in found["free"]], "count"),
        }
        cells[f"{runs} run{'s' * (runs > 1)}"] = {column: cell.to_json() for column, cell in row.items()}
        lines.append({
            "runs": runs, "overlap": found["shared"], "accuracy": row["accuracy"].mean,
            "stderr": row["accuracy"].stderr, "core_or_influential": row["core or influential"].mean,
        })  # fmt: skip
    return results.finish({
        "part": "ranking-length", "title": "How many runs a ranking needs", "runs": lab.profile.trials,
        "cells": cells, "lines": lines,
    })  # fmt: skip


def measure_length(lab: Lab, runs: int) -> Json:
    """The cores of a ranking of the first runs: shared with that of all runs, and with that of the runs not in it."""
    first, rest = some_runs(lab.ranking, slice(runs)), some_runs(lab.ranking, slice(runs, None))
    sizes = (lab.profile.small, lab.profile.large)
    return {
        "shared": {str(k): overlap(first.top(k), lab.top(k)) for k in sizes},
        "others": {str(k): overlap(first.top(k), rest.top(k)) for k in sizes} if rest.seeds else {},
        **measure_core(lab, first.top(lab.profile.large)),
    }


def overlap(one: NDArray[Any], other: NDArray[Any]) -> float:
    """The share of one that is in the other."""
    return float(np.isin(one, other).mean())
