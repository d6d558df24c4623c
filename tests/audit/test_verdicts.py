"""The rule that gives the verdict: what it says of which models, how often it is wrong, and when it does not say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from maxrr.audit.ranks import rank_p_value, shadows_needed
from maxrr.audit.roc import interval
from maxrr.audit.verdicts import (
    ALPHA,
    FOUND,
    INDISTINGUISHABLE,
    MANY_TIMES,
    NOT_ENOUGH,
    TRACES,
    Verdict,
    decide,
    deviations,
    p_of_first,
)  # fmt: skip

cases = settings(deadline=None, derandomize=True, max_examples=60)
ATTACKS = ["lira", "rmia"]
NEEDED = shadows_needed(ALPHA * TRACES)
seeds = st.integers(0, 2**32 - 1)


def statistics(seed, models, shift=0.0):
    return np.random.default_rng(seed).normal(shift, size=(models, len(ATTACKS)))


def verdict(audited, models=40, seed=0, known=5.0, attacks=ATTACKS):
    width = len(attacks)
    return decide(
        np.asarray(audited, dtype=float), statistics(seed, models)[:, :width], statistics(1, 20, known)[:, :width],
        attacks, 2.0,
    )  # fmt: skip


def test_a_model_that_remembers_is_found():
    found = verdict([6.0, 6.0])
    assert found.words == FOUND
    assert found.p_value == 1 / 41 / TRACES
    assert found.p_interval[0] == 0.0
    assert str(found) == "residual influence found"


@pytest.mark.parametrize("attack", [0, 1])
def test_one_attack_is_enough(attack):
    odd = np.zeros(2)
    odd[attack] = 6.0
    found = verdict(odd)
    assert (found.words, found.strongest) == (FOUND, ATTACKS[attack])


def test_a_model_in_the_middle_is_not():
    found = verdict([0.0, 0.0])
    assert found.words == INDISTINGUISHABLE == str(found)
    assert found.p_interval[0] > ALPHA
    assert found.more_shadows == 0


def test_far_below_chance_is_a_trace_too():
    """One fifth of the error goes to it, so it takes more models."""
    fewest = shadows_needed(ALPHA * (1.0 - TRACES) * (1 - 1e-9))
    assert verdict([-6.0, -6.0], fewest).words == FOUND
    assert verdict([-6.0, -6.0], fewest - 1).words != FOUND


def test_too_few_models_say_so_however_odd_it_is():
    """With so few the least possible p is above the level."""
    assert 1 / (1 + NEEDED) / TRACES <= ALPHA < 1 / NEEDED / TRACES
    for audited in ([0.0, 0.0], [1e6, 1e6], [-1e6, -1e6]):
        found = verdict(audited, NEEDED - 1)
        assert (found.words, found.more_shadows) == (NOT_ENOUGH, 2)
    assert str(found) == "not enough evidence (needs about 2 more shadow models)"
    assert verdict([1e6, 1e6], NEEDED).words == FOUND


@cases
@given(st.integers(2, 400), st.floats(-4, 4), seeds)
def test_the_words_follow_from_p_and_its_interval(models, place, seed):
    found = verdict([place, place], models, seed)
    expected, _ = p_of_first(np.vstack([[place, place], statistics(seed, models)]))
    assert found.p_value == expected
    low, high = found.p_interval
    assert 0.0 <= low <= high <= 1.0
    if models < NEEDED:
        assert found.words == NOT_ENOUGH
    elif found.p_value <= ALPHA:
        assert found.words == FOUND
    else:
        assert found.words == (NOT_ENOUGH if low <= ALPHA else INDISTINGUISHABLE)
    assert (found.more_shadows > 0) == (found.words == NOT_ENOUGH)
    assert ("needs about" in str(found)) == (found.words == NOT_ENOUGH)


@cases
@given(st.integers(NEEDED, 300), st.floats(-3, 3), seeds)
def test_about_so_many_more_would_decide(models, place, seed):
    """If p stays what it is. 'About': twice as many and ten always do, for the interval is not quite symmetric."""
    found = verdict([place, place], models, seed)
    if found.words == NOT_ENOUGH and found.more_shadows < 2 * (MANY_TIMES - 1) * models:
        then = models + found.more_shadows + 10  # half of all shadow models are retrained, and twice as many
        assert interval(round(found.p_value * (1 + then)) - 1, then)[0] > ALPHA


def test_nobody_is_told_to_train_without_end():
    """Where p is as near to the level as can be."""
    retrained = np.tile(np.arange(99.0)[:, None], 2)
    found = decide(np.full(2, 94.5), retrained, retrained, ATTACKS, 2.0)
    assert ALPHA < found.p_value < 1.3 * ALPHA
    assert found.words == NOT_ENOUGH
    assert found.more_shadows <= 2 * MANY_TIMES * 99


@pytest.mark.parametrize(("models", "attacks"), [(24, ["lira"]), (24, ATTACKS), (99, ATTACKS)])
def test_honest_models_are_flagged_no_more_often_than_stated(models, attacks):
    """More of so many would happen with a chance of 1e-6 at that rate. Attacks may go together or not."""
    audits, random = 2000, np.random.default_rng(models)
    flagged = 0
    for _ in range(audits):
        drawn = random.standard_t(3, size=(1 + models, len(attacks))) + random.normal(size=(1 + models, 1))
        flagged += decide(drawn[0], drawn[1:], drawn[1:3], attacks, 2.0).words == FOUND
    assert flagged <= binom.isf(1e-6, audits, ALPHA)
    assert flagged >= binom.ppf(1e-6, audits, 0.8 * ALPHA) / 2  # and not by never flagging anybody


def test_power_is_the_share_of_models_with_the_records_that_are_found():
    random = np.random.default_rng(0)
    retrained, known = random.normal(size=(60, 2)), random.normal(2.0, size=(30, 2))
    found = decide(np.zeros(2), retrained, known, ATTACKS, 1.5)
    flagged = sum(decide(one, retrained, known, ATTACKS, 1.5).words == FOUND for one in known)
    assert 0 < flagged < 30
    assert (found.power.flagged, found.power.models, found.power.rate) == (flagged, 30, flagged / 30)
    assert (found.power.low, found.power.high) == interval(flagged, 30)
    assert verdict([0.0, 0.0], known=0.0).power.rate < 0.2
    assert verdict([0.0, 0.0], known=50.0).power.rate == 1.0


@cases
@given(seeds, st.integers(3, 60), st.floats(-3, 3), st.floats(0.01, 100), st.floats(-10, 10))
def test_units_and_order_do_not_matter(seed, models, place, scale, shift):
    given_ = np.vstack([[place, -place], statistics(seed, models)])
    order = np.random.default_rng(seed).permutation(models)
    other = np.vstack([given_[:1], given_[1:][order]]) * [scale, 1.0] + [0.0, shift]
    assert p_of_first(other) == p_of_first(given_)
    assert p_of_first(given_[:, ::-1])[0] == p_of_first(given_)[0]


@cases
@given(seeds, st.integers(3, 60))
def test_with_one_attack_it_is_the_plain_rank(seed, models):
    drawn = statistics(seed, models + 1)[:, :1]
    high = rank_p_value(float(drawn[0, 0]), drawn[1:, 0])
    low = rank_p_value(-float(drawn[0, 0]), -drawn[1:, 0])
    assert p_of_first(drawn)[0] == min(1.0, high / TRACES, low / (1.0 - TRACES))


def test_more_odd_is_never_less_found():
    p = [verdict([place, 0.0]).p_value for place in np.linspace(0.0, 8.0, 40)]
    assert p == sorted(p, reverse=True)


@pytest.mark.parametrize("difference", [0.0, 1e-13])
def test_models_that_are_the_same_up_to_rounding_are_the_same(difference):
    """Nothing to be found, and nothing that could be."""
    same = np.full((30, 2), 0.7)
    found = decide(np.full(2, 0.7 + difference), same, same + difference, ATTACKS, 2.0)
    assert (found.words, found.p_value, found.power.flagged) == (INDISTINGUISHABLE, 1.0, 0)
    assert not deviations(np.vstack([same, same + difference])).any()


def test_an_attack_that_tells_nothing_does_not_hide_one_that_does():
    retrained = np.column_stack([np.zeros(40), statistics(0, 40)[:, 0]])
    found = decide(np.array([0.0, 9.0]), retrained, retrained, ATTACKS, 2.0)
    assert (found.words, found.strongest) == (FOUND, "rmia")


def test_no_verdict_says_that_something_is_proven():
    words = {INDISTINGUISHABLE, FOUND, NOT_ENOUGH}
    assert not any(word in text for text in words for word in ("proven", "deleted", "safe", "erased"))
    assert "at this power" in INDISTINGUISHABLE
    assert isinstance(verdict([0.0, 0.0]), Verdict)
