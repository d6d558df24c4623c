"""A positive control: what the paper's attack says of the same records *before* they are forgotten.

A verification 'should be able to distinguish' a model that holds the records from one that does not, as the paper says:
V(A(D)) ≠ V(A(D∖D_f)). So the attack of the verification, with the same members, also judges the models before: MaxRR's
with heads on all records, and the perfect one's trained on all of them. Only by how much more often it then claims a
record unlearned does it show anything about forgetting.
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np

from lab.comparison import Cell, compare, equivalence, half_interval
from lab.confidence import USUAL, losses
from lab.heads import Bools, Floats, Heads
from lab.lab import Features, Lab
from lab.results import Json
from lab.rule import MARGINS
from lab.verification import (
    METHODS,
    SCENARIOS,
    Scenario,
    answer,
    attack,
    fit_heads,
    judge_runs,
    judge_side_by_side,
    scenario,
)

Seen = Literal["seen", "not seen", "reversed", "open"]

RUNS = 8  # enough for a difference, paired by run, and so many models of both methods that 16 cores have one each
BEFORE, MORE = "before", "claimed more after"


def measure(lab: Lab) -> Json:
    """Who is claimed unlearned before and after, and how well that tells them apart; finished after each request."""
    results, runs = lab.results("control"), min(RUNS, lab.profile.few)
    before = results.piece(BEFORE, lambda: judge_before(lab, runs))
    cells: dict[str, dict[str, Json]] = {}
    content: Json = {}
    for name in SCENARIOS:
        after = results.piece(name, partial(judge_after, lab, scenario(lab, name), runs))
        for method in METHODS:
            row = {column: cell.to_json() for column, cell in apart(before[name][method], after[method]).items()}
            row[MORE]["signed"] = True
            cells[f"{name}, {method}"] = row
        content = results.finish({
            "part": "control", "title": "Claimed unlearned before and after", "runs": runs, "cells": cells,
            "seen": {row: seen(columns[MORE], runs) for row, columns in cells.items()},
        })  # fmt: skip
    return content


def apart(before: Sequence[float], after: Sequence[float]) -> dict[str, Cell]:
    """Shares of claimed records, one for each run, and what they differ by, paired.

    Told apart: the share of right answers if 'claimed unlearned' is taken to mean 'after', with as many records before
    as after. A coin has a half.
    """
    both = list(zip(before, after, strict=True))
    return {
        "claimed before": compare(before, "share"),
        "claimed after": compare(after, "share"),
        MORE: compare([late - early for early, late in both], "share"),
        "told apart": compare([(late + 1.0 - early) / 2.0 for early, late in both], "share"),
    }


def seen(more: Json, runs: int) -> Seen:
    """Whether the attack surely sees the forgetting: by more points than the margin of shares; or surely does not.

    >>> seen({"mean": 0.2, "stderr": 0.01}, 8), seen({"mean": 0.01, "stderr": 0.01}, 8)
    ('seen', 'not seen')
    >>> seen({"mean": 0.04, "stderr": 0.02}, 8), seen({"mean": -0.2, "stderr": 0.01}, 8)
    ('open', 'reversed')
    """
    if more["stderr"] is None:
        return "open"
    found = equivalence(more["mean"], half_interval(more["stderr"], runs), MARGINS["share"])
    if found == "different":
        return "seen" if more["mean"] > 0.0 else "reversed"
    return "not seen" if found == "equivalent" else "open"


def judge_before(lab: Lab, runs: int) -> Json:
    """The same models for all requests, none of which they have answered: only the members differ."""
    features = {"MaxRR": lab.after_the_core[:runs], "perfect": lab.after_everything[:runs]}
    models = fit_heads(lab, features, None, lab.profile.heads)
    found: Json = {name: {} for name in SCENARIOS}
    for method in METHODS:
        both = judge_side_by_side(lambda model: cross_entropies(lab, *model), models[method])
        trained, others = np.split(both, [len(lab.training)], axis=1)
        for name in SCENARIOS:
            request = scenario(lab, name)
            claims = [attack(lab, request, *run) for run in zip(trained, others, strict=True)]
            found[name][method] = shares(np.stack(claims))
    return found


def cross_entropies(lab: Lab, features: Features, heads: Heads) -> Floats:
    """Of all training and then all test records, by heads that saw all of the former."""
    scores, labels = (
        (heads.scores(features.training), heads.scores(features.test)),
        (lab.training.labels, lab.test.labels),
    )
    return np.concatenate(losses(USUAL, heads, scores, labels, np.ones(len(lab.training), dtype=bool)))


def judge_after(lab: Lab, request: Scenario, runs: int) -> Json:
    """As in the verification."""
    models = answer(lab, lab.seeds(runs), request)
    return {method: shares(judge_runs(lab, models[method], request)) for method in METHODS}


def shares(claims: Bools) -> list[float]:
    """Of the forgotten records that each run claims unlearned."""
    found: list[float] = claims.mean(1).tolist()
    return found
