"""Distances against their formulas, and their p-value among retrained models."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_kl

from maxrr.audit.attacks import FLOOR
from maxrr.audit.distances import QUANTILES, TIED, beside, disagreement, heads_distance, kl

cases = settings(deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def distances(points):
    """Between every two points of a line. The two in the middle of four are as far from the others: a tie."""
    return np.abs(points[:, None] - points[None, :])


@cases
@given(seeds, st.integers(1, 6), st.integers(2, 5))
def test_equal_the_formulas(random, records, classes):
    p, q = random.dirichlet(np.ones(classes), records), random.dirichlet(np.ones(classes), records)
    assert kl(p, q) == pytest.approx(sum(scipy_kl(one, other) for one, other in zip(p, q, strict=True)) / records)
    assert kl(p, p) == 0.0
    labels = p.argmax(axis=1), q.argmax(axis=1)
    assert disagreement(*labels) == sum(a != b for a, b in zip(*labels, strict=True)) / records
    heads = [(random.normal(size=(classes, 3)), random.normal(size=classes)) for _ in range(2)]
    size = [math.sqrt(sum(w.ravel() ** 2) + sum(b**2)) for w, b in heads]
    apart = math.sqrt(np.sum((heads[0][0] - heads[1][0]) ** 2) + np.sum((heads[0][1] - heads[1][1]) ** 2))
    assert heads_distance(*heads[0], *heads[1]) == pytest.approx(apart / max(size))
    assert heads_distance(*heads[0], *heads[1]) == heads_distance(*heads[1], *heads[0])


def test_probabilities_of_zero_stay_finite():
    assert kl([[1.0, 0.0]], [[0.0, 1.0]]) == pytest.approx(-math.log(FLOOR))
    assert kl([[1.0, 0.0]], [[1.0, 0.0]]) == 0.0


def test_heads_of_nothing_and_opposite_heads():
    nothing = np.zeros((2, 3)), np.zeros(2)
    assert heads_distance(*nothing, *nothing) == 0.0
    assert heads_distance([[1.0]], [0.0], [[-1.0]], [0.0]) == 2.0


@cases
@given(seeds, st.integers(2, 8))
def test_beside_equals_the_plain_loop(random, models):
    every = distances(random.normal(size=models + 1))  # the audited model is the first
    found = beside(every[0, 1:], every[1:, 1:])
    among = [every[i, j] for i in range(1, models + 1) for j in range(1, i)]
    means = [sum(row) / models for row in every]
    assert found.value == pytest.approx(means[0])
    assert found.mean == pytest.approx(np.mean(among))
    np.testing.assert_allclose(found.quantiles, np.quantile(among, QUANTILES))
    at_least = sum(mean > means[0] or math.isclose(mean, means[0], rel_tol=TIED) for mean in means[1:])
    assert found.p_value == pytest.approx((1 + at_least) / (1 + models))


def test_honest_retrainings_are_not_flagged_too_often():
    """2,000 audited models that are retrained ones: p ≤ 0.1 in 200 ± 13.4 of them, one in ten being the farthest."""
    random = np.random.default_rng(0)
    flagged = 0
    for _ in range(2000):
        every = distances(random.standard_t(3, size=10))
        flagged += beside(every[0, 1:], every[1:, 1:]).p_value <= 0.1
    assert 147 <= flagged <= 253


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: disagreement([1], [1, 2]), "same shape"),
        (lambda: disagreement([], []), "one record or more"),
        (lambda: kl([[0.5, 0.5]], [[1.0]]), "same shape"),
        (lambda: kl([[1.5, -0.5]], [[0.5, 0.5]]), "not be negative"),
        (lambda: heads_distance([[1.0]], [0.0, 0.0], [[1.0]], [0.0]), "1 heads in the weights and 2"),
        (lambda: heads_distance([[1.0]], [0.0], [[1.0, 2.0]], [0.0]), "the two heads"),
        (lambda: beside([1.0], [[0.0]]), "two retrained models"),
        (lambda: beside([1.0, 2.0], [[0.0, 1.0]]), r"pairs of shape \(1, 2\)"),
        (lambda: beside([1.0, 2.0], [[0.0, 1.0], [2.0, 0.0]]), "symmetric"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
