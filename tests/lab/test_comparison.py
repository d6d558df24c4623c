"""The rule that says whether a number agrees with the paper's, and the test of equivalence."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lab import published
from lab.comparison import (
    compare,
    equivalence,
    error,
    half_interval,
    margin,
    spread,
    verdict,
)
from lab.rule import MARGINS

NO_ROW = list(published.table()["No"].values())
KINDS = [("accuracy", 0.8971, float(np.std(NO_ROW, ddof=1))), ("count", 20_000.0, 500.0), ("share", 0.5, 0.025)]
A_LITTLE = 1e-9
BOUNDARIES = [
    (0.0, "agrees"),
    (1.0 - A_LITTLE, "agrees"),
    (1.0 + A_LITTLE, "near"),
    (2.0 - A_LITTLE, "near"),
    (2.0 + A_LITTLE, "differs"),
]


def test_the_boundaries_themselves_are_still_on_the_good_side():
    for sign in (1, -1):  # errors of 3 and 4 are 5 together, so 10 is allowed
        assert verdict(sign * 10.0, 3.0, 4.0) == "agrees"
        assert verdict(sign * math.nextafter(10.0, 11.0), 3.0, 4.0) == "near"
        assert verdict(sign * 20.0, 3.0, 4.0) == "near"
        assert verdict(sign * math.nextafter(20.0, 21.0), 3.0, 4.0) == "differs"


@pytest.mark.parametrize(("times", "expected"), BOUNDARIES)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("kind", "paper", "theirs"), KINDS)
def test_several_runs(kind, paper, theirs, sign, times, expected):
    ours = 0.7 * theirs  # the standard error of two values this far from their mean
    difference = sign * times * 2.0 * math.hypot(theirs, ours)
    cell = compare([paper + difference - ours, paper + difference + ours], kind, paper)
    assert cell.stderr == pytest.approx(ours, rel=1e-6)
    assert cell.difference == pytest.approx(difference, abs=1e-9 * paper)
    assert cell.verdict == expected


@pytest.mark.parametrize(("times", "expected"), BOUNDARIES)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("kind", "paper", "theirs"), KINDS)
def test_a_single_run_is_as_uncertain_as_the_paper(kind, paper, theirs, sign, times, expected):
    cell = compare([paper + sign * times * 2.0 * math.sqrt(2.0) * theirs], kind, paper)
    assert (cell.stderr, cell.verdict) == (None, expected)


@pytest.mark.parametrize(("kind", "paper", "theirs"), KINDS)
def test_what_the_papers_numbers_are_taken_to_vary_by(kind, paper, theirs):
    assert error(paper, kind) == pytest.approx(theirs, rel=1e-12)


def test_accuracies_vary_as_where_nothing_was_unlearned():
    assert spread() == pytest.approx(np.std(NO_ROW, ddof=1), rel=1e-12)
    assert max(NO_ROW) - min(NO_ROW) == pytest.approx(0.0069)  # the 0.7 points that its columns differ by


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_mean_and_standard_error(values):
    cell = compare(values, "accuracy")
    assert (cell.paper, cell.difference, cell.verdict, cell.equivalence) == (None, None, None, None)
    assert cell.mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-6)
    if len(values) == 1:
        assert cell.stderr is None
    else:
        assert cell.stderr == pytest.approx(np.std(values, ddof=1) / np.sqrt(len(values)), rel=1e-6, abs=1e-6)


def test_a_cell_in_a_file_has_all_that_readers_look_for():
    cell = compare([0.5, 0.7], "accuracy", 0.65).to_json()
    assert set(cell) == {"kind", "mean", "stderr", "paper", "difference", "verdict", "equivalence"}
    assert cell["difference"] == pytest.approx(-0.05)


# Equivalence


@pytest.mark.parametrize(("kind", "paper", "theirs"), KINDS)
def test_equivalence_is_two_one_sided_tests(kind, paper, theirs):
    rng, allowed = np.random.default_rng(0), margin(paper, kind)
    assert allowed == pytest.approx(MARGINS[kind] * (paper if kind == "count" else 1.0))
    outcomes = set()
    for shift, noise in itertools.product((-2.0, -0.7, 0.0, 0.3, 0.98, 1.5), (0.1, 1.0, 4.0)):
        values = paper + allowed * (shift + noise * rng.normal(size=12) / 4.0)
        below = stats.ttest_1samp(values, paper + allowed, alternative="less").pvalue
        above = stats.ttest_1samp(values, paper - allowed, alternative="greater").pvalue
        beyond = min(
            stats.ttest_1samp(values, paper + allowed, alternative="greater").pvalue,
            stats.ttest_1samp(values, paper - allowed, alternative="less").pvalue,
        )
        wanted = "equivalent" if max(below, above) <= 0.05 else "different" if beyond < 0.05 else "open"
        assert compare(values.tolist(), kind, paper).equivalence == wanted
        outcomes.add(wanted)
    assert outcomes == {"equivalent", "different", "open"}


@settings(deadline=None, derandomize=True)
@given(st.floats(-3.0, 3.0), st.floats(0.0, 3.0), st.floats(0.0, 3.0))
def test_noise_never_helps(difference, reach, more):
    """With a wider interval an outcome stays as it is, or becomes open."""
    assert equivalence(difference, reach + more, 1.0) in (equivalence(difference, reach, 1.0), "open")


def test_a_far_number_with_a_large_error_is_near_by_the_rule_and_not_equivalent():
    noise = 0.0174 * math.sqrt(10) / math.sqrt(10 / 9)  # half of ten values to either side
    cell = compare([0.82 - noise, 0.82 + noise] * 5, "accuracy", 0.7572)
    assert (round(cell.stderr, 4), cell.verdict, cell.equivalence) == (0.0174, "near", "different")


def test_one_number_over_all_runs_has_the_assumed_error():
    reach = half_interval(0.025)
    assert compare([0.5 + 0.99 * (0.05 - reach)], "share", 0.5).equivalence == "equivalent"
    assert compare([0.5 + 1.01 * (0.05 - reach)], "share", 0.5).equivalence == "open"
    assert compare([0.5 + 1.01 * (0.05 + reach)], "share", 0.5).equivalence == "different"


def test_what_was_measured_six_times_has_a_smaller_error():
    values = [0.8997 + 2.5 * spread() / math.sqrt(6)] * 2
    assert compare(values, "accuracy", 0.8997).verdict == "agrees"
    assert compare(values, "accuracy", 0.8997, times=6).verdict == "near"


@given(st.lists(st.floats(0.0, 3_000.0), min_size=2, max_size=5), st.integers(0, 50_000))
def test_what_is_given_changes_no_verdict(outside, core):
    """Of 20,500 records that are core or influential 20,000 are given: they agree with themselves."""
    alone, together = (
        compare(outside, "count", 500.0),
        compare([core + one for one in outside], "count", 500.0 + core, given=core),
    )
    assert together.difference == pytest.approx(alone.difference, abs=1e-6)
    assert (together.verdict, together.equivalence) == (alone.verdict, alone.equivalence)
