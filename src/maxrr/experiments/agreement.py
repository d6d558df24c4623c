"""`fig:comparison_unlearning_strategies` and its appendix: how often MaxRR and perfect retraining get one verdict.

The paper counts 'in how many of the 20 runs both strategies lead to the same classification'. That is one reading. But
its own histograms allow no such agreement between runs that have nothing but the records in common. So there is another
reading: that the *numbers* of runs in which a record is claimed unlearned, one a strategy, differ by no more than so
many.
"""

import numpy as np

from maxrr.experiments.comparison import compared
from maxrr.experiments.confidence import USUAL
from maxrr.experiments.lab import Lab
from maxrr.experiments.published import published
from maxrr.experiments.results import Json
from maxrr.experiments.verification import SCENARIOS, measured

READINGS = {"same": "same", "close": "as often"}  # verdicts paired by run; numbers of runs


def agreement(lab: Lab) -> Json:
    """Both readings of the figure. Taken from the verification's verdicts."""
    found, runs = measured(lab), lab.profile.few
    theirs = published()["agreement"]["percent_of_samples_with_same_verdict_in_at_least_this_fraction_of_runs"]
    cells: dict[str, Json] = {}
    curves: dict[str, Json] = {}
    for name in SCENARIOS:
        paper = {float(at): percent / 100 for at, percent in theirs[name].items()} if lab.comparable else {}
        shares = {reading: at_least(found[name][reading][USUAL]) for reading in READINGS}
        cells[name] = {
            f"{words} {where}": compared([shares[reading][at]], paper.get(point), "share").to_json()
            for reading, words in READINGS.items()
            for at, point, where in ((round(0.8 * runs), 0.8, "in 80 % of runs"), (runs, 1.0, "in all runs"))
        }
        curves[name] = {
            "runs": [number / runs for number in range(runs + 1)], "ours": shares["same"], "counts": shares["close"],
            "paper": {"runs": list(paper), "shares": list(paper.values())} if paper else None,
        }  # fmt: skip
    return lab.results("agreement").finish({
        "part": "agreement", "title": "Same verdict as perfect retraining", "runs": runs, "cells": cells,
        "share_with_the_same_verdict": curves,
    })  # fmt: skip


def at_least(counts: list[int]) -> list[float]:
    """From records by number of runs to the share of records with at least so many.

    >>> at_least([1, 0, 3])
    [1.0, 0.75, 0.75]
    """
    shares: list[float] = (np.cumsum(counts[::-1])[::-1] / sum(counts)).tolist()
    return shares
