"""The same networks under other SVMs: what of the distance to the paper is the SVM's doing, not the training's.

Both ways to tell many classes apart, with three penalties C, of which the paper names none: accuracy and support
vectors on networks that saw everything. Then both ways on the networks of the verification's first request.
"""

from typing import get_args

import numpy as np

from lab import published
from lab.comparison import Cell, compare
from lab.confidence import USUAL
from lab.heads import Scheme
from lab.lab import Lab
from lab.results import Json
from lab.verification import FIGURES, METHODS, extract, fit_to_retained, scenario, tally_claims

SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
PENALTIES = (0.1, 1.0, 10.0)
USUAL_PENALTY = 1.0
REQUEST = "core20k"


def measure(lab: Lab) -> Json:
    """Every SVM beside the paper."""
    results = lab.results("svms")
    counted = results.piece("penalties", lambda: vary_penalty(lab))
    claims = results.piece("verification", lambda: verify_with_each(lab))
    papers, figure = published.published(), published.published()[FIGURES[REQUEST]]
    support = papers["support_vector_histogram"]["derived"]["mean_support_per_run"]
    accuracy = float(np.mean(list(published.table()["No"].values())))
    cells: dict[str, dict[str, Cell]] = {}
    for scheme in SCHEMES:
        for C in PENALTIES:
            found = counted[scheme][f"{C:g}"]
            cells[name(scheme, C)] = {
                "accuracy": compare(found["accuracy"], "accuracy", accuracy if lab.comparable else None),
                "support vectors a run": compare(found["support"], "count", support if lab.comparable else None),
            }
        for method in METHODS:
            counts = claims[scheme]["claimed"][method]
            comparable = lab.comparable and len(counts) == figure["runs"] + 1
            paper = figure["fraction_by_runs_claimed_unlearned"][method.lower()][str(figure["runs"])]
            share = compare([counts[-1] / sum(counts)], "share", paper if comparable else None)
            cells[name(scheme, USUAL_PENALTY)][f"claimed in all runs, {method}"] = share
    return results.finish({
        "part": "svms", "title": "The same networks under other SVMs", "runs": lab.profile.trials,
        "cells": {row: {column: cell.to_json() for column, cell in columns.items()} for row, columns in cells.items()},
    })  # fmt: skip


def name(scheme: Scheme, C: float) -> str:
    return f"{scheme}, C = {C:g}"


def vary_penalty(lab: Lab) -> Json:
    """Accuracies and numbers of support vectors, for networks that saw everything."""
    seeds = lab.seeds(lab.profile.trials)
    features = lab.embed(lab.train(seeds, lab.training))
    found: Json = {}
    for scheme in SCHEMES:
        found[scheme] = {}
        for C in PENALTIES:
            solved = list(lab.fit_heads(features, [None] * len(seeds), scheme, C))
            support = [float(heads.influential.sum()) for heads in solved]
            found[scheme][f"{C:g}"] = {"accuracy": lab.accuracies(features, solved), "support": support}
    return found


def verify_with_each(lab: Lab) -> Json:
    """Verdicts on the forgotten core, from the same networks for both schemes."""
    request = scenario(lab, REQUEST)
    features = extract(lab, lab.seeds(lab.profile.few), request)
    return {
        scheme: tally_claims(lab, fit_to_retained(lab, features, request, scheme), request, USUAL) for scheme in SCHEMES
    }
