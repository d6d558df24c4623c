"""`fig:comparison_unlearning_strategies` and its appendix: how often MaxRR and perfect retraining get one verdict."""

import numpy as np

from maxrr.experiments.comparison import compared
from maxrr.experiments.confidence import VARIANTS
from maxrr.experiments.lab import Lab
from maxrr.experiments.published import published
from maxrr.experiments.results import Json
from maxrr.experiments.verification import SCENARIOS, measured


def agreement(lab: Lab) -> Json:
    """The share of records with the same verdict in at least so many runs. Taken from the verification's verdicts."""
    found = measured(lab)
    theirs = published()["agreement"]["percent_of_samples_with_same_verdict_in_at_least_this_fraction_of_runs"]
    cells: dict[str, Json] = {}
    curves: dict[str, Json] = {}
    for name in SCENARIOS:
        shares = at_least(found[name]["same"][VARIANTS[0]])
        paper = {float(at): percent / 100 for at, percent in theirs[name].items()} if lab.comparable else {}
        most = round(0.8 * lab.profile.few)
        cells[name] = {
            "same in 80 % of runs": compared([shares[most]], paper.get(0.8), "share").to_json(),
            "same in all runs": compared([shares[-1]], paper.get(1.0), "share").to_json(),
        }
        curves[name] = {
            "runs": [runs / lab.profile.few for runs in range(lab.profile.few + 1)],
            "ours": shares,
            "paper": {"runs": list(paper), "shares": list(paper.values())} if paper else None,
        }
    return lab.results("agreement").finish({
        "part": "agreement", "title": "Same verdict as perfect retraining", "runs": lab.profile.few, "cells": cells,
        "share_with_the_same_verdict": curves,
    })  # fmt: skip


def at_least(counts: list[int]) -> list[float]:
    """From records by number of runs to the share of records with at least so many.

    >>> at_least([1, 0, 3])
    [1.0, 0.75, 0.75]
    """
    shares: list[float] = (np.cumsum(counts[::-1])[::-1] / sum(counts)).tolist()
    return shares
