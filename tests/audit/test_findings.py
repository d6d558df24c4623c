"""The rule that gives the finding: what it says of which models, how often it is wrong, and when it does not say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.cases import THOROUGH

from maxrr.audit.findings import (
    ALPHA,
    BOTH_SIDES,
    FEWEST,
    FOUND,
    INDISTINGUISHABLE,
    NOT_ENOUGH,
    TRACES,
    WORTH,
    Power,
    decide,
    is_found,
    rank_of_first,
)  # fmt: skip
from maxrr.audit.lira import lira_leave_one_out
from maxrr.audit.ranks import rank_p_value
from maxrr.audit.roc import interval

cases = settings(deadline=None, derandomize=True, max_examples=60 if THOROUGH else 15)
seeds = st.integers(0, 2**32 - 1)


def statistics(place, models=39, seed=0):
    """Of a model at this place, and of so many retrained ones."""
    return np.concatenate([[place], np.random.default_rng(seed).normal(size=models)])


def finding(place, models=39, seed=0, kept=6.0, of=20):
    """Where models that kept the records lie so far away."""
    known = [statistics(kept, models, seed)] * of
    return decide("lira", statistics(place, models, seed), known, known)


def test_a_model_that_remembers_is_found():
    found = finding(6.0)
    assert (found.words, found.attack, found.p_value, found.as_odd) == (FOUND, "lira", 1 / 40, 0)
    assert str(found) == "residual influence found"


def test_a_model_in_the_middle_is_not():
    found = finding(0.0)
    assert found.words == INDISTINGUISHABLE == str(found)
    assert found.p_value > ALPHA


def test_nothing_found_by_a_test_that_finds_nothing_is_not_enough():
    found = finding(0.0, kept=0.5)
    assert (found.words, found.power.rate) == (NOT_ENOUGH, 0.0)
    assert str(found) == (
        "not enough evidence (nothing found, but the same test finds 0 of 20 models that kept the records)"
    )


def test_the_power_that_counts_is_that_of_the_question_asked():
    """A model whose extractor kept the records below heads fitted again is harder to find than one that kept all."""
    asked, before = [statistics(0.0)] * 5 + [statistics(9.0)] * 5, [statistics(9.0)] * 10
    found = decide("lira", statistics(0.0), asked, before)
    assert (found.power, found.at_most) == (Power.of(5, 10), Power.of(10, 10))
    assert found.words == NOT_ENOUGH
    assert decide("lira", statistics(0.0), before, before).words == INDISTINGUISHABLE


def test_too_few_models_say_so_unless_nothing_can_be_odder():
    assert 1 / (1 + FEWEST) <= ALPHA < 1 / FEWEST
    for place in (0.0, 1e6, -1e6):
        found = finding(place, FEWEST - 1, kept=1e7)
        assert found.words == NOT_ENOUGH
        assert found.reason == "18 retrained models can never show anything, 19 are the fewest that can"
    assert finding(1e6, FEWEST).words == FOUND


def test_the_other_side_counts_from_as_many_models_as_can_show_it():
    assert 1 / (1 + BOTH_SIDES) / (1 - TRACES) <= ALPHA + 1e-12 < 1 / BOTH_SIDES / (1 - TRACES)
    found, few = finding(-6.0, BOTH_SIDES), finding(-6.0, BOTH_SIDES - 1)
    assert (found.words, found.both_sides, found.too_little) == (FOUND, True, True)
    assert found.rank == "0 of 99 models retrained without the records look at least as little as if they remembered"
    assert not finding(6.0, BOTH_SIDES).too_little
    assert (few.words, few.both_sides, few.p_value) == (INDISTINGUISHABLE, False, 1.0)
    assert few.other_side == 1 / BOTH_SIDES  # it is told, and not part of the finding


@cases
@given(st.integers(2, 200), st.floats(-4, 4), seeds)
def test_p_is_the_plain_rank(models, place, seed):
    drawn = statistics(place, models, seed)
    high, low = rank_p_value(drawn[0], drawn[1:]), rank_p_value(-drawn[0], -drawn[1:])
    expected = min(1.0, high / TRACES, low / (1 - TRACES)) if models >= BOTH_SIDES else high
    found = rank_of_first(drawn)
    assert (found.p, found.other_side) == (expected, low)
    assert found.too_little == (models >= BOTH_SIDES and low / (1 - TRACES) < high / TRACES)
    as_far = drawn[1:] <= drawn[0] if found.too_little else drawn[1:] >= drawn[0]
    assert found.as_odd == np.count_nonzero(as_far)


@cases
@given(st.integers(2, 200), st.floats(-4, 4), seeds)
def test_the_interval_is_that_of_the_number_printed_beside_it(models, place, seed):
    """The share of retrained models that look as odd, and what so few of them leave open of it."""
    found = finding(place, models, seed)
    assert found.chance == interval(found.as_odd, models)
    assert found.chance[0] <= found.as_odd / models <= found.chance[1]
    if not found.both_sides:
        assert found.p_value == (1 + found.as_odd) / (1 + models)


@cases
@given(st.integers(2, 200), st.floats(-4, 4), seeds, st.floats(-1, 8))
def test_the_words_follow_from_p_the_number_of_models_and_power(models, place, seed, kept):
    found = finding(place, models, seed, kept)
    if found.p_value <= ALPHA + 1e-12:
        assert found.words == FOUND
    elif models < FEWEST or found.power.rate < WORTH:
        assert found.words == NOT_ENOUGH
    else:
        assert found.words == INDISTINGUISHABLE


@pytest.mark.parametrize("models", [19, 39, 99, 120])
def test_honest_models_are_flagged_no_more_often_than_stated(models):
    """More of so many would happen with a chance of 1e-6 at that rate."""
    audits, random = 4000, np.random.default_rng(models)
    flagged = sum(is_found(random.standard_t(3, size=1 + models)) for _ in range(audits))
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
        member = np.repeat([[False], [True]], [1 + models, models], axis=0) & np.ones((1, records), dtype=bool)
        scores = lira_leave_one_out(np.vstack([without, known]), member, "online", "common")
        p.append(rank_of_first(scores[: 1 + models].mean(axis=1)).p)
    off = abs(np.mean(p) - (2 + models) / (1 + models) / 2) / (12 * audits) ** -0.5
    assert off > 6 if twins else off < 4


@cases
@given(seeds, st.integers(3, 60), st.floats(-3, 3), st.floats(0.01, 100), st.floats(-10, 10))
def test_units_and_order_do_not_matter(seed, models, place, scale, shift):
    drawn = statistics(place, models, seed)
    order = np.random.default_rng(seed).permutation(models)
    other = np.concatenate([drawn[:1], drawn[1:][order]]) * scale + shift
    assert rank_of_first(other) == rank_of_first(drawn)


def test_more_odd_is_never_less_found():
    p = [finding(place).p_value for place in np.linspace(0.0, 8.0, 40)]
    assert p == sorted(p, reverse=True)


@pytest.mark.parametrize("difference", [0.0, 1e-13])
def test_models_that_are_the_same_up_to_rounding_are_the_same(difference):
    same = np.full(31, 0.7)
    same[0] += difference
    assert rank_of_first(same).p == 1.0
    assert not is_found(same)


def test_no_finding_says_that_something_is_proven():
    words = {INDISTINGUISHABLE, FOUND, NOT_ENOUGH}
    assert not any(word in text for text in words for word in ("proven", "deleted", "safe", "erased"))
    assert "at this power" in INDISTINGUISHABLE
