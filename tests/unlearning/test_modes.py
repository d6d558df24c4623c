"""Training records gradients, whatever mode of PyTorch its caller is in: the bytes are the same."""

import functools
import itertools

import numpy as np
import pytest
import torch
from torch import nn

from maxrr import MaxRR
from maxrr.core import Frozen, HashCore, MiddleCore
from maxrr.nets import MLP, embed, train, train_many
from maxrr.nets.embedding import embed_to_predict
from maxrr.unlearning.blueprint import extractor_tensors
from tests.unlearning import trainings
from tests.unlearning.problems import fresh, table

RECORDS = table()
MODES = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode}


def network(draws=0.0):
    """With layers that count, and may draw."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(), *drawing(draws), nn.Linear(6, 3))


def drawing(share):
    return [nn.Dropout(share)] if share else []


def by_requests(core, given=None, **settings):
    """The hashes of a model as it is fitted, trained again, and fitted again."""
    settings = settings or {"epochs": 2}
    model = MaxRR(given or network(), core, device="cpu", **settings).fit(RECORDS)
    hashes = [model.model_hash_]
    model.unlearn(model.core_.ids[:2], core_policy="retrain")
    hashes.append(model.model_hash_)
    model.add(table(count=2, seed=9).inputs, model.classes_[:2], ids=[-1, -2], subjects=[1, 2])
    return [*hashes, model.refit().model_hash_, model.predict_proba(RECORDS).tolist()]


def by_technique():
    model = fresh(HashCore(0.5, key="house"), RECORDS, network()).fit(RECORDS)
    model.unlearn(model.core_.ids[:2], core_policy=one_step)
    return model.model_hash_


def one_step(extractor, core, *_):
    extractor(torch.tensor(core.inputs)).sum().backward()
    torch.optim.SGD(extractor.parameters(), 0.01).step()
    return extractor


def by_runs():
    runs = [train(network(), RECORDS, 3, epochs=1, device="cpu"), *train_many(network(), RECORDS, [1, 2], epochs=1)]
    return [run.loss for run in runs]


WORK = {
    "hashed": lambda: by_requests(HashCore(0.5, key="house")),
    "drawing": lambda: by_requests(HashCore(0.5, key="house"), network(0.1)),
    "in shards": lambda: by_requests(HashCore(0.9, key="house", shards=2)),
    "ranked": lambda: by_requests(MiddleCore(30, runs=2)),
    "own training": lambda: by_requests(HashCore(0.5, key="house"), MLP(5, 3), train=trainings.by_adamw),
    "technique": by_technique,
    "runs": by_runs,
}


@functools.cache
def without_a_mode(work):
    return WORK[work]()


@pytest.mark.parametrize(
    ("work", "mode"),
    [
        pytest.param(work, mode, marks=[pytest.mark.long] * (mode == "no_grad" and work not in ("hashed", "runs")))
        for work, mode in itertools.product(WORK, MODES)
    ],
)
def test_the_mode_of_the_caller_leaves_no_trace(work, mode):
    """It ended in a RuntimeError from inside. The network is made in that mode, too."""
    with MODES[mode]():
        found = WORK[work]()
        assert torch.is_inference_mode_enabled() == (mode == "inference_mode")
        assert not torch.is_grad_enabled()
    assert found == without_a_mode(work)


def test_a_network_that_was_made_in_inference_mode():
    with torch.inference_mode():
        made, extractor = network(), nn.Sequential(nn.Linear(5, 6), nn.Tanh())
        frozen = fresh(Frozen(), RECORDS, extractor).fit(RECORDS)
    assert by_requests(HashCore(0.5, key="house"), made) == without_a_mode("hashed")
    frozen.unlearn(frozen.ids_of("influential")[:1])
    assert np.isfinite(frozen.predict_proba(RECORDS)).all()
    assert not any(weights.is_inference() for weights in frozen.extractor_.parameters())


def test_a_caller_is_in_its_own_mode_between_runs():
    with torch.inference_mode():
        for _ in train_many(network(), RECORDS, [1, 2], epochs=1, device="cpu"):
            assert torch.is_inference_mode_enabled()
    for _ in train_many(network(), RECORDS, [1, 2], epochs=1, device="cpu"):
        with torch.inference_mode():
            assert torch.is_inference_mode_enabled()


def test_an_extractor_made_of_stored_weights_is_in_evaluation_mode():
    """As that of a workspace that is opened: one record is predicted without a copy of it. 1e-5 is rounding."""
    model = MaxRR(network(0.5), HashCore(0.5, key="house"), epochs=1, device="cpu").fit(RECORDS)
    state = model._fitted
    stored = state.blueprint.stored_extractor(extractor_tensors(state.extractor))
    alone = embed_to_predict(stored, RECORDS.select(RECORDS.ids[:1]), "cpu")
    np.testing.assert_allclose(alone, embed(state.extractor, RECORDS)[:1], rtol=1e-5, atol=1e-6)
