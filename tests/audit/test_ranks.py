"""The test that decides: against counting, and whether it keeps the error rates that it states."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from maxrr.audit.lira import TOLERANCE, lira_leave_one_out
from maxrr.audit.ranks import holm, power, rank_p_value, shadows_needed

cases = settings(deadline=None, derandomize=True)
statistics = st.integers(-3, 3).map(float) | st.floats(-4, 4)
many = st.lists(statistics, min_size=1, max_size=20)
NULLS = 2000


def most(rate):
    """So many of NULLS happen by chance with 1e-6 at this rate: more would show that the rate is not kept."""
    return binom.isf(1e-6, NULLS, rate)


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
    """Retrained models that are the same to the byte, and one that is equal to 1e-10: no trace of any record."""
    saw = np.repeat([[False], [True]], [20, 4], axis=0).repeat(3, axis=1)
    logits = np.full((24, 3), 5.0) + saw * np.linspace(1, 2, 24)[:, None]
    logits[0] += 1e-10
    scores = lira_leave_one_out(logits, saw, form).mean(axis=1)
    assert rank_p_value(float(scores[0]), scores[1:20], tolerance=TOLERANCE) == 1.0
    logits[0] += 1e-2
    scores = lira_leave_one_out(logits, saw, form).mean(axis=1)
    assert rank_p_value(float(scores[0]), scores[1:20], "both", TOLERANCE) == 0.1


@cases
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_equals_its_steps(p_values):
    """Holm's own words: go up from the smallest and stop at the first that is not rejected."""
    adjusted = holm(p_values)
    for alpha in (0.01, 0.05, 0.3, *adjusted[adjusted < 1]):
        rejected = set()
        for done, test in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
            if p_values[test] * (len(p_values) - done) > alpha:
                break
            rejected.add(test)
        assert {test for test, p in enumerate(adjusted) if p <= alpha} == rejected


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
    flagged = 0
    for _ in range(NULLS):
        logits = random.normal(size=3) + random.gamma(1.0, size=(24, 3))
        saw = np.repeat([[False], [True]], [20, 4], axis=0).repeat(3, axis=1)
        scores = lira_leave_one_out(logits + 2.0 * saw, saw, spread="pooled").mean(axis=1)
        flagged += rank_p_value(float(scores[0]), scores[1:20]) <= 0.05
    assert flagged <= most(0.05)


def test_holm_keeps_the_family_rate():
    """Five tests of one audited model, which share half of their noise: any flag at all, at most at rate α."""
    random = np.random.default_rng(4)
    common, own = random.normal(size=(100, NULLS, 1)), random.normal(size=(100, NULLS, 5))
    drawn = common + own
    p = rank_p_value(drawn[0].ravel(), drawn[1:].reshape(99, -1)).reshape(NULLS, 5)
    families = sum(holm(family).min() <= 0.1 for family in p)
    assert families <= most(0.1)
    assert np.count_nonzero(p.min(axis=1) <= 0.1) > most(0.1)  # without it the rate is not kept


def test_power():
    null = np.arange(19.0)
    found = power([18.5, 30.0, 18.0, -5.0], null, alpha=0.05)
    assert (found.flagged, found.models, found.rate) == (2, 4, 0.5)
    assert found.low < 0.5 < found.high
    assert power([-5.0, 50.0], np.arange(39.0), alpha=0.05, sides="both").rate == 1.0
    assert power([1e9] * 50, null[:18], alpha=0.05).rate == 0.0  # 18 models can flag nothing at this level


def test_power_under_the_null_is_the_level():
    random = np.random.default_rng(8)
    found = power(random.normal(size=4000), random.normal(size=999), alpha=0.05)
    # The level that 999 null models happen to give varies by √(α(1−α)/999) = 0.0069; five deviations.
    assert abs(found.rate - 0.05) < 0.035


@pytest.mark.parametrize("sides", ["greater", "both"])
@pytest.mark.parametrize("tests", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("alpha", [0.3, 0.1, 0.05, 0.01, 0.003])
def test_shadows_needed_is_the_least_number(alpha, tests, sides):
    def best(models):
        p = rank_p_value(1e9, np.arange(models), sides)
        return holm([p] + [1.0] * (tests - 1))[0]

    models = shadows_needed(alpha, tests, sides)
    assert best(models) <= alpha
    assert models == 1 or best(models - 1) > alpha


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rank_p_value(1.0, []), "null statistics.*not be empty"),
        (lambda: rank_p_value(math.nan, [1.0]), "statistic must be finite"),
        (lambda: rank_p_value(np.ones(2), [1.0, 2.0]), "2 dimension"),
        (lambda: rank_p_value(np.ones(2), [[1.0], [2.0]]), "there are 2 statistics, and 1"),
        (lambda: rank_p_value(1.0, [1.0], sides="less"), "not at 'less'"),
        (lambda: rank_p_value(1.0, [1.0], tolerance=-1.0), "0 or more, not -1"),
        (lambda: holm([0.5, 1.2]), "from 0 to 1"),
        (lambda: holm([]), "not be empty"),
        (lambda: power([1.0], [0.0], alpha=0.0), "level"),
        (lambda: shadows_needed(1.0), "level"),
        (lambda: shadows_needed(0.05, sides="less"), "not at 'less'"),
        (lambda: shadows_needed(0.05, tests=0), "a test, not 0"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
