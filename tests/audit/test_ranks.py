"""The test that decides: against counting, and whether it keeps the error rates that it states."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from maxrr.audit.attacks import lira
from maxrr.audit.findings import ALPHA, FEWEST, oddness, rank_p_value, rounding
from tests.cases import THOROUGH

cases = settings(deadline=None, derandomize=True)
statistics = st.integers(-3, 3).map(float) | st.floats(-4, 4)
many = st.lists(statistics, min_size=1, max_size=20)
NULLS = 2000


def most(rate, count=NULLS):
    """So many of them happen by chance with 1e-6 at this rate: more would show that the rate is not kept."""
    return binom.isf(1e-6, count, rate)


@cases
@given(statistics, many)
def test_equals_counting(statistic, null):
    above = (1 + sum(other >= statistic for other in null)) / (1 + len(null))
    assert rank_p_value(statistic, null) == above


@cases
@given(st.integers(1, 5), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_records_are_tested_each_by_itself(records, models, seed):
    random = np.random.default_rng(seed)
    statistic, null = random.integers(4, size=records) * 1.0, random.integers(4, size=(models, records)) * 1.0
    found = rank_p_value(statistic, null)
    assert found.tolist() == [rank_p_value(statistic[i], null[:, i]) for i in range(records)]


@cases
@given(statistics, many, st.randoms(use_true_random=False))
def test_order_and_monotone_rescaling_change_nothing(statistic, null, random):
    values = sorted({statistic, *null})
    rescaled = {value: math.exp(place) for place, value in enumerate(values)}
    shuffled = [rescaled[value] for value in random.sample(null, len(null))]
    assert rank_p_value(rescaled[statistic], shuffled) == rank_p_value(statistic, null)


@cases
@given(statistics, many, st.floats(0, 2))
def test_a_tolerance_only_makes_the_test_more_careful(statistic, null, tolerance):
    assert rank_p_value(statistic, null, tolerance) >= rank_p_value(statistic, null)
    near = [other for other in null if abs(other - statistic) < tolerance]
    if len(near) == len(null):
        assert rank_p_value(statistic, null, tolerance) == 1.0


def test_a_model_equal_up_to_rounding_does_not_stand_out():
    """Retrained models that are the same to the byte, and one that is within 1e-13 of them: no trace of any record."""
    unseen, seen = np.full((20, 3), 5.0), 6.0 + np.linspace(0, 1, 4)[:, None].repeat(3, axis=1)
    for away, stands_out in ((1e-13, False), (1e-2, True)):
        unseen[0] = 5.0 + away
        odd = oddness(lira(unseen, seen))
        assert (rank_p_value(float(odd[0]), odd[1:], rounding(odd)) < 1.0) == stands_out


@pytest.mark.parametrize("models", [19, 40])
def test_p_values_are_valid_under_the_null(models):
    """For heavy tails, and for statistics with many ties, which make the test more careful."""
    random = np.random.default_rng(models)
    for drawn in (random.standard_cauchy((models + 1, NULLS)), random.integers(4, size=(models + 1, NULLS)) * 1.0):
        p = rank_p_value(drawn[0], drawn[1:])
        for alpha in (0.05, 0.1, 0.25, 0.5):
            assert np.count_nonzero(p <= alpha) <= most(alpha)


def test_p_values_are_not_more_careful_than_they_must_be():
    random = np.random.default_rng(3)
    drawn = random.normal(size=(20, NULLS))
    p = rank_p_value(drawn[0], drawn[1:])
    assert np.count_nonzero(p <= 0.05) >= NULLS - binom.isf(1e-6, NULLS, 0.95)


def test_leave_one_out_scores_keep_the_rate():
    """The whole chain: an honest model among retrained ones, scored by LiRA against the others, ranked by oddness."""
    random = np.random.default_rng(11)
    flagged, count = 0, NULLS if THOROUGH else 300
    for _ in range(count):
        unseen = random.normal(size=3) + random.gamma(1.0, size=(20, 3))
        odd = oddness(lira(unseen, unseen.mean(axis=0) + 2.0 + random.gamma(1.0, size=(4, 3))))
        flagged += rank_p_value(float(odd[0]), odd[1:]) <= 0.05
    assert flagged <= most(0.05, count)


@cases
@given(st.integers(4, 30), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_oddness_is_that_of_the_words(models, records, seed):
    """Each model beside the others, taken one by one, without the shortcuts of the sums."""
    scores = np.random.default_rng(seed).normal(size=(models, records)) * np.arange(1, 1 + records)
    lengths, by_mean = [], []
    means = scores.mean(axis=1)
    from_others = means - (means.sum() - means) / (models - 1)
    for row in range(models):
        others = np.delete(scores, row, axis=0)
        away, spread = scores[row] - others.mean(axis=0), others.std(axis=0, ddof=1)
        lengths.append(np.sqrt(np.sum(away**2 / spread)))
        side = [from_others[other] for other in range(models)
                if other != row and (from_others[other] > 0) == (from_others[row] > 0)]  # fmt: skip
        squares = np.square([*side, others.mean(axis=1).std(ddof=1)])
        by_mean.append(from_others[row] / np.sqrt(squares.mean()))
    by_length = [(length - np.delete(lengths, row).mean()) / np.delete(lengths, row).std(ddof=1)
                 for row, length in enumerate(lengths)]  # fmt: skip
    expected = [max(mean, -0.7 * mean, 0.7 * length) for mean, length in zip(by_mean, by_length, strict=True)]
    assert oddness(scores) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("records", [1, 6])
def test_a_long_tail_on_one_side_hides_nobody_on_the_other(records):
    """Losses: honest models lose much here and there; one that remembers loses nothing."""
    random = np.random.default_rng(5)
    scores = -(random.exponential(size=(40, records)) ** 2)
    scores[0] = 2.0
    assert (oddness(scores)[0] > oddness(scores)[1:]).sum() >= 38


def test_values_are_equal_up_to_rounding_of_their_own_size():
    assert 1e-10 < rounding(np.zeros(5)) < 1e-8
    assert rounding(np.array([0.0, 1e6])) > 1e-4


def test_the_fewest_models_are_the_fewest_that_can_show_anything():
    assert rank_p_value(1e9, np.arange(FEWEST)) <= ALPHA < rank_p_value(1e9, np.arange(FEWEST - 1))
