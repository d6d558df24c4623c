"""Paired differences and Holm's correction, beside SciPy and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lab.comparison import difference, holm

p_values = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=14)


def test_a_difference_is_scipys_paired_t_test():
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(0.89, 0.004, (2, 30))
    found, wanted = difference(ours.tolist(), theirs.tolist()), stats.ttest_rel(ours, theirs)
    assert (found.t, found.p) == pytest.approx((wanted.statistic, wanted.pvalue), rel=1e-12)
    assert found.mean == pytest.approx(np.mean(ours) - np.mean(theirs))
    assert found.stderr == pytest.approx(stats.sem(ours - theirs))


def test_differences_that_do_not_vary_are_certain_or_nothing():
    assert (difference([1.0, 2.0], [0.5, 1.5]).p, difference([1.0, 2.0], [0.5, 1.5]).t) == (0.0, None)
    assert difference([1.0, 2.0], [1.0, 2.0]).p == 1.0


def test_holm_by_hand():
    """Sorted 0.005, 0.01, 0.03, 0.04: times 4, 3, 2, 1 they are 0.02, 0.03, 0.06, 0.04, and none may fall."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([]) == []


@given(p_values)
def test_holm_lies_between_no_correction_and_bonferronis_and_keeps_the_order(p):
    found = holm(p)
    assert all(one <= other <= min(1.0, len(p) * one) for one, other in zip(p, found, strict=True))
    assert [found[which] for which in np.argsort(p, kind="stable")] == sorted(found)


@given(p_values, st.floats(0.01, 0.2))
def test_holm_rejects_one_by_one_from_the_smallest(p, level):
    """As the procedure is told: until the first that is not below the level over how many are left."""
    rejected = set()
    for place, which in enumerate(np.argsort(p, kind="stable").tolist()):
        if (len(p) - place) * p[which] >= level:
            break
        rejected.add(which)
    assert {which for which, one in enumerate(holm(p)) if one < level} == rejected
