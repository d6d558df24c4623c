"""The paper's numbers are of a piece: what it derives follows from what it shows."""

import pytest

from lab import published
from lab.published import published as numbers
from lab.table import COLUMNS, ROWS
from lab.verification import FIGURES, METHODS, SCENARIOS


def test_the_histograms_numbers_follow_from_its_counts():
    figure = numbers()["support_vector_histogram"]
    counts = {int(runs): count for runs, count in figure["count_by_number_of_runs"].items()}
    assert list(counts) == list(range(1, figure["runs"] + 1))
    assert figure["derived"] == {
        "ever_support": sum(counts.values()),
        "support_in_every_run": counts[figure["runs"]],
        "mean_support_per_run": sum(runs * count for runs, count in counts.items()) / figure["runs"],
    }
    assert sum(counts.values()) <= figure["samples"]


def test_the_table_has_our_rows_and_columns():
    found = published.table()
    assert set(found) == set(ROWS)
    assert {tuple(row) for row in found.values()} == {COLUMNS}
    assert all(0.4 < accuracy < 0.91 for row in found.values() for accuracy in row.values())


@pytest.mark.parametrize("name", FIGURES.values())
def test_claims_are_shares_by_number_of_runs(name):
    figure = numbers()[name]
    assert {method.lower() for method in METHODS} == set(figure["accuracy"])
    assert {method.lower() for method in METHODS} == set(figure["fraction_by_runs_claimed_unlearned"])
    for shares in figure["fraction_by_runs_claimed_unlearned"].values():
        assert list(shares) == [str(runs) for runs in range(figure["runs"] + 1)]
        assert sum(shares.values()) == pytest.approx(1.0, abs=1e-9)
        assert min(shares.values()) >= 0.0


def test_agreement_falls_from_everybody():
    figure = numbers()["agreement"]
    curves = figure["percent_of_samples_with_same_verdict_in_at_least_this_fraction_of_runs"]
    assert set(curves) == set(SCENARIOS)
    for curve in curves.values():
        assert [float(share) for share in curve] == [number / figure["runs"] for number in range(figure["runs"] + 1)]
        percent = list(curve.values())
        assert percent[0] == 100.0
        assert percent == sorted(percent, reverse=True)
