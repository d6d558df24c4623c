"""Sigmoids fitted to scores of SVMs that did not see the record, against plain fits, fold by fold and pair by pair."""

import numpy as np
import pytest

from lab.confidence import couple
from lab.cross_validated import FOLDS, folds_of
from lab.cross_validated import measure as cross_validated
from lab.heads import pairs
from lab.verification import METHODS
from maxrr import LinearSVM
from maxrr.svm import fit_platt
from tests.lab.problems import TINY, embedded, tiny_lab, with_ranking
from tests.lab.test_verification import claimed_unlearned


def features_of(lab, method, run):
    core = lab.top(TINY.large)
    seen = lab.training.select(core) if method == "MaxRR" else lab.training.without(core)
    return embedded(lab, seen, lab.seeds(2)[run])


def one_vs_rest(X, queries, y, kept, folds):
    """Probabilities of training and test records."""
    scores = np.zeros((len(y), len(set(y.tolist()))))
    for fold in range(FOLDS):
        model = LinearSVM().fit(X[kept & (folds != fold)], y[kept & (folds != fold)])
        scores[folds == fold] = model.decision_function(X[folds == fold])
    model = LinearSVM().fit(X[kept], y[kept])
    sigmoids = fit_platt(scores[kept], y[kept], model.classes_)
    return [sigmoids.probabilities(model.decision_function(side)) for side in (X, queries)]


def one_vs_one(X, queries, y, kept, folds):
    """The same by pairs, of which each has records of its two classes alone."""
    sigmoids, columns = [], ([], [])
    for pair in pairs(range(len(set(y.tolist())))):
        rows = kept & np.isin(y, pair)
        scores = np.zeros(len(y))
        for fold in range(FOLDS):
            some = rows & (folds != fold)
            scores[folds == fold] = LinearSVM().fit(X[some], y[some]).decision_function(X[folds == fold])
        sigmoids.append(fit_platt(scores[rows], y[rows], list(pair)))
        model = LinearSVM().fit(X[rows], y[rows])
        for column, side in zip(columns, (X, queries), strict=True):
            column.append(model.decision_function(side))
    return [couple(sigmoids, np.stack(column, axis=1)) for column in columns]


@pytest.mark.parametrize(("heads", "by_hand"), [("one-vs-rest", one_vs_rest), ("one-vs-one", one_vs_one)])
def test_claims_are_those_of_plain_cross_validation(lab, measured, tmp_path, heads, by_hand):
    other = with_ranking(tiny_lab(tmp_path, heads=heads), lab.ranking)
    found = measured["cross-validated"] if heads == TINY.heads else cross_validated(other)
    y, truth, folds = lab.training.labels, lab.test.labels, folds_of(lab.training.ids, FOLDS)
    kept = ~lab.mask(lab.top(TINY.large))
    assert len(set(folds[kept].tolist())) == FOLDS
    claims = {}
    for method in METHODS:
        claims[method] = []
        for run in range(TINY.few):
            both = by_hand(*features_of(lab, method, run), y, kept, folds)
            losses, others = (-np.log(p[np.arange(len(at)), at]) for p, at in zip(both, (y, truth), strict=True))
            claims[method].append(claimed_unlearned(losses[kept].tolist(), others.tolist(), losses[~kept].tolist()))
        counts = np.sum(claims[method], axis=0)
        assert found["pieces"]["core20k"]["claimed"][method] == np.bincount(counts, minlength=3).tolist()
    same = (np.array(claims["MaxRR"]) == np.array(claims["perfect"])).sum(0)
    assert found["pieces"]["core20k"]["same"] == np.bincount(same, minlength=3).tolist()
    assert found["cells"]["both"]["same in all runs"]["mean"] == pytest.approx(np.mean(same == 2))


def test_folds_belong_to_records():
    ids = np.arange(3000)
    folds = folds_of(ids, 5)
    assert folds_of(ids[::-1][:100], 5).tolist() == folds[::-1][:100].tolist()
    assert folds_of(ids.astype(str), 5).tolist() != folds.tolist()
    # 600 a fold, give or take a deviation of 22; five of them
    assert np.abs(np.bincount(folds, minlength=5) - 600).max() < 110
