"""The paper's own numbers, as `published.json` beside this file has them: read off its table, figures and text."""

import json
from functools import cache
from pathlib import Path
from typing import Any

DATA = "fashion-mnist"  # what they were measured on; for other data there is nothing to compare with


@cache
def published() -> dict[str, Any]:
    """All of them, under the names of the file."""
    numbers: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return numbers


def table() -> dict[str, dict[str, float]]:
    """The accuracies of `tab:svm-accuracy-settings`, by row and column.

    >>> table()["FE"]["nontop20k"]
    0.8881
    """
    found = published()["accuracy_table"]
    return {row: dict(zip(found["columns"], values, strict=True)) for row, values in found["rows"].items()}


def agreement(request: str) -> dict[float, float]:
    """The share of records with the same verdict in at least each share of the runs.

    >>> agreement("core20k")[0.8]
    0.78215
    """
    key = "percent_of_samples_with_same_verdict_in_at_least_this_fraction_of_runs"
    return {float(at): percent / 100 for at, percent in published()["agreement"][key][request].items()}
