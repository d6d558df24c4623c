"""Heads with weights of zero, and heads that cannot be solved: said in time, and in words that callers know."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from torch import nn

from maxrr import LinearSVM
from maxrr.data import Dataset
from maxrr.svm import ConvergenceError, FlatHeadWarning
from maxrr.unlearning import replay
from tests.unlearning.problems import CORES, fresh, kinds, table, table_model


def with_noise():
    """Records of two kinds that can be told apart, and a few of a third that look like all others."""
    known = table(60, classes=2)
    rng = np.random.default_rng(1)
    strangers = known.inputs[rng.choice(60, 12, replace=False)]
    features = np.concatenate([known.inputs, strangers + 0.01 * rng.normal(size=strangers.shape)])
    labels = np.concatenate([known.labels, np.full(12, 2)])
    return Dataset(features.astype(np.float32), labels, ("shirt", "shoe", "noise"), np.arange(72))


@pytest.fixture(scope="module")
def flat_model():
    with pytest.warns(FlatHeadWarning, match="class 'noise'") as caught:
        model = fresh(CORES["hash"], with_noise()).fit(with_noise())
    assert [warning.filename for warning in caught] == [__file__]  # whoever called fit
    assert model._fitted.flat == ("noise",)
    return model


@pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")
def test_no_c_changes_it(flat_model):
    rows = flat_model._fitted.in_order()
    features = flat_model.heads_._features_of(rows)
    for C in (1e-3, 1.0, 1e3):
        assert not LinearSVM(C=C).fit(features, flat_model._fitted.records.labels[rows]).coef_[2].any()


def test_later_requests_do_not_warn_again(flat_model, here):
    """Replays do not warn either."""
    records = with_noise()
    _, influential, _ = kinds(flat_model, records)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        receipt = flat_model.unlearn(influential[:1])
        assert replay(receipt, flat_model.bundle(), records.without(influential[:1])).outcome == "identical"


def test_a_head_that_becomes_flat_is_warned_about():
    """Of four records of a kind that is told apart, the last one left looks like the rest."""
    rng = np.random.default_rng(0)
    labels = np.array([0, 1] * 30 + [2] * 4)
    features = 0.1 * rng.normal(size=(64, 2)) + np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 9.0]])[labels]
    features[-1] = [0.0, 0.0]
    records = Dataset(features.astype(np.float32), labels, ("left", "right", "up"), np.arange(64))
    model = fresh(CORES["frozen"], records, network=Same()).fit(records)
    assert model._fitted.flat == ()
    with pytest.warns(FlatHeadWarning, match="class 'up'") as caught:
        model.unlearn([60, 61, 62], core_policy="keep-extractor")
    assert [warning.filename for warning in caught] == [__file__]
    assert model._fitted.flat == ("up",)


class Same(nn.Module):
    """An extractor that gives records as they are."""

    def forward(self, x):
        return x


def test_a_head_that_cannot_be_solved_changes_nothing(monkeypatch):
    def fails(*_, **__):
        raise ConvergenceError("the head of class 1 is not solved")

    model = table_model()
    before, influential = model.model_hash_, kinds(model, table())[1]
    with monkeypatch.context() as patch:
        for name in ("fit", "_without", "_with_more"):
            patch.setattr(LinearSVM, name, fails)
        with pytest.raises(ConvergenceError, match="not solved"):
            model.unlearn(influential[:1])
        with pytest.raises(ConvergenceError, match="not solved"):
            model.replace(influential[0], np.zeros(5))
        with pytest.raises(ConvergenceError, match="not solved"):
            model.fit(replace(table(), inputs=table().inputs + 1.0))
    assert (model.model_hash_, model.content_hash_) == (before, table().content_hash())
    assert model.unlearn(influential[:1]).number == 1
