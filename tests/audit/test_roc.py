"""Curves against scikit-learn and against pairs counted one by one; intervals against SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score, roc_curve

from maxrr.audit.attacks import auc, balanced_accuracy, interval, roc, tpr_at

cases = settings(deadline=None, derandomize=True)
scores = st.lists(st.integers(-4, 4).map(float) | st.floats(-5, 5), min_size=1, max_size=25).map(np.array)


@cases
@given(scores, scores)
def test_equals_scikit_learn(members, nonmembers):
    curve = roc(members, nonmembers)
    y = np.repeat([1, 0], [members.size, nonmembers.size])
    both = np.concatenate([members, nonmembers])
    fpr, tpr, thresholds = roc_curve(y, both, drop_intermediate=False)
    np.testing.assert_allclose(curve.fpr, fpr, rtol=1e-15)
    np.testing.assert_allclose(curve.tpr, tpr, rtol=1e-15)
    np.testing.assert_array_equal(curve.thresholds, thresholds)
    assert auc(members, nonmembers) == pytest.approx(roc_auc_score(y, both), abs=1e-14)


@cases
@given(scores, scores, st.floats(0, 1))
def test_equals_what_counting_gives(members, nonmembers, limit):
    curve = roc(members, nonmembers)
    wins = sum((m > n) + (m == n) / 2 for m in members for n in nonmembers)
    assert auc(members, nonmembers) == pytest.approx(wins / (members.size * nonmembers.size), abs=1e-14)
    rates = [(np.mean(members >= t), np.mean(nonmembers >= t)) for t in (math.inf, *members, *nonmembers)]
    assert balanced_accuracy(curve) == pytest.approx(max((tpr + 1 - fpr) / 2 for tpr, fpr in rates))
    assert tpr_at(curve, limit) == pytest.approx(max(tpr for tpr, fpr in rates if fpr <= limit))


@cases
@given(scores, scores, st.randoms(use_true_random=False))
def test_order_and_monotone_rescaling_change_nothing(members, nonmembers, random):
    shuffled = np.array(random.sample(members.tolist(), members.size))
    ranks = np.unique(np.concatenate([members, nonmembers]))  # the place among all scores is a monotone rescaling
    curve = roc(members, nonmembers)
    other = roc(np.searchsorted(ranks, shuffled) ** 3.0, np.searchsorted(ranks, nonmembers) ** 3.0)
    assert other.fpr.tobytes() == curve.fpr.tobytes()
    assert other.tpr.tobytes() == curve.tpr.tobytes()


def test_constant_scores_are_chance():
    curve = roc(np.ones(7), np.ones(5))
    assert (auc(np.ones(7), np.ones(5)), balanced_accuracy(curve), tpr_at(curve, 0.5)) == (0.5, 0.5, 0.0)


def test_one_record_on_each_side():
    assert auc([1.0], [0.0]) == 1.0
    assert auc([0.0], [1.0]) == 0.0


def test_tpr_at_a_rate_that_is_reached_exactly():
    """1 of 1,000 is not above 0.1 %; 2 are."""
    curve = roc([3.0, 1.5, 0.5], np.concatenate([[2.0, 1.0], np.zeros(998)]))
    assert tpr_at(curve, 0.001) == pytest.approx(2 / 3)
    assert tpr_at(curve, 0.000999) == pytest.approx(1 / 3)
    assert tpr_at(curve, 0.002) == 1.0


@pytest.mark.parametrize("trials", [1, 2, 20, 1000])
def test_interval_equals_scipy(trials):
    for successes in {0, 1, trials // 3, trials - 1, trials}:
        theirs = binomtest(successes, trials).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose(interval(successes, trials), theirs, rtol=1e-9, atol=1e-15)
