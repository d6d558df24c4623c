"""The refit on the remaining support vectors only (`Dp = S∖Df`), which the paper proposes to save work.

The same request is answered three ways: the heads are fitted from scratch to all retained records, from scratch to what
is left of their support vectors, and moved from where they are (`LinearSVM.forget`), which ends where the first does.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.comparison import compare
from lab.heads import SOLVE
from lab.lab import Features, Lab
from lab.results import Json
from maxrr import LinearSVM
from maxrr.svm.arrays import to_numpy

FRACTIONS = (0.01, 0.1, 0.5)  # of the support vectors, at random
TIMED = 3  # runs; seconds vary little


def measure(lab: Lab) -> Json:
    """Accuracies and seconds of the three ways."""
    results = lab.results("refit")
    found = results.piece("refits", lambda: answer_requests(lab))
    cells = {
        name: {way: compare(values, "accuracy").to_json() for way, values in accuracies.items()}
        for name, accuracies in found["accuracy"].items()
    }
    return results.finish({
        "part": "refit", "title": "Refit on the remaining support vectors", "runs": lab.profile.few, "cells": cells,
        "seconds": found["seconds"], "records": found["records"],
    })  # fmt: skip


def answer_requests(lab: Lab) -> Json:
    """Random support vectors of each model are forgotten, or the whole core."""
    core, features = lab.top(lab.profile.large), lab.after_the_core
    solved = list(lab.fit_heads(features, [None] * len(features)))
    support = [np.flatnonzero(heads.influential) for heads in solved]
    before = lab.accuracies(features, solved)
    requests = {
        f"{fraction:.0%} of the support vectors": [
            lab.draw(rows, round(fraction * len(rows)), run, round(1000 * fraction)) for run, rows in enumerate(support)
        ]
        for fraction in FRACTIONS
    }
    requests["the core"] = [np.flatnonzero(lab.mask(core))] * len(features)
    found: Json = {"accuracy": {}, "seconds": {}, "records": {}}
    for name, gone in requests.items():
        retained = [~np.isin(np.arange(len(lab.training)), rows) for rows in gone]
        remaining = [kept & heads.influential for kept, heads in zip(retained, solved, strict=True)]
        found["accuracy"][name] = {
            "before": before,
            "all retained": lab.fit_and_test(features, retained),
            "remaining support vectors": lab.fit_and_test(features, remaining),
        }
        found["records"][name] = {
            "forgotten": float(np.mean([len(rows) for rows in gone])),
            "remaining support vectors": float(np.mean([rows.sum() for rows in remaining])),
        }
        timed = [time_ways(lab, features[run], gone[run], remaining[run]) for run in range(min(TIMED, len(features)))]
        found["seconds"][name] = {way: [one[way] for one in timed] for way in timed[0]}
    return found


def time_ways(lab: Lab, features: Features, gone: NDArray[np.int64], remaining: NDArray[np.bool_]) -> dict[str, float]:
    """How long each way takes on the processor. Only one-vs-rest heads are ones that the library can move."""
    X, y, scheme = to_numpy(features.training).astype(np.float64), lab.training.labels, lab.profile.heads
    kept = ~np.isin(np.arange(len(y)), gone)
    found = {
        "all retained": time_call(lambda: SOLVE[scheme](X, y, kept, 1.0)),
        "remaining support vectors": time_call(lambda: SOLVE[scheme](X, y, remaining, 1.0)),
    }
    if scheme == "one-vs-rest":
        model = LinearSVM().fit(X, y)
        found["moved"] = time_call(lambda: model._without(gone))
    return found


def time_call(work: Callable[[], Any]) -> float:
    """Seconds of a call."""
    started = perf_counter()
    work()
    return perf_counter() - started
