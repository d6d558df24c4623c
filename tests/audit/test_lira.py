"""LiRA against SciPy's Gaussians, one record and one model at a time."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from maxrr.audit.attacks import PRIOR, VARIANCE_FLOOR, auc, lira
from tests.cases import THOROUGH

cases = settings(deadline=None, derandomize=True, max_examples=60 if THOROUGH else 15)


@st.composite
def problems(draw):
    """Signals of models that did not see some records, and of models that did."""
    unseen, seen, records = draw(st.integers(3, 10)), draw(st.integers(2, 8)), draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random.normal(size=(unseen, records)) * 2, random.normal(size=(seen, records)) * 2 + 3


def squares(values):
    return sum((value - np.mean(values)) ** 2 for value in values)


def plain_online(target, others, seen):
    """The densities of one model's signals, by other models, with the sums written out."""
    freedom = len(others) + len(seen) - 2
    scatter = [squares(others[:, record]) + squares(seen[:, record]) for record in range(len(target))]
    mean, found = sum(scatter) / (freedom * len(target)), []
    for record, signal in enumerate(target):
        width = max((scatter[record] + PRIOR * mean) / (freedom + PRIOR), VARIANCE_FLOOR) ** 0.5
        inside, outside = np.mean(seen[:, record]), np.mean(others[:, record])
        found.append(norm.logpdf(signal, inside, width) - norm.logpdf(signal, outside, width))
    return found


@cases
@given(problems())
def test_each_model_is_scored_by_the_others(problem):
    unseen, seen = problem
    online = lira(unseen, seen)
    for model, signals in enumerate(unseen):
        others = np.delete(unseen, model, axis=0)
        np.testing.assert_allclose(online[model], plain_online(signals, others, seen), rtol=1e-6, atol=1e-8)


@cases
@given(problems(), st.randoms(use_true_random=False))
def test_order_of_records_and_models_does_not_matter(problem, random):
    unseen, seen = problem
    records = random.sample(range(unseen.shape[1]), unseen.shape[1])
    models = random.sample(range(len(unseen)), len(unseen))
    moved = lira(unseen[models][:, records], seen[::-1, records])
    np.testing.assert_allclose(moved, lira(unseen, seen)[models][:, records], rtol=1e-6, atol=1e-8)


@cases
@given(problems(), st.floats(-5, 5), st.sampled_from([0.5, 4.0]))
def test_shift_and_scale_of_the_signals_do_not_matter(problem, shift, scale):
    unseen, seen = problem
    moved = unseen * scale + shift, seen * scale + shift
    np.testing.assert_allclose(lira(*moved), lira(unseen, seen), rtol=1e-7, atol=1e-7)


def test_models_that_do_not_differ_say_nothing():
    """Records that shape nothing: all models agree, up to 1e-10."""
    same = np.full((4, 2), 7.0)
    np.testing.assert_array_equal(lira(same, same), np.zeros((4, 2)))
    np.testing.assert_allclose(lira(same, same + 1e-10), 0.0, atol=1e-7)


def test_hard_records_do_not_pass_for_nonmembers():
    """Membership adds 1.5 to signals that differ by 10 between records: one threshold for all is blind, LiRA is not."""
    random = np.random.default_rng(0)
    hard = random.normal(0, 10, 400)
    unseen, seen = (hard + gain + random.normal(0, 0.5, (33, 400)) for gain in (0.0, 1.5))
    member = random.random(400) < 0.5
    target = np.where(member, seen[0], unseen[0])
    scores = lira(np.vstack([target, unseen[1:]]), seen[1:])[0]
    assert auc(scores[member], scores[~member]) > 0.95
    assert auc(target[member], target[~member]) < 0.65
