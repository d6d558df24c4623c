"""|support ∪ core|: how many records are not forgotten for free, for the paper's core of 20,000."""

import numpy as np

from lab.comparison import compare
from lab.lab import Lab
from lab.published import published
from lab.results import Json


def measure(lab: Lab) -> Json:
    """The kinds of records in models whose extractor saw the core, and their accuracy."""
    results = lab.results("coverage")
    found = results.piece("core", lambda: count_kinds(lab))
    paper = published()["coverage"]["union_of_support_and_core20k"] if lab.comparable else None
    core = lab.profile.large
    covered = [core + outside for outside in found["influential_outside"]]
    cells = {
        "core or influential": compare(covered, "count", paper, given=core),  # 20,000 of 20,500 agree by themselves
        "influential, not core": compare(found["influential_outside"], "count", paper and paper - core),
        "core, not influential": compare(found["core_only"], "count"),
        "free": compare([len(lab.training) - count for count in covered], "count"),
    }
    return results.finish({
        "part": "coverage", "title": "Who is not forgotten for free", "runs": lab.profile.few, "core": core,
        "records": len(lab.training), "cells": {name: {"records": cell.to_json()} for name, cell in cells.items()},
    })  # fmt: skip


def count_kinds(lab: Lab) -> Json:
    """For each model the records that are influential outside the core, and core without influence."""
    core, features = lab.mask(lab.top(lab.profile.large)), lab.after_the_core
    outside, core_only = [], []
    for heads in lab.fit_heads(features, [None] * len(features)):
        outside.append(float(np.sum(heads.influential & ~core)))
        core_only.append(float(np.sum(core & ~heads.influential)))
    return {"influential_outside": outside, "core_only": core_only}
