"""RMIA against its formula, one pair of records at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import THOROUGH

from maxrr.audit.rmia import expected_offline, expected_online, rmia, rmia_leave_one_out
from maxrr.audit.roc import auc, roc

cases = settings(deadline=None, derandomize=True, max_examples=60 if THOROUGH else 15)
probabilities = st.floats(0.01, 1.0)
pairs = st.lists(st.tuples(probabilities, probabilities), min_size=1, max_size=12).map(np.array)


@cases
@given(pairs, pairs, st.sampled_from([1.0, 1.5, 2.0]))
def test_equals_the_formula(x, z, gamma):
    scores = rmia(x[:, 0], x[:, 1], z[:, 0], z[:, 1], gamma)
    for score, (p_x, expected_x) in zip(scores, x, strict=True):
        beaten = [p_x / expected_x >= gamma * (p_z / expected_z) for p_z, expected_z in z]
        assert score == pytest.approx(sum(beaten) / len(beaten))


@cases
@given(pairs, pairs, st.randoms(use_true_random=False))
def test_order_does_not_matter_and_a_record_is_judged_by_itself(x, z, random):
    scores = rmia(x[:, 0], x[:, 1], z[:, 0], z[:, 1])
    order, mixed = random.sample(range(len(x)), len(x)), z[random.sample(range(len(z)), len(z))]
    assert rmia(*x[order].T, *mixed.T).tolist() == scores[order].tolist()
    assert rmia(*x[-1:].T, *z.T).tolist() == scores[-1:].tolist()


@st.composite
def references(draw):
    """Probabilities by reference models of records and of a population; each record has three models on either side."""
    models, records = draw(st.integers(6, 9)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    places = np.array([random.permutation(models) for _ in range(records)]).T
    member = places < draw(st.integers(3, models - 3))
    return random.random((models, records)), member, random.random((models, 7))


@cases
@given(references(), st.floats(0, 1))
def test_expected_probabilities_equal_the_formulas(problem, a):
    p, member, _ = problem
    online, offline = expected_online(p, member), expected_offline(p, member, a)
    for record, (values, saw) in enumerate(zip(p.T, member.T, strict=True)):
        outside = sum(values[~saw]) / sum(~saw)
        assert online[record] == pytest.approx((sum(values[saw]) / sum(saw) + outside) / 2)
        assert offline[record] == pytest.approx(((1 + a) * outside + (1 - a)) / 2)


@cases
@given(references(), st.none() | st.floats(0, 1))
def test_leaving_one_out_is_scoring_by_the_others(problem, a):
    p, member, population = problem
    found = rmia_leave_one_out(p, member, population, 1.1, a)
    for model in range(len(p)):
        others = np.delete(p, model, axis=0), np.delete(member, model, axis=0)
        expected = expected_online(*others) if a is None else expected_offline(*others, a)
        means = np.delete(population, model, axis=0).mean(axis=0)
        np.testing.assert_allclose(found[model], rmia(p[model], expected, population[model], means, 1.1), rtol=1e-12)


def test_equal_ratios_count_at_gamma_one_only():
    assert rmia([0.5], [0.5], [0.25, 0.75], [0.25, 0.75], gamma=1.0).tolist() == [1.0]
    assert rmia([0.5], [0.5], [0.25, 0.75], [0.25, 0.75], gamma=1.01).tolist() == [0.0]


def test_impossible_and_certain_labels_stay_finite():
    scores = rmia([0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5], [0.5, 0.5], gamma=1.0)
    assert scores.tolist() == [1.0, 1.0, 0.0]  # 0 of 0 expected is as expected


def test_finds_members_with_four_models():
    """Membership halves the distance to certainty. Records differ by more, which misleads the probability alone."""
    random = np.random.default_rng(0)
    member = np.concatenate(
        [random.random((1, 500)) < 0.5, np.repeat([[True], [False]], 2, axis=0).repeat(500, axis=1)]
    )
    hard = random.uniform(0.02, 0.98, 500) * random.uniform(0.95, 1.05, (5, 500))
    p = np.clip(1 - np.where(member, hard / 2, hard), 0, 1)
    population = 1 - random.uniform(0.02, 0.98, 800) * random.uniform(0.95, 1.0, (5, 800))
    scores = rmia(p[0], expected_online(p[1:], member[1:]), population[0], population[1:].mean(axis=0), gamma=1.0)
    strong, weak = (auc(roc(values[member[0]], values[~member[0]])) for values in (scores, p[0]))
    assert strong > weak + 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rmia([0.5], [0.5, 0.5], [0.5], [0.5]), "of the records must have the same shape"),
        (lambda: rmia([0.5], [0.5], [1.5], [0.5]), "population must be probabilities"),
        (lambda: rmia([0.5], [0.5], [], []), "not be empty"),
        (lambda: rmia([0.5], [0.5], [0.5], [0.5], gamma=0.0), "gamma"),
        (lambda: expected_online([[0.5, 0.5]], [[True, False]]), "none that saw record 1"),
        (lambda: expected_online([[0.5, 0.5]], [[True, True]]), "none that did not see record 0"),
        (lambda: expected_offline([[0.5]], [[True]], 0.5), "none that did not see record 0"),
        (lambda: expected_offline([[0.5]], [[False]], 1.5), "a must be from 0 to 1"),
        (lambda: rmia_leave_one_out([[0.5]], [[False]], [[0.5]], a=0.5), "two models or more"),
        (lambda: rmia_leave_one_out([[0.5]] * 3, [[False]] * 3, [[0.5]] * 2, a=0.5), "got 3 and 2"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
