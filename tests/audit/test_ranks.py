"""The test that decides: against counting, and whether it keeps the error rates that it states."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.cases import THOROUGH

from maxrr.audit.lira import TOLERANCE, lira_leave_one_out
from maxrr.audit.ranks import rank_p_value, shadows_needed

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
    below = (1 + sum(other <= statistic for other in null)) / (1 + len(null))
    assert rank_p_value(statistic, null) == above
    assert rank_p_value(statistic, null, sides="both") == min(1.0, 2 * min(above, below))


@cases
@given(st.integers(1, 5), st.integers(1, 8), st.integers(0, 2**32 - 1), st.sampled_from(["greater", "both"]))
def test_records_are_tested_each_by_itself(records, models, seed, sides):
    random = np.random.default_rng(seed)
    statistic, null = random.integers(4, size=records) * 1.0, random.integers(4, size=(models, records)) * 1.0
    found = rank_p_value(statistic, null, sides)
    assert found.tolist() == [rank_p_value(statistic[i], null[:, i], sides) for i in range(records)]


@cases
@given(statistics, many, st.randoms(use_true_random=False))
def test_order_and_monotone_rescaling_change_nothing(statistic, null, random):
    values = sorted({statistic, *null})
    rescaled = {value: math.exp(place) for place, value in enumerate(values)}
    shuffled = [rescaled[value] for value in random.sample(null, len(null))]
    for sides in ("greater", "both"):
        assert rank_p_value(rescaled[statistic], shuffled, sides) == rank_p_value(statistic, null, sides)


@cases
@given(statistics, many, st.floats(0, 2), st.sampled_from(["greater", "both"]))
def test_a_tolerance_only_makes_the_test_more_careful(statistic, null, tolerance, sides):
    assert rank_p_value(statistic, null, sides, tolerance) >= rank_p_value(statistic, null, sides)
    near = [other for other in null if abs(other - statistic) < tolerance]
    if len(near) == len(null):
        assert rank_p_value(statistic, null, sides, tolerance) == 1.0


@pytest.mark.parametrize("form", ["online", "offline"])
def test_a_model_equal_up_to_rounding_does_not_stand_out(form):
    """Retrained models that are the same to the byte, and one that is within 1e-10 of them: no trace of any record."""
    saw = np.repeat([[False], [True]], [20, 4], axis=0).repeat(3, axis=1)
    logits = np.full((24, 3), 5.0) + saw * np.linspace(1, 2, 24)[:, None]
    logits[0] += 1e-10
    scores = lira_leave_one_out(logits, saw, form).mean(axis=1)
    assert rank_p_value(float(scores[0]), scores[1:20], tolerance=TOLERANCE) == 1.0
    logits[0] += 1e-2
    scores = lira_leave_one_out(logits, saw, form).mean(axis=1)
    assert rank_p_value(float(scores[0]), scores[1:20], "both", TOLERANCE) == 0.1


@pytest.mark.parametrize("sides", ["greater", "both"])
@pytest.mark.parametrize("models", [19, 40])
def test_p_values_are_valid_under_the_null(sides, models):
    """For heavy tails, and for statistics with many ties, which make the test more careful."""
    random = np.random.default_rng(models)
    for drawn in (random.standard_cauchy((models + 1, NULLS)), random.integers(4, size=(models + 1, NULLS)) * 1.0):
        p = rank_p_value(drawn[0], drawn[1:], sides)
        for alpha in (0.05, 0.1, 0.25, 0.5):
            assert np.count_nonzero(p <= alpha) <= most(alpha)


def test_p_values_are_not_more_careful_than_they_must_be():
    random = np.random.default_rng(3)
    drawn = random.normal(size=(20, NULLS))
    p = rank_p_value(drawn[0], drawn[1:])
    assert np.count_nonzero(p <= 0.05) >= NULLS - binom.isf(1e-6, NULLS, 0.95)


def test_leave_one_out_scores_keep_the_rate():
    """The whole chain: an honest model among retrained ones, scored by LiRA against the others, averaged, ranked."""
    random = np.random.default_rng(11)
    flagged, count = 0, NULLS if THOROUGH else 300
    for _ in range(count):
        logits = random.normal(size=3) + random.gamma(1.0, size=(24, 3))
        saw = np.repeat([[False], [True]], [20, 4], axis=0).repeat(3, axis=1)
        scores = lira_leave_one_out(logits + 2.0 * saw, saw, spread="pooled").mean(axis=1)
        flagged += rank_p_value(float(scores[0]), scores[1:20]) <= 0.05
    assert flagged <= most(0.05, count)


@pytest.mark.parametrize("alpha", [0.3, 0.1, 0.05, 0.04, 0.01, 0.003])
def test_shadows_needed_is_the_least_number(alpha):
    models = shadows_needed(alpha)
    assert rank_p_value(1e9, np.arange(models)) <= alpha
    assert models == 1 or rank_p_value(1e9, np.arange(models - 1)) > alpha


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rank_p_value(1.0, []), "null statistics.*not be empty"),
        (lambda: rank_p_value(math.nan, [1.0]), "statistic must be finite"),
        (lambda: rank_p_value(np.ones(2), [1.0, 2.0]), "2 dimension"),
        (lambda: rank_p_value(np.ones(2), [[1.0], [2.0]]), "there are 2 statistics, and 1"),
        (lambda: rank_p_value(1.0, [1.0], sides="less"), "not at 'less'"),
        (lambda: rank_p_value(1.0, [1.0], tolerance=-1.0), "0 or more, not -1"),
        (lambda: shadows_needed(1.0), "level"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
