"""Platt scaling by five-fold cross-validation, as scikit-learn's `SVC(probability=True)` does it.

The sigmoids are fitted to scores of the retained records by SVMs that did not see them: each fold's by SVMs fitted to
the other four. Then they are applied to the scores of the SVMs fitted to all. For pairs of classes that is what libsvm
does, except that it draws folds anew for each pair; here a record has one fold, by its id. Only for the paper's first
figure, the whole core forgotten: it takes six fits where the others take one.
"""

import hmac
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab import published
from lab.agreement import READINGS, at_least
from lab.agreement import ends as points
from lab.confidence import calibrate
from lab.heads import Bools, Floats, Heads
from lab.lab import Features, Lab
from lab.results import Json
from lab.verification import (
    FIGURES,
    METHODS,
    Scenario,
    attack,
    ends,
    extract,
    judge_side_by_side,
    scenario,
    tally,
)
from maxrr.data.hashes import identifier_bytes

REQUEST = "core20k"
FOLDS = 5
SALT = b"maxrr: folds of Platt scaling"  # which record is in which fold need not be secret


def measure(lab: Lab) -> Json:
    """Both ends of the histograms, and the agreement of verdicts, beside the paper's."""
    results = lab.results("cross-validated")
    found = results.piece(REQUEST, lambda: tally({method: judge_runs_of(lab, method) for method in METHODS}))
    figure = published.published()[FIGURES[REQUEST]]
    comparable = lab.comparable and lab.profile.few == figure["runs"]
    cells: dict[str, Json] = {}
    for method in METHODS:
        counts = found["claimed"][method]
        paper = list(figure["fraction_by_runs_claimed_unlearned"][method.lower()].values()) if comparable else None
        row = ends([count / sum(counts) for count in counts], paper)
        cells[method] = {column: cell.to_json() for column, cell in row.items()}
    shares = {reading: at_least(found[reading]) for reading in READINGS}
    cells["both"] = points(shares, published.agreement(REQUEST) if comparable else {})
    return results.finish({
        "part": "cross-validated", "title": "Platt scaling by cross-validation", "runs": lab.profile.few,
        "cells": cells,
    })  # fmt: skip


def judge_runs_of(lab: Lab, method: str) -> Bools:
    """Which forgotten records are claimed unlearned, (runs × records); one method after the other, each kept."""

    def measure() -> Bools:
        request = scenario(lab, REQUEST)
        features = extract(lab, lab.seeds(lab.profile.few), request, (method,))[method]
        kept = ~lab.mask(request.forgotten)
        heads, unseen = fit_by_folds(lab, features, kept)
        runs = list(zip(features, heads, unseen, strict=True))
        return judge_side_by_side(lambda run: judge(lab, *run, kept, request), runs)

    return lab.keep(f"cross-validated-{method}", measure)


def fit_by_folds(lab: Lab, features: list[Features], kept: Bools) -> tuple[list[Heads], list[Floats]]:
    """For each run the heads on what is left, and scores of these records, each by heads fitted without its fold."""
    folds, runs = folds_of(lab.training.ids, FOLDS), len(features)
    masks = [kept, *(kept & (folds != fold) for fold in range(FOLDS))]
    solved = lab.fit_heads(features * len(masks), [mask for mask in masks for _ in range(runs)])
    whole = list(islice(solved, runs))
    scores = [np.empty_like(heads.scores(one.training)) for one, heads in zip(features, whole, strict=True)]
    for fold in range(FOLDS):
        rows = folds == fold
        for one, into, heads in zip(features, scores, islice(solved, runs), strict=True):
            into[rows] = heads.scores(one.training)[rows]
    return whole, [one[kept] for one in scores]


def judge(lab: Lab, features: Features, heads: Heads, unseen: Floats, kept: Bools, request: Scenario) -> Bools:
    """The attack, with sigmoids fitted to these scores."""
    scores, labels = (
        (heads.scores(features.training), heads.scores(features.test)),
        (lab.training.labels, lab.test.labels),
    )
    return attack(lab, request, *calibrate(heads, scores, labels, (unseen, lab.training.labels[kept])))


def folds_of(ids: NDArray[Any], folds: int = FOLDS) -> NDArray[np.intp]:
    """The fold of each record, 0 to folds − 1, by a hash of its id: other records and their order do not matter.

    >>> folds_of(np.arange(6), folds=2)
    array([0, 1, 1, 0, 1, 1])
    """
    hashes = (hmac.digest(SALT, identifier_bytes(id_), "sha256") for id_ in ids.tolist())
    return np.array([int.from_bytes(digest[:8], "little") % folds for digest in hashes], dtype=np.intp)
