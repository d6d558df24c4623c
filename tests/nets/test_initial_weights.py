"""Networks that were trained are told from networks that were only made."""

import pytest
import torch
from torch import nn

from maxrr.nets import MLP, LeNet5, train
from maxrr.nets.initial_weights import would_lose_weights
from tests.cases import seeds
from tests.nets.problems import ResNet, digits, dropping, normalised, table

MADE = {
    "MLP": lambda: MLP(6, 3), "small": lambda: MLP(2, 2, (2,)), "LeNet5": lambda: LeNet5((1, 8, 8)), "ResNet": ResNet,
    "normalised": normalised, "dropping": dropping, "LSTM": lambda: nn.LSTM(4, 8), "one": lambda: nn.Linear(1, 1),
    "embedding": lambda: nn.Embedding(50, 8),
    "attention": lambda: nn.TransformerEncoderLayer(16, 2, 32).linear1,
}  # fmt: skip


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_one_that_was_only_made_is_not_suspected(make):
    with torch.random.fork_rng(devices=[]):
        for seed in seeds(0, 40):
            torch.manual_seed(seed)
            assert not would_lose_weights(make())


@pytest.mark.parametrize(("network", "records", "lr"), [
    (LeNet5((1, 8, 8)), digits, 1e-3), (MLP(6, 3), table, 1e-2), (normalised(), table, 1e-3),
], ids=["LeNet5", "MLP", "normalised"])  # fmt: skip
def test_one_that_was_trained_is_found(network, records, lr):
    trained = train(network, records(), seed=0, epochs=10, lr=lr, device="cpu", threads=1).network
    assert would_lose_weights(trained)


def test_frozen_layers_and_functions_lose_nothing():
    network = MLP(6, 3)
    with torch.no_grad():
        network[1].weight.mul_(5)
    assert would_lose_weights(network)
    assert not would_lose_weights(lambda: network)
    network[1].requires_grad_(False)
    assert not would_lose_weights(network)
