"""The sensitivity with as many runs as the paper's 100, for the largest of the fractions, which comes nearest to it.

Runs come in groups as large as the sensitivity's own, which is the first. Those of a group step together, so they
forget equally many; groups may differ by a few.
"""

from collections.abc import Sequence
from functools import partial

from lab.comparison import compare
from lab.lab import Lab
from lab.published import published
from lab.results import Json
from lab.sensitivity import ROWS, find_support, measure_with_full_extractors, measure_with_new_extractors
from lab.sensitivity import measure as measure_sensitivity


def measure(lab: Lab) -> Json:
    """The sensitivity's rows over all groups, as many runs as the ranking has; finished after each group."""
    few, fraction = lab.profile.few, max(lab.profile.fractions)
    seeds, name = lab.seeds(max(lab.profile.ranked, few)), f"{fraction:.0%}"
    first = measure_sensitivity(lab)["pieces"]
    own = join(first["full"], first["support"], first[name], name)
    for start in range(few, len(seeds), few):
        some = seeds[start : start + few]
        piece = f"runs {start + 1} to {start + len(some)}"
        lab.results("more-runs").piece(piece, partial(measure_group, lab, some, start, fraction))
        finish(lab, own)
    return finish(lab, own)


def measure_group(lab: Lab, seeds: Sequence[int], start: int, fraction: float) -> Json:
    """A group, whose first run has this number."""
    group, name = f"-from-{start}", f"{fraction:.0%}"
    full = measure_with_full_extractors(lab, seeds, [fraction], start, group)
    size = {"records": find_support(lab, seeds, (), group).sum(1).tolist()}
    return join(full, size, measure_with_new_extractors(lab, seeds, fraction, start, group), name)


def join(full: Json, size: Json, new: Json, name: str) -> Json:
    """The rows of a group, and how many records its runs had to forget of how many."""
    rows = {"No": full["No"], "SVM": full[name], "FE+SVM": new["FE+SVM"], "FE": new["FE"]}
    return {**rows, "forgotten": new["forgotten"], "support": size["records"]}


def finish(lab: Lab, first: Json) -> Json:
    """All groups that are there, beside the paper's."""
    results = lab.results("more-runs")
    there = results.read()
    groups = [first, *there["pieces"].values()]
    forgotten = sum(group["forgotten"] * len(group["support"]) for group in groups)
    share = f"{forgotten / sum(sum(group['support']) for group in groups):.0%}"
    papers = published()["sensitivity"]["accuracy"]
    cells = {}
    for row, paper in ROWS.items():
        values = [value for group in groups for value in group[row]]
        cells[row] = {share: compare(values, "accuracy", papers[paper] if lab.comparable else None).to_json()}
    return results.finish({
        "part": "more-runs", "title": "Unlearning random support vectors, more runs",
        "runs": sum(len(group["support"]) for group in groups), "cells": cells,
    }, {**lab.results("sensitivity").read()["made"], **there["made"]})  # fmt: skip
