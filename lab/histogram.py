"""`fig:histogram-svs-fmnist`: how many records are support vectors in how many runs."""

import numpy as np

from lab.comparison import compare
from lab.lab import Lab
from lab.published import published
from lab.results import Json


def measure(lab: Lab) -> Json:
    """Count them, in as many runs as the profile has."""
    results = lab.results("histogram")
    found = results.piece("ranking", lambda: count_by_runs(lab))
    by_runs = np.array(found["count_by_number_of_runs"])
    theirs = published()["support_vector_histogram"]
    papers = theirs["derived"] if lab.comparable else {}
    enough = lab.profile.ranked == theirs["runs"]  # 'ever' and 'always' depend on how many runs there are
    cells = {
        "ever": compare([float(by_runs[1:].sum())], "count", papers.get("ever_support") if enough else None),
        "in every run": compare([float(by_runs[-1])], "count", papers.get("support_in_every_run") if enough else None),
        "a run": compare(found["influential_a_run"], "count", papers.get("mean_support_per_run")),
    }
    return results.finish({
        "part": "histogram", "title": "Support vectors", "runs": lab.profile.ranked, "records": len(lab.training),
        "cells": {name: {"records": cell.to_json()} for name, cell in cells.items()},
        "count_by_number_of_runs": {str(runs): int(count) for runs, count in enumerate(by_runs) if runs},
        "paper": theirs["count_by_number_of_runs"] if lab.comparable else None,
    })  # fmt: skip


def count_by_runs(lab: Lab) -> Json:
    """Records by the number of runs in which they are influential, from none to all; and influential records a run."""
    ranking = lab.ranking
    a_run = [int(np.unpackbits(row, count=len(ranking.ids)).sum()) for row in ranking.votes]
    return {
        "count_by_number_of_runs": np.bincount(ranking.frequency(), minlength=len(ranking.seeds) + 1).tolist(),
        "influential_a_run": a_run,
        "worst_gap": ranking.worst_gap,
    }
