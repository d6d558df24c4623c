"""The power that is told: of mixtures of models that kept the records and models that did not."""

from dataclasses import replace

import numpy as np
import pytest

from maxrr.audit.attacks import interval
from maxrr.audit.findings import (
    ALL,
    HALVED,
    MIXED,
    RELABELLED,
    SHARES,
    Power,
    decide,
    least_share,
    mixture,
    power_by_alternative,
)
from tests.cases import some

RECORDS, MODELS = 20, 39


def remembering(trace, count=25, records=RECORDS, seed=0):
    """Scores of models so far above retrained ones, each with its own retrained ones."""
    random = np.random.default_rng(seed)
    found = random.normal(size=(count, 1 + MODELS, records))
    found[:, 0] += trace
    return list(found)


def test_a_mixture_has_each_part_from_where_it_says():
    (scores,) = remembering(3.0, count=1)
    order = np.random.default_rng(1).permutation(RECORDS)
    found = mixture(scores, order, kept=5, opposite=4, honest=7)
    kept, opposite, rest = order[:5], order[5:9], order[9:]
    assert np.array_equal(found[0, kept], scores[0, kept])
    assert found[0, opposite] == pytest.approx(2 * scores[1:, opposite].mean(axis=0) - scores[0, opposite])
    assert np.array_equal(found[0, rest], scores[7, rest])
    assert np.array_equal(found[1:], np.delete(scores[1:], 6, axis=0))  # its own source is no longer among the others
    assert np.array_equal(mixture(scores, order, RECORDS, 0, honest=7), scores)


def test_more_kept_is_easier_to_find_and_the_opposite_is_found_too():
    found = power_by_alternative(remembering(0.9))
    assert list(found) == [*SHARES, HALVED, RELABELLED, MIXED]
    rates = [found[name].rate for name in SHARES]
    assert rates == sorted(rates)
    assert rates[0] < 0.3 < rates[-1]
    assert found[RELABELLED].rate > 0.7  # in the other direction less counts


@pytest.mark.parametrize(("share", "kept"), some(1, [(0.25, 5), (0.5, 10)]))
def test_what_is_told_is_what_models_that_kept_a_part_are_found_by(share, kept):
    """Told from models that kept all, found in models that really kept a part: made up, so that there are many."""
    told = np.mean([power_by_alternative(remembering(1.5, seed=seed))[f"{share:.0%}".replace("%", " % kept")].rate
                    for seed in range(4)])  # fmt: skip
    parts = np.concatenate([np.full(kept, 1.5), np.zeros(RECORDS - kept)])
    found = power_by_alternative(remembering(parts, count=100))[ALL].rate
    assert told == pytest.approx(found, abs=0.1)


def test_nothing_kept_is_found_as_often_as_anybody():
    assert power_by_alternative(remembering(0.0, count=120))[ALL].rate == pytest.approx(0.05, abs=0.04)


def test_of_few_records_only_shares_that_differ_are_told():
    assert list(power_by_alternative(remembering(1.0, count=3, records=1))) == [ALL, HALVED, RELABELLED]
    assert list(power_by_alternative(remembering(1.0, count=3, records=2))) == [
        "50 % kept",
        ALL,
        HALVED,
        RELABELLED,
        MIXED,
    ]


def test_shares_that_so_few_records_come_nowhere_near_to_are_not_told():
    assert next(iter(power_by_alternative(remembering(1.0, count=3, records=3)))) == ALL
    assert "25 % kept" in power_by_alternative(remembering(1.0, count=3, records=4))


def test_half_of_the_trace_in_every_record_is_harder_to_find_than_all_of_it():
    found = power_by_alternative(remembering(1.2))
    assert found[HALVED].rate < found[ALL].rate


def test_the_opposite_of_verdicts_is_a_verdict():
    """Retrained models take nobody for a member, so that a model which shuns the records looks the same."""
    verdicts = np.zeros((1 + MODELS, RECORDS))
    verdicts[0] = 1.0
    assert power_by_alternative([verdicts] * 5)[RELABELLED].rate == 0.0


def test_the_least_share_is_one_above_which_all_are_found():
    def told(*rates):
        power = {name: Power(rate, 25, 0.0, 1.0) for name, rate in zip(SHARES, rates, strict=True)}
        return least_share(replace(decide(scores, [scores], [scores]), power=power))

    scores = remembering(0.0)[0]

    assert told(0.1, 0.5, 0.8, 1.0) == "50 % kept"
    assert told(0.9, 0.5, 0.8, 1.0) == "50 % kept"
    assert told(0.9, 0.9, 0.9, 0.9) == "10 % kept"
    assert told(0.0, 0.9, 0.9, 0.79) is None


def test_the_interval_is_for_the_models_not_for_their_mixtures():
    found = Power.of([True, True, True, False] * 25, 25)
    assert (found.rate, found.models, (found.low, found.high)) == (0.75, 25, interval(18.75, 25))
    assert str(found) == "75 %"
