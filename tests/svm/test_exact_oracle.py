"""The exact oracle against answers found by hand, a general solver, and itself. It checks optimality on its own."""

from fractions import Fraction

import numpy as np
import pytest

from tests.svm.exact_oracle import bias_interval, solve
from tests.svm.nasty import FAMILIES, problem
from tests.svm.oracles import with_clarabel

TENTH = Fraction(1, 10)


def test_two_points():
    found = solve([[0], [2]], [-1, 1], 10)
    assert (found.w, found.b) == ((1,), -1)
    assert found.multipliers == (Fraction(1, 2), Fraction(1, 2))
    assert found.on == {0, 1}
    assert not found.inside | found.outside


@pytest.mark.parametrize("C", [TENTH / 2, TENTH, 0.1, 2 * TENTH])
def test_the_end_of_an_interval_of_biases(C):
    """The samples at 1 and −1 have multiplier C, so w = 2C. The biases begin where the one at −1 is on the margin.

    They end where the one at −5, or where the one at 1, is on it.
    """
    found = solve([[1], [-1], [-5]], [1, -1, -1], C)
    C = Fraction(C)
    assert found.w == (2 * C,)
    assert found.b == min(0, 10 * C - 1)
    interval = bias_interval([2 * C, -2 * C, -10 * C], [1, -1, -1], [C] * 3)
    assert interval == (2 * C - 1, min(10 * C - 1, 1 - 2 * C))


def test_a_tie_moved_by_rounding():
    """All multipliers are C, so w = C(−3, 2, −3). The biases begin where both negatives are on the margin: 10C − 1."""
    X, y = [[2, 1, 2], [0, 4, 1], [3, 4, 3], [2, 3, 1]], [-1, 1, -1, 1]
    found = solve(X, y, TENTH)
    assert found.w == (-3 * TENTH, 2 * TENTH, -3 * TENTH)
    assert found.b == 0
    assert (found.inside, found.on, found.outside) == ({1, 3}, {0, 2}, set())
    rounded = solve(X, y, 0.1)  # a little more than a tenth
    assert rounded.b == 10 * Fraction(0.1) - 1 == Fraction(1, 2**54)
    assert (rounded.inside, rounded.on) == ({1, 3}, {0, 2})


def test_a_contradiction_beside_large_samples():
    """Equal rows with different labels cost 2C for every b in [−1, 1]. The others' margins are one at w = 0, b = 1.

    A weight of 1 / 2e5 serves them at b = 0 for ½w², but any weight costs something, and b = 1 costs nothing more.
    """
    found = solve([[2e5], [0], [0], [3e5]], [1, -1, 1, 1], 100)
    assert (found.w, found.b) == ((0,), 1)
    assert (found.inside, found.on, found.outside) == ({1}, {0, 2, 3}, set())


def test_a_penalty_for_each_sample():
    """Two samples with penalty C and one with 2C in their place are the same problem."""
    X = np.random.default_rng(0).normal(size=(9, 2))
    y = np.where(X[:, 0] + np.arange(9) % 3 > 1, 1, -1)
    twice = solve(X, y, [1.0] * 8 + [2.0])
    repeated = solve(np.vstack([X, X[-1:]]), np.append(y, y[-1]), 1.0)
    assert (twice.w, twice.b) == (repeated.w, repeated.b)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_in_any_order(family):
    """Solved, and solved again with the rows in another order and only the pivots by least number."""
    for seed in range(12):
        X, y, C = problem(family, seed)
        assert 3 <= len(X) == len(y) <= 12
        assert 1 <= X.shape[1] <= 4
        again = problem(family, seed)
        assert X.tobytes() == again[0].tobytes()
        assert (y.tolist(), C) == (again[1].tolist(), again[2])
        found = solve(X, y, C)
        order = np.random.default_rng(seed).permutation(len(y))
        other = solve(X[order], y[order], C, by_size=False)
        assert (other.w, other.b) == (found.w, found.b)
        assert other.margins == tuple(found.margins[i] for i in order)


def test_biases_of_their_family_are_intervals():
    ends = set()
    for seed in range(30):
        X, y, C = problem("bias_interval", seed)
        found = solve(X, y, C)
        scores = [label * margin - found.b for label, margin in zip(y.tolist(), found.margins, strict=True)]
        low, high = bias_interval(scores, y.tolist(), [Fraction(C)] * len(y))
        assert low < high
        ends |= {"at" if end == 0 else "near" if abs(end) < 1e-6 else "away" for end in (low, high)}
    assert ends == {"at", "near", "away"}


@pytest.mark.parametrize("family", ["small_integers", "random_normal", "separable", "float16", "halves"])
def test_agrees_with_a_general_solver(family):
    for seed in range(8):
        X, y, _ = problem(family, seed)
        found = solve(X, y, 0.7)
        w, b, value = with_clarabel(X, y, 0.7)
        np.testing.assert_allclose(w, [float(v) for v in found.w], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(value, dual(found), rtol=1e-6)
        if any(0 < a < Fraction(0.7) for a in found.multipliers):  # else the biases may be an interval
            np.testing.assert_allclose(b, float(found.b), rtol=1e-6, atol=1e-6)


def dual(found):
    """The value of the dual at the multipliers, which is that of the problem."""
    return float(sum(found.multipliers) - sum(value * value for value in found.w) / 2)


@pytest.mark.parametrize(
    ("y", "C"), [([1, 1], 1.0), ([1, 0], 1.0), ([1, -1], 0.0), ([1, -1], [1.0]), ([1, -1, 1], 1.0)]
)
def test_refusals(y, C):
    with pytest.raises(ValueError, match="must"):
        solve([[0.0], [1.0]], y, C)
