"""`fig:comparison_unlearning_strategies` and its appendix: how often MaxRR and perfect retraining get one verdict.

The paper counts 'in how many of the 20 runs both strategies lead to the same classification'. That is one reading. But
its own histograms allow no such agreement between runs that have nothing but the records in common. So there is another
reading: that the *numbers* of runs in which a record is claimed unlearned by each strategy differ by no more than so
many.
"""

from statistics import fmean

import numpy as np

from lab import published
from lab.comparison import compare
from lab.confidence import USUAL
from lab.lab import Lab
from lab.results import Json
from lab.verification import FIGURES, SCENARIOS, collect_verdicts

READINGS = {"same": "same", "close": "as often"}  # verdicts paired by run; numbers of runs


def measure(lab: Lab) -> Json:
    """Both readings of the figure. Taken from the verification's verdicts."""
    found, runs = collect_verdicts(lab), lab.profile.few
    cells: dict[str, Json] = {}
    curves: dict[str, Json] = {}
    for name in SCENARIOS:
        paper = published.agreement(name) if lab.comparable else {}
        shares = {reading: at_least(found[name][reading][USUAL]) for reading in READINGS}
        cells[name] = ends(shares, paper if runs == published.published()["agreement"]["runs"] else {})
        curves[name] = {
            "runs": [number / runs for number in range(runs + 1)], "ours": shares["same"], "counts": shares["close"],
            "paper": {"runs": list(paper), "shares": list(paper.values())} if paper else None,
        }  # fmt: skip
    return lab.results("agreement").finish({
        "part": "agreement", "title": "Same verdict as perfect retraining", "runs": runs, "cells": cells,
        "share_with_the_same_verdict": curves, "paper_by_itself": paper_by_itself(),
    }, lab.results("verification").read()["made"])  # fmt: skip


def ends(shares: dict[str, list[float]], paper: dict[float, float]) -> Json:
    """Both points of the curve that the paper speaks of, in both readings."""
    runs = len(shares["same"]) - 1
    return {
        f"{words} {where}": compare([shares[reading][at]], "share", paper.get(point)).to_json()
        for reading, words in READINGS.items()
        for at, point, where in ((round(0.8 * runs), 0.8, "in 80 % of runs"), (runs, 1.0, "in all runs"))
    }


def paper_by_itself() -> Json:
    """What the paper's histograms allow, beside what its curves show: the mean share of runs with the same verdict.

    Let a record be claimed unlearned with probability p by MaxRR and q by perfect retraining, in runs that have nothing
    else in common. They agree with probability pq + (1−p)(1−q), which is at most the mean of p² + (1−p)² and
    q² + (1−q)², because 2pq ≤ p² + q²: strategies agree no more with each other than each with itself.
    """
    found = {}
    for name, figure in FIGURES.items():
        histograms = published.published()[figure]["fraction_by_runs_claimed_unlearned"]
        allowed = fmean(with_itself(list(shares.values())) for shares in histograms.values())
        shown = fmean(share for at, share in published.agreement(name).items() if at > 0.0)
        found[name] = {"allowed": allowed, "shown": shown}
    return found


def with_itself(shares: list[float]) -> float:
    """How often two different runs of one strategy agree, from the share of records claimed in none, one, … all runs.

    >>> with_itself([0.5, 0.0, 0.5]), with_itself([0.0, 1.0, 0.0])
    (1.0, 0.0)
    """
    runs = len(shares) - 1
    pairs = [claimed * (claimed - 1) + (runs - claimed) * (runs - claimed - 1) for claimed in range(runs + 1)]
    return sum(share * number for share, number in zip(shares, pairs, strict=True)) / (runs * (runs - 1) * sum(shares))


def at_least(counts: list[int]) -> list[float]:
    """From records by number of runs to the share of records with at least so many.

    >>> at_least([1, 0, 3])
    [1.0, 0.75, 0.75]
    """
    shares: list[float] = (np.cumsum(counts[::-1])[::-1] / sum(counts)).tolist()
    return shares
