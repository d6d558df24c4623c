"""Signals against their formulas, and where these run out of digits."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxrr.audit.attacks import FLOOR, cross_entropy, logit

cases = settings(deadline=None, derandomize=True)
LABELLED = [cross_entropy, logit]


@st.composite
def problems(draw):
    """Probabilities well inside the simplex, and labels."""
    classes = draw(st.integers(2, 6))
    rows = draw(st.lists(st.lists(st.floats(0.01, 1.0), min_size=classes, max_size=classes), min_size=1, max_size=8))
    p = np.array(rows) / np.sum(rows, axis=1, keepdims=True)
    return p, np.array(draw(st.lists(st.integers(0, classes - 1), min_size=len(p), max_size=len(p))))


@cases
@given(problems())
def test_equal_the_formulas(problem):
    p, labels = problem
    for i, y in enumerate(labels):
        assert cross_entropy(p, labels)[i] == pytest.approx(-math.log(p[i, y]), abs=1e-12)
        assert logit(p, labels)[i] == pytest.approx(math.log(p[i, y] / (1 - p[i, y])), abs=1e-12)


@cases
@given(problems(), st.randoms(use_true_random=False))
def test_a_record_is_judged_by_itself(problem, random):
    p, labels = problem
    order = random.sample(range(len(p)), len(p))
    for signal in LABELLED:
        assert signal(p[order], labels[order]).tobytes() == signal(p, labels)[order].tobytes()
        assert signal(p[-1:], labels[-1:]).tobytes() == signal(p, labels)[-1:].tobytes()


def test_certainty_stays_finite():
    p, labels = [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], [0, 1]
    np.testing.assert_allclose(logit(p, labels), [-math.log(FLOOR), math.log(FLOOR)])
    np.testing.assert_allclose(cross_entropy(p, labels), [0.0, -math.log(FLOOR)], atol=1e-40)


def test_records_are_told_apart_where_their_probability_rounds_to_one():
    p = [[1.0, tiny] for tiny in (1e-17, 1e-25, 1e-40)]
    np.testing.assert_allclose(cross_entropy(p, [0, 0, 0]), [1e-17, 1e-25, 1e-40])
    np.testing.assert_allclose(logit(p, [0, 0, 0]), [math.log(1e17), math.log(1e25), math.log(1e40)])


def test_float32_probabilities_will_do():
    p = np.random.default_rng(0).dirichlet(np.ones(10), size=50).astype(np.float32)
    labels = p.argmax(axis=1)
    np.testing.assert_allclose(cross_entropy(p, labels), -np.log(p[np.arange(50), labels]), rtol=1e-5)
