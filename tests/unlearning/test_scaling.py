"""What is fitted on records: in front of the model it is warned about, in the network it is forgotten with it."""

import numpy as np
from torch import nn

from maxrr.core import HashCore
from maxrr.data import Dataset
from maxrr.unlearning import MaxRR

DRAWN = np.random.default_rng(0)
X = (DRAWN.normal(size=(80, 2)) + np.repeat([[-1.0, 0.0], [1.0, 0.0]], 40, axis=0)).astype(np.float32)
Y = np.repeat([0, 1], 40)
UNEVEN = X * np.array([1e4, 1e-2], np.float32) + np.array([3e4, 0.0], np.float32)


def standardised():
    """A network that scales its inputs by what it has seen of them: of the core, and of nothing else."""
    scale = nn.BatchNorm1d(2, affine=False, momentum=None)
    return nn.Sequential(scale, nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))


def fresh(network=standardised):
    return MaxRR(network, HashCore(0.4, key="house"), epochs=4, batch_size=8, lr=0.02)


def test_a_scale_inside_the_network_is_forgotten_with_its_records():
    records = Dataset(UNEVEN, Y, ("no", "yes"), np.arange(80))
    model = fresh().fit(records)
    core = model.core_.ids
    seen = UNEVEN[np.isin(np.arange(80), core)]
    scale = model.extractor_[0]
    assert np.allclose(scale.running_mean.numpy(), seen.mean(axis=0), rtol=0.05, atol=0.005)
    gone = np.concatenate([core[:3], np.setdiff1d(np.arange(80), core)[:5]])
    receipt = model.unlearn(gone, core_policy="retrain")
    assert (receipt.guarantee, receipt.conditions) == ("exact-retrain", [])
    assert model.model_hash_ == fresh().fit(records.without(gone)).model_hash_
    assert not np.array_equal(model.extractor_[0].running_mean, scale.running_mean)
    assert model.score(records) > 0.75
