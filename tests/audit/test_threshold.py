"""The paper's attack against `alg:mia` read line by line, and the three ways to fit the probabilities under it."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maxrr.audit.attacks import Threshold

cases = settings(deadline=None, derandomize=True)
losses = st.lists(st.integers(0, 6).map(float) | st.floats(0, 6), min_size=1, max_size=20).map(np.array)


def plain(members, nonmembers):
    """Every threshold in turn, in exact arithmetic; the first of the best, from the lowest up."""
    best, found = None, None
    for threshold in sorted({*members.tolist(), *nonmembers.tolist(), math.inf}):
        tpr = Fraction(sum(loss < threshold for loss in members.tolist()), members.size)
        fpr = Fraction(sum(loss < threshold for loss in nonmembers.tolist()), nonmembers.size)
        if best is None or tpr - fpr > best:
            best, found = tpr - fpr, (threshold, float(tpr), float(fpr))
    return found


@cases
@given(losses, losses)
@example(np.array([0.0, 1, 2]), np.array([0.5, 1.5, 2.5])).via("three thresholds are equally good")
def test_equals_the_algorithm(members, nonmembers):
    attack = Threshold.fit(members, nonmembers)
    assert (attack.threshold, attack.tpr, attack.fpr) == plain(members, nonmembers)
    assert np.mean(np.asarray(members) < attack.threshold) == attack.tpr
    assert np.mean(np.asarray(nonmembers) < attack.threshold) == attack.fpr


@cases
@given(losses, losses, losses, st.randoms(use_true_random=False))
def test_order_and_monotone_rescaling_change_no_claim(members, nonmembers, queries, random):
    claims = np.asarray(queries) < Threshold.fit(members, nonmembers).threshold
    all_losses = np.unique(np.concatenate([members, nonmembers, queries]))
    members, nonmembers, queries = (np.searchsorted(all_losses, part) ** 2.0 for part in (members, nonmembers, queries))
    shuffled = random.sample(members.tolist(), members.size)
    assert (np.asarray(queries) < Threshold.fit(shuffled, nonmembers[::-1]).threshold).tolist() == claims.tolist()


def test_a_loss_at_the_threshold_is_claimed_unlearned():
    attack = Threshold.fit([0.1, 0.2], [0.5, 0.6])
    assert attack.threshold == 0.5
    assert (np.array([0.5, np.nextafter(0.5, 0)]) < attack.threshold).tolist() == [False, True]


def test_losses_that_tell_nothing_make_nobody_a_member():
    attack = Threshold.fit(np.ones(5), np.ones(3))
    assert (attack.tpr, attack.fpr) == (0.0, 0.0)
    assert attack.threshold <= 1


def test_members_that_all_lose_less():
    attack = Threshold.fit([1.0], [1.0, 2.0])
    assert (attack.threshold, attack.tpr, attack.fpr) == (2.0, 1.0, 0.5)
    assert Threshold.fit([3.0, 1.0], [1.0, 1.0]).threshold == 1.0  # to call anybody a member would only be wrong
