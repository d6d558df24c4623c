"""Who is forgotten in the table and in the sensitivity study, and their cells against models made by hand."""

import numpy as np
import pytest

from lab.sensitivity import draw_requests, find_support
from lab.table import COLUMNS, ROWS, draw_forgotten, masks_without
from maxrr import LinearSVM
from tests.lab.problems import RECORDS, TINY, embedded

RUNS = TINY.runs


@pytest.fixture(scope="module")
def gone(lab):
    """The ids that each run unlearns, by column."""
    return {column: [set(ids.tolist()) for ids in draw_forgotten(lab, column, RUNS)] for column in COLUMNS}


def test_sizes(gone):
    sizes = {column: [len(ids) for ids in runs] for column, runs in gone.items()}
    assert sizes == {
        "top10k": [12] * RUNS, "top10k+random10k": [12 + 8] * RUNS, "nontop10k": [RECORDS - 12] * RUNS,
        "top20k": [22] * RUNS, "top20k+random10k": [22 + 8] * RUNS, "nontop20k": [RECORDS - 22] * RUNS,
    }  # fmt: skip


def test_what_contains_what(lab, gone):
    everybody = set(lab.training.ids.tolist())
    for run in range(RUNS):
        at = {column: ids[run] for column, ids in gone.items()}
        assert at["top10k"] == set(lab.ranking.top(12).tolist())
        assert at["top10k"] < at["top20k"] < at["top20k+random10k"]
        assert at["top10k"] < at["top10k+random10k"]
        for k in ("10k", "20k"):
            assert at[f"nontop{k}"] == everybody - at[f"top{k}"]


def test_only_random_records_differ_between_runs(gone):
    for column, runs in gone.items():
        assert (runs[0] == runs[1]) == ("random" not in column)


def test_masks_are_who_is_left(lab, gone):
    for column in COLUMNS:
        masks = masks_without(lab, draw_forgotten(lab, column, RUNS))
        assert [set(lab.training.ids[~mask].tolist()) for mask in masks] == gone[column]
        assert (masks[0] is masks[1]) == ("random" not in column)


@pytest.mark.parametrize("column", ["top10k+random10k", "nontop20k"])
def test_cells_are_those_of_models_made_by_hand(lab, measured, gone, column):
    labels, values = lab.training.labels, {row: [] for row in ROWS}
    for run, seed in enumerate(lab.seeds(RUNS)):
        ids = sorted(gone[column][run])
        kept = ~np.isin(lab.training.ids, ids)
        full, without = embedded(lab, lab.training, seed), embedded(lab, lab.training.without(ids), seed)
        for row, (X, queries), rows in (
            ("No", full, ...), ("SVM", full, kept), ("FE", without, ...), ("FE+SVM", without, kept)
        ):  # fmt: skip
            values[row].append(LinearSVM().fit(X[rows], labels[rows]).score(queries, lab.test.labels))
    for row in ROWS:
        cell = measured["table"]["cells"][row][column]
        assert cell["mean"] == pytest.approx(np.mean(values[row]), abs=1e-12)
        assert cell["stderr"] == pytest.approx(np.std(values[row], ddof=1) / np.sqrt(RUNS), abs=1e-12)
    assert len({tuple(accuracies) for accuracies in values.values()}) > 1


# Sensitivity


@pytest.fixture(scope="module")
def marks(lab, measured):
    """The support vectors of each run, as the study kept them."""
    return find_support(lab, lab.seeds(TINY.few), ())


def test_support_vectors_are_those_of_the_runs_own_model(lab, marks):
    for run, seed in enumerate(lab.seeds(TINY.few)):
        X, _ = embedded(lab, lab.training, seed)
        model = LinearSVM().fit(X, lab.training.labels)
        assert np.array_equal(np.flatnonzero(marks[run]), np.sort(model.support_))
    assert not np.array_equal(marks[0], marks[1])


@pytest.mark.parametrize("fraction", [*TINY.fractions, 1.0])
def test_as_many_in_every_run_and_only_its_own_support_vectors(lab, marks, fraction):
    count = round(fraction * min(int(row.sum()) for row in marks))
    for row, ids in zip(marks, draw_requests(lab, marks, fraction), strict=True):
        assert len(set(ids.tolist())) == len(ids) == count > 0
        assert set(ids.tolist()) <= set(lab.training.ids[row].tolist())


def test_sensitivity_forgets_what_was_drawn(lab, measured, marks):
    (name, run), seed = ("75%", 1), lab.seeds(2)[1]
    ids = draw_requests(lab, marks, 0.75)[run]
    X, queries = embedded(lab, lab.training.without(ids), seed)
    kept = ~np.isin(lab.training.ids, ids)
    found = measured["sensitivity"]["pieces"]
    share = f"{len(ids) / marks.sum(1).mean():.0%}"
    assert measured["sensitivity"]["forgotten"] == {share: len(ids)}
    assert found[name]["forgotten"] == len(ids)
    assert found["support"]["records"] == marks.sum(1).tolist()
    for row, rows in (("FE", ...), ("FE+SVM", kept)):
        model = LinearSVM().fit(X[rows], lab.training.labels[rows])
        assert found[name][row][run] == model.score(queries, lab.test.labels)
    X, queries = embedded(lab, lab.training, seed)
    assert found["full"][name][run] == LinearSVM().fit(X[kept], lab.training.labels[kept]).score(
        queries, lab.test.labels
    )
