"""RMIA against its formula, one pair of records at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxrr.audit.attacks import GAMMA, auc, rmia
from tests.cases import THOROUGH

cases = settings(deadline=None, derandomize=True, max_examples=60 if THOROUGH else 15)


@st.composite
def problems(draw):
    """Probabilities of records and of a population, by models that did not see the records and by models that did."""
    unseen, seen, records = draw(st.integers(2, 6)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [random.uniform(0.01, 1.0, (models, count)) for count in (records, 7) for models in (unseen, seen)]


@cases
@given(problems())
def test_equals_the_formula(problem):
    unseen, seen, of_unseen, of_seen = problem
    found = rmia(*problem)
    for model in range(len(unseen)):
        others = np.delete(unseen, model, axis=0)
        usual = np.vstack([np.delete(of_unseen, model, axis=0), of_seen]).mean(axis=0)
        for record, p in enumerate(unseen[model]):
            expected = (others[:, record].mean() + seen[:, record].mean()) / 2
            beaten = [p / expected >= GAMMA * z / mean for z, mean in zip(of_unseen[model], usual, strict=True)]
            assert found[model, record] == pytest.approx(np.mean(beaten))


@cases
@given(problems(), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_a_record_is_judged_by_itself(problem, random):
    unseen, seen, of_unseen, of_seen = problem
    scores = rmia(*problem)
    order = random.sample(range(unseen.shape[1]), unseen.shape[1])
    mixed = random.sample(range(7), 7)
    moved = rmia(unseen[:, order], seen[:, order], of_unseen[:, mixed], of_seen[:, mixed])
    assert moved.tolist() == scores[:, order].tolist()
    assert rmia(unseen[:, -1:], seen[:, -1:], of_unseen, of_seen).tolist() == scores[:, -1:].tolist()


def test_impossible_and_certain_labels_stay_finite():
    none, half = np.zeros((2, 1)), np.full((2, 3), 0.1)
    assert rmia(none, none, half, half).tolist() == [[0.0], [0.0]]  # 0 of 0 expected is as expected
    assert rmia(np.array([[1.0], [0.0]]), none, half, half).tolist() == [[1.0], [0.0]]


def test_finds_members_with_four_models():
    """Membership halves the distance to certainty. Records differ by more, which misleads the probability alone."""
    random = np.random.default_rng(0)
    member = random.random(500) < 0.5
    hard = random.uniform(0.02, 0.98, 500) * random.uniform(0.95, 1.05, (5, 500))
    p = np.clip(1 - np.where([member, *[[False] * 500] * 2, *[[True] * 500] * 2], hard / 2, hard), 0, 1)
    population = 1 - random.uniform(0.02, 0.98, 800) * random.uniform(0.95, 1.0, (5, 800))
    scores = rmia(p[:3], p[3:], population[:3], population[3:])[0]
    strong, weak = (auc(values[member], values[~member]) for values in (scores, p[0]))
    assert strong > weak + 0.05
