"""Unlearning on Fashion-MNIST: what is promised exactly equals the naive oracle to the byte."""

import copy

import numpy as np
import pytest

from maxrr.core import HashCore
from maxrr.data import load
from maxrr.nets import LeNet5, embed, split, train
from maxrr.svm import LinearSVM
from maxrr.unlearning import MaxRR

EPOCHS, SEED = 2, 1


@pytest.fixture(scope="module")
def some():
    training, _ = load("fashion-mnist")
    return training.select(training.ids[:10_000])


@pytest.fixture(scope="module")
def fitted(some):
    model = MaxRR(LeNet5(), HashCore(0.5, key="long"), epochs=EPOCHS, seed=SEED, device="cpu").fit(some)
    assert 4_500 < len(model.core_.ids) < 5_500
    return model


def check(model, extractor, retained):
    """Extractor and head, in bytes, against a head from scratch."""
    head = LinearSVM(C=1.0).fit(embed(extractor, retained, device="cpu"), retained.labels, keys=retained.ids)
    expected = extractor.state_dict()
    assert all(value.numpy().tobytes() == expected[name].numpy().tobytes()
               for name, value in model.extractor_.state_dict().items())  # fmt: skip
    assert model.head_.coef_.tobytes() == head.coef_.tobytes()
    assert model.head_.intercept_.tobytes() == head.intercept_.tobytes()
    assert model.manifest_ == retained.content_hash()


def trained(records, core_ids):
    run = train(LeNet5(), records.select(core_ids), SEED, epochs=EPOCHS, device="cpu", threads=1)
    return split(run.network)[0]


def test_exact_refit_of_twenty_is_the_model_that_never_saw_them(some, fitted):
    model = copy.deepcopy(fitted)
    influential = np.setdiff1d(np.sort(some.ids)[model.head_.support_], model.core_.ids)
    ids = np.random.default_rng(0).choice(influential, 20, replace=False)
    receipt = model.unlearn(ids)
    assert (receipt.guarantee, receipt.bytes_claim) == ("exact-refit", "identical")
    retained = some.without(ids)
    check(model, trained(retained, model.core_.ids), retained)


def test_exact_retrain_is_the_model_that_never_saw_them(some, fitted):
    model = copy.deepcopy(fitted)
    core = model.core_.ids.copy()
    ids = np.concatenate([core[:10], np.setdiff1d(some.ids, core)[:10]])
    receipt = model.unlearn(ids, core_policy="retrain")
    assert (receipt.guarantee, receipt.bytes_claim, receipt.unconditional) == ("exact-retrain", "identical", True)
    retained = some.without(ids)
    check(model, trained(retained, np.setdiff1d(core, ids)), retained)
    never = MaxRR(LeNet5(), HashCore(0.5, key="long"), epochs=EPOCHS, seed=SEED, device="cpu").fit(retained)
    assert model.model_hash_ == never.model_hash_
