"""The rule that gives the finding: what it says of which models, how often it is wrong, and when it does not say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from maxrr.audit.attacks import interval, lira
from maxrr.audit.findings import (
    ALL,
    ALPHA,
    FEWEST,
    FOUND,
    INDISTINGUISHABLE,
    NOT_ENOUGH,
    WORTH,
    decide,
    is_found,
    least_share,
    rank_of_first,
    rank_p_value,
    reason,
    side,
)
from tests.cases import THOROUGH

cases = settings(deadline=None, derandomize=True, max_examples=60 if THOROUGH else 15)
seeds = st.integers(0, 2**32 - 1)
RECORDS = 8


def scores(place, models=39, seed=0, records=RECORDS):
    """Of a model so far above retrained ones in every record, and of so many of these."""
    drawn = np.random.default_rng(seed).normal(size=(1 + models, records))
    drawn[0] += place
    return drawn


def finding(place, models=39, seed=0, kept=3.0, of=5):
    """Where models that kept the records lie so far away."""
    known = [scores(kept, models, number + 1) for number in range(of)]
    return decide(scores(place, models, seed), known, known)


@pytest.mark.parametrize(
    ("place", "said"), [(6.0, "as if it remembered the records"), (-6.0, "as if it shunned the records")]
)
def test_a_model_that_stands_out_is_found_on_either_side(place, said):
    found = finding(place)
    assert (found.words, found.p_value, found.as_odd) == (FOUND, 1 / 40, 0)
    assert str(found) == f"residual influence found ({said})"
    assert (found.high, found.low) == ((1 / 40, 1.0) if place > 0 else (1.0, 1 / 40))


def test_traces_of_opposite_signs_do_not_cancel():
    halves = np.repeat([4.0, -4.0], RECORDS // 2)
    found = decide(scores(halves), [scores(3.0)], [scores(3.0)])
    assert (found.words, side(found)) == (FOUND, "in some records more than in others")
    assert min(found.high, found.low) > ALPHA  # the mean alone would have passed it


def test_a_trace_in_one_record_of_many_is_found():
    one = np.zeros(40)
    one[7] = 12.0
    assert is_found(scores(one, records=40))


def test_a_model_in_the_middle_is_not_found():
    found = finding(0.0)
    assert found.words == INDISTINGUISHABLE
    assert found.p_value > ALPHA
    assert str(found).startswith("indistinguishable from retraining at this power (models with ")
    assert found.power[least_share(found)].rate >= WORTH


def test_nothing_found_by_a_test_that_finds_nothing_is_not_enough():
    found = finding(0.0, kept=0.0)
    assert (found.words, least_share(found)) == (NOT_ENOUGH, None)
    assert "test finds" in reason(found)


def test_the_power_that_counts_is_that_of_the_question_asked():
    """A model whose extractor kept the records below heads fitted again is harder to find than one that kept all."""
    weak, strong = [scores(0.0, seed=1), scores(9.0)], [scores(9.0)] * 2
    found = decide(scores(0.0), weak, strong)
    assert (found.power[ALL].rate, found.at_most.rate) == (0.5, 1.0)
    assert found.words == NOT_ENOUGH
    assert decide(scores(0.0), strong, strong).words == INDISTINGUISHABLE


def test_too_few_models_say_so_unless_nothing_can_be_odder():
    assert 1 / (1 + FEWEST) <= ALPHA < 1 / FEWEST
    for place in (0.0, 1e6, -1e6):
        found = finding(place, FEWEST - 1, kept=1e7)
        assert found.words == NOT_ENOUGH
        assert str(found.retrained) in reason(found)
    assert finding(1e6, FEWEST).words == FOUND


def test_the_word_is_withheld_where_the_mean_alone_is_extreme():
    """A model that ranks lowest of all by its mean may stand out no further than some retrained one in other ways."""
    drawn = np.random.default_rng(3).normal(size=(40, RECORDS))
    drawn[5], drawn[6] = 9.0 * np.array([1.0, -1.0] * (RECORDS // 2)), -9.0 * np.array([1.0, -1.0] * (RECORDS // 2))
    for sign in (1.0, -1.0):
        drawn[0] = sign * 1.2
        found = decide(drawn, [scores(9.0)], [scores(9.0)])
        assert found.p_value > ALPHA
        assert min(found.high, found.low) <= ALPHA
        assert found.words == NOT_ENOUGH
        assert "mean score" in reason(found)


@cases
@given(st.integers(2, 200), st.floats(-4, 4), seeds)
def test_what_is_told_of_the_rank_belongs_together(models, place, seed):
    drawn = scores(place, models, seed)
    found, means = rank_of_first(drawn), drawn.mean(axis=1)
    assert found.p == (1 + found.as_odd) / (1 + models)
    assert (found.high, found.low) == (rank_p_value(means[0], means[1:]), rank_p_value(-means[0], -means[1:]))
    assert is_found(drawn) == (found.p <= ALPHA + 1e-12)


@cases
@given(st.integers(2, 60), st.floats(-2, 2), seeds, st.floats(0, 4))
def test_the_words_follow_from_p_the_number_of_models_power_and_the_mean(models, place, seed, kept):
    found = finding(place, models, seed, kept)
    assert found.chance == interval(found.as_odd, models)
    if found.p_value <= ALPHA + 1e-12:
        assert found.words == FOUND
    elif models < FEWEST or found.power[ALL].rate < WORTH or min(found.high, found.low) <= ALPHA + 1e-12:
        assert found.words == NOT_ENOUGH
    else:
        assert found.words == INDISTINGUISHABLE


@pytest.mark.parametrize(("models", "records"), [(19, 1), (39, 5), (39, 30), (99, 3)])
def test_honest_models_are_flagged_no_more_often_than_stated(models, records):
    """More of so many would happen with a chance of 1e-6 at that rate. Records are scattered differently, and alike."""
    audits, random = 2000, np.random.default_rng(models)
    flagged = 0
    for _ in range(audits):
        alike, size = random.standard_t(3, size=(1 + models, 1)), np.exp(random.normal(size=records))
        flagged += is_found((random.standard_t(3, size=(1 + models, records)) + alike) * size)
    assert flagged <= binom.isf(1e-6, audits, ALPHA)
    assert flagged >= binom.ppf(1e-6, audits, 0.04)  # and not by never flagging anybody


@pytest.mark.long
@pytest.mark.parametrize("twins", [False, True])
def test_a_twin_among_those_with_the_records_breaks_the_rank(twins):
    """Why models with and without the records have seeds of their own: else each retrained one is scored by a model
    that is like it in all but the records, and the audited one by none."""
    random, audits, models, records = np.random.default_rng(0), 400, 32, 8
    p = []
    for _ in range(audits):
        without = random.normal(size=(1 + models, records))
        known = (without[1:] if twins else random.normal(size=(models, records))) + 0.1
        p.append(rank_of_first(lira(without, known)).high)
    off = abs(np.mean(p) - (2 + models) / (1 + models) / 2) / (12 * audits) ** -0.5
    assert off > 6 if twins else off < 4


@cases
@given(seeds, st.integers(3, 60), st.floats(-3, 3), st.floats(0.01, 100), st.floats(-10, 10))
def test_units_and_order_do_not_matter(seed, models, place, scale, shift):
    drawn, random = scores(place, models, seed), np.random.default_rng(seed)
    other = np.vstack([drawn[:1], drawn[1:][random.permutation(models)]])[:, random.permutation(RECORDS)]
    assert rank_of_first(other * scale + shift) == rank_of_first(drawn)


def test_more_odd_is_never_less_found():
    p = [finding(place).p_value for place in np.linspace(1.0, 8.0, 20)]
    assert p == sorted(p, reverse=True)


@pytest.mark.parametrize("difference", [0.0, 1e-13])
@pytest.mark.parametrize("records", [1, 5])
def test_models_that_are_the_same_up_to_rounding_are_the_same(difference, records):
    same = np.tile(np.linspace(0.7, 1.9, records), (31, 1))
    same[0] += difference
    assert rank_of_first(same) == (1.0, 30, 1.0, 1.0)
    assert not is_found(same)


def test_no_finding_says_that_something_is_proven():
    words = {INDISTINGUISHABLE, FOUND, NOT_ENOUGH}
    assert not any(word in text for text in words for word in ("proven", "deleted", "safe", "erased"))
    assert "this power" in INDISTINGUISHABLE
