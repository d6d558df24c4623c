"""Heads without weights: proved where there are any, never claimed where there are none."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maxrr import LinearSVM
from maxrr.svm import validation
from maxrr.svm.exact.flat import flat_head
from maxrr.svm.problem import Samples, weigh
from tests.cases import examples

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # on purpose


def problem(X, y, C=1.0, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    own = validation.owned(validation.features(X, None))
    penalties = weigh(C, None, y.tolist(), weights)
    return Samples(own, *validation.sizes(own), y.astype(np.int64), np.ones(len(y), dtype=bool), penalties)


def even_guess(samples, positive=1):
    """All multipliers of the lighter side, and an even share of these for the other one."""
    lighter, caps = samples.codes == positive, samples.caps
    return np.where(lighter, caps, caps * (np.sum(caps[lighter]) / np.sum(caps[~lighter])))


def noise(seed, count=400, width=6, rare=0.1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, width)), (rng.random(count) < rare).astype(int)


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_noise_is_proved_to_have_no_weights(kind, C):
    X, y = noise(1)
    X[:, 2] = 0.0  # a unit that never fires
    samples = problem(kind(X), y, C)
    head = flat_head(samples, 1, even_guess(samples), None)
    assert head is not None
    assert head.certificate.decided
    assert (head.w.any(), head.b, head.certificate.weight_error, head.certificate.bias_error) == (False, -1.0, 0.0, 0.0)
    assert head.on_margin.tolist() == np.flatnonzero(y == 0).tolist()
    assert head.inside.tolist() == np.flatnonzero(y == 1).tolist()
    assert head.certificate.primal == pytest.approx(C * 2.0 * np.count_nonzero(y))
    signed = head.multipliers @ np.c_[X, np.ones(len(y))][y == 0]
    assert signed == pytest.approx(C * np.c_[X, np.ones(len(y))][y == 1].sum(0), abs=1e-9 * C)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_multipliers_that_are_told_balance_as_far_as_float64_goes(scale):
    """A proof needs no more than that some near them do."""
    X, y = noise(2, width=30)
    X *= scale * np.geomspace(1e-3, 1e3, 30)
    samples, guess = problem(X, y), np.ones(len(y))
    guess[y == 0] = flat_head(samples, 1, even_guess(samples), None).multipliers
    guess[y == 0] *= 1.0 + 1e-7 * np.random.default_rng(3).normal(size=np.count_nonzero(y == 0))
    head = flat_head(samples, 1, guess, None)
    tied, inside = X[y == 0], X[y == 1]
    away = np.abs(head.multipliers @ tied - inside.sum(0))
    assert (away <= 2.0**-42 * (head.multipliers @ np.abs(tied) + np.abs(inside).sum(0))).all()
    assert abs(head.multipliers.sum() - len(inside)) <= 2.0**-42 * len(inside)


@examples(60)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 3.0), st.booleans())
def test_what_is_proved_is_what_other_methods_find(seed, away, weighted):
    """As the rare class moves away from the other one, its head comes to have weights."""
    rng = np.random.default_rng(seed)
    X, y = noise(seed, 150, 3)
    y[:2] = 0, 1
    X[y == 1, 0] += away
    samples = problem(X, y, weights=rng.uniform(0.5, 2.0, len(y)) if weighted else None)
    proved = flat_head(samples, 1, even_guess(samples), None)
    model = LinearSVM().fit(X, y, sample_weight=samples.penalties.weights)
    assert model.certificate_[0].decided
    if proved is not None:
        assert not model.coef_.any()
        assert model.intercept_ == proved.b


def test_a_class_at_the_edge_of_the_other_has_weights():
    """Its mean is a point of the hull of the other one, but all of its weight would lie on one sample."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(300, 2)), np.zeros(300, dtype=int)
    X[:10], y[:10] = X[np.argmax(X[:, 0])], 1
    samples = problem(X, y)
    assert flat_head(samples, 1, even_guess(samples), None) is None
    assert LinearSVM().fit(X, y).coef_.any()


def test_a_feature_that_only_the_rare_class_has_is_seen():
    X, y = noise(4)
    X[:, 3] = np.where(y == 1, 1e-9, 0.0)
    samples = problem(X, y)
    assert flat_head(samples, 1, even_guess(samples), None) is None
    assert LinearSVM(1e3).fit(X, y).coef_.any()


@pytest.mark.parametrize("leaving", [1, 30])
def test_a_model_without_weights_forgets_and_learns_as_a_fit_does(leaving):
    X, y = noise(5, 3000, 20)
    rng, model = np.random.default_rng(0), LinearSVM().fit(X[:-40], y[:-40])
    rows = rng.choice(2960, leaving, replace=False)
    model.forget(rows)
    work = model._fitted.solution.work
    assert (work.cold_solves, work.passes) == (0, 0)
    model.insert(X[-40:], y[-40:])
    assert model._fitted.solution.work.cold_solves == 0
    anew = LinearSVM().fit(np.delete(X, rows, 0), np.delete(y, rows))
    assert model.coef_.tobytes() + model.intercept_.tobytes() == anew.coef_.tobytes() + anew.intercept_.tobytes()
    assert model.certificate_ == anew.certificate_


@pytest.mark.parametrize("features", [40, 300])
def test_records_that_contradict_each_other_but_for_one_are_decided(features):
    """Where smoothings narrow by 2.5 from the first, one of them ends at multipliers that nothing proves."""
    X = np.random.default_rng(1).normal(size=(2000, features))
    X, y = np.concatenate([X, X])[1:], np.concatenate([X[:, 0] > 0.0, X[:, 0] <= 0.0])[1:]
    fitted = LinearSVM(0.01).fit(X, y)
    assert [head.decided for head in fitted.certificate_] == [True]
    assert not fitted.coef_.any()
