"""As many others as support vectors, and more runs of the same: against models made by hand."""

import numpy as np
import pytest

from lab.matched import IDLE, RANDOM, among, beside, measure_without
from lab.sensitivity import draw_requests, find_support
from maxrr import LinearSVM
from tests.lab.problems import RECORDS, TINY, embedded

COUNT = 3


@pytest.fixture(scope="module")
def marks(lab, measured):
    """The support vectors of each run, as the sensitivity study kept them."""
    return find_support(lab, lab.seeds(TINY.few), ())


def test_who_may_be_forgotten(lab, marks):
    idle, everybody = among(lab, IDLE, lab.seeds(TINY.few)), among(lab, RANDOM, lab.seeds(TINY.few))
    for run, row in enumerate(marks):
        assert set(idle[run].tolist()) == set(lab.training.ids[~row].tolist())
        assert len(everybody[run]) == RECORDS


@pytest.mark.parametrize("who", [IDLE, RANDOM])
def test_accuracies_are_those_of_models_made_by_hand(lab, measured, marks, who):
    before = measured["sensitivity"]["pieces"]["full"]["No"]
    found = measure_without(lab, who, COUNT, 0.1, before)
    for run, seed in enumerate(lab.seeds(TINY.few)):
        pool = lab.training.ids[~marks[run]] if who == IDLE else lab.training.ids
        gone = lab.draw(pool, COUNT, run, 10, 1 if who == IDLE else 2)
        kept = ~np.isin(lab.training.ids, gone)
        full, new = embedded(lab, lab.training, seed), embedded(lab, lab.training.without(gone), seed)
        for row, (X, queries), rows in (("SVM", full, kept), ("FE", new, ...), ("FE+SVM", new, kept)):
            model = LinearSVM().fit(X[rows], lab.training.labels[rows])
            assert found[row][run] == model.score(queries, lab.test.labels)  # of 'SVM', what need not be fitted


def test_nobody_is_forgotten_where_there_are_too_few(lab, marks):
    assert measure_without(lab, IDLE, RECORDS, 1.0, []) == {}


def test_cells_are_accuracies_and_their_differences_by_run(measured):
    cells = beside([0.5, 0.7], {IDLE: [0.6, 0.9]})
    assert set(cells) == {"support vectors", IDLE, f"support vectors less {IDLE}"}
    assert cells[f"support vectors less {IDLE}"]["mean"] == pytest.approx(-0.15)
    assert cells[f"support vectors less {IDLE}"]["stderr"] == pytest.approx(0.05)
    (share,) = measured["sensitivity"]["forgotten"]
    for row in ("SVM", "FE", "FE+SVM"):
        ours = measured["matched"]["cells"][f"{share}, {row}"]["support vectors"]
        assert ours["mean"] == measured["sensitivity"]["cells"][row][share]["mean"]


# More runs


def test_the_first_runs_are_the_sensitivitys_and_the_others_are_by_hand(lab, measured):
    pieces = measured["more-runs"]["pieces"]
    assert list(pieces) == ["runs 3 to 3"]  # as many as the ranking has, in groups of the sensitivity's size
    seed = lab.seeds(3)[2]
    X, queries = embedded(lab, lab.training, seed)
    head = LinearSVM().fit(X, lab.training.labels)
    row = np.isin(np.arange(RECORDS), head.support_)
    (gone,) = draw_requests(lab, row[None], 0.75, first=2)
    kept = ~np.isin(lab.training.ids, gone)
    new = embedded(lab, lab.training.without(gone), seed)
    labels, truth = lab.training.labels, lab.test.labels
    assert pieces["runs 3 to 3"] == {
        "No": [head.score(queries, truth)],
        "SVM": [LinearSVM().fit(X[kept], labels[kept]).score(queries, truth)],
        "FE": [LinearSVM().fit(new[0], labels).score(new[1], truth)],
        "FE+SVM": [LinearSVM().fit(new[0][kept], labels[kept]).score(new[1], truth)],
        "forgotten": len(gone), "support": [int(row.sum())],
    }  # fmt: skip
    first = measured["sensitivity"]["pieces"]
    (share,) = measured["more-runs"]["cells"]["FE"]
    values = [*first["75%"]["FE"], *pieces["runs 3 to 3"]["FE"]]
    assert measured["more-runs"]["cells"]["FE"][share]["mean"] == pytest.approx(np.mean(values))
    assert measured["more-runs"]["runs"] == len(values) == 3


def test_other_runs_draw_others(lab, marks):
    assert not np.array_equal(draw_requests(lab, marks, 0.5)[0], draw_requests(lab, marks, 0.5, first=2)[0])
