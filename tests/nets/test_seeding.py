"""A seed decides the first weights and the shuffles, and nothing else does."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from maxrr.nets import MLP, LeNet5
from maxrr.nets.seeding import begin, shuffle
from tests.nets.problems import ResNet, bytes_of, normalised

seeds = st.integers(0, 2**70)


@given(seed=seeds, epoch=st.integers(0, 1000), count=st.integers(1, 300))
def test_shuffles_are_permutations_of_the_seed_alone(seed, epoch, count):
    order = shuffle(seed, epoch, count)
    assert np.array_equal(np.sort(order), np.arange(count))
    np.random.default_rng().normal(size=3)
    torch.rand(3)
    assert np.array_equal(shuffle(seed, epoch, count), order)


def test_seeds_and_epochs_differ():
    orders = {tuple(shuffle(seed, epoch, 20)) for seed in range(10) for epoch in range(10)}
    assert len(orders) == 100
    weights = {begin(MLP(6, 3), seed)[1].weight.detach().numpy().tobytes() for seed in range(20)}
    assert len(weights) == 20


@given(seed=seeds, noise=st.integers(0, 100))
def test_weights_depend_on_the_seed_alone(seed, noise):
    torch.manual_seed(noise)
    one = bytes_of(begin(MLP(6, 3), seed))
    torch.rand(noise + 1)
    assert bytes_of(begin(MLP(6, 3), seed)) == one
    assert bytes_of(begin(lambda: MLP(6, 3), seed)) == one  # its layers draw in the same order
    assert bytes_of(begin(begin(MLP(6, 3), seed + 1), seed)) == one  # whatever was in it


def test_pytorchs_numbers_go_on_unchanged():
    network, before = LeNet5(), torch.get_rng_state()
    begin(network, 3)
    begin(LeNet5, 3)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ZeroDivisionError):
        begin(lambda: 1 / torch.rand(0).numel(), 3)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("network", [LeNet5((1, 8, 8), 3), ResNet(), normalised()])
def test_the_network_given_is_left_as_it_was(network):
    before = bytes_of(network.eval())
    started = begin(network, 5)
    with torch.no_grad():
        for value in started.state_dict().values():
            value.fill_(7)
    assert bytes_of(network) == before
    assert not any(module.training for module in network.modules())
    assert all(module.training for module in started.modules())


def test_running_statistics_begin_anew():
    network = normalised().train()
    network(torch.randn(9, 6) + 5.0)
    started = begin(network, 0)
    assert started[1].num_batches_tracked == 0
    assert torch.equal(started[1].running_mean, torch.zeros(8))


def test_a_function_may_give_the_same_network_each_time():
    network = MLP(6, 3)
    before = bytes_of(network)
    one, other = begin(lambda: network, 0), begin(lambda: network, 1)
    with torch.no_grad():
        one[1].weight.fill_(7)
    assert bytes_of(network) == before == bytes_of(other)


def test_frozen_layers_keep_weights_and_statistics():
    network = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4), nn.BatchNorm1d(4))
    network(torch.randn(9, 6))
    network[:2].requires_grad_(False)
    started = begin(network, 0)
    assert bytes_of(started[:2]) == bytes_of(network[:2])
    assert bytes_of(started[3:]) != bytes_of(network[3:])
    assert [layer.training for layer in started] == [False, False, True, True, True]
    assert started.training


def test_a_frozen_weight_beside_a_trained_one_stays():
    """Only biases are trained, say."""
    network = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    network[0].weight.requires_grad_(False)
    started = begin(network, 0)
    assert torch.equal(started[0].weight, network[0].weight)
    assert not torch.equal(started[0].bias, network[0].bias)
    assert started[0].training


class Placed(nn.Module):
    """A fixed weight of its own above layers that are trained."""

    def __init__(self):
        super().__init__()
        self.place = nn.Parameter(torch.ones(6), requires_grad=False)
        self.norm, self.linear = nn.BatchNorm1d(6), nn.Linear(6, 3)

    def forward(self, x):
        return self.linear(self.norm(x + self.place))


def test_layers_below_a_frozen_weight_are_trained():
    started = begin(Placed(), 0)
    assert started.norm.training
    assert started.linear.training
    assert torch.equal(started.place, torch.ones(6))


class Opaque(nn.Module):
    """Has weights, but cannot draw them."""

    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(3, 6))

    def forward(self, x):
        return x @ self.weights.T


def test_a_layer_that_cannot_draw_its_weights():
    with pytest.raises(ValueError, match=r"layer 1 \(Opaque\)"):
        begin(nn.Sequential(nn.Identity(), Opaque()), 0)
    with pytest.raises(ValueError, match=r"top \(Opaque\)"):
        begin(Opaque(), 0)
    assert torch.equal(begin(Opaque, 4).weights, begin(Opaque, 4).weights)
    frozen = nn.Sequential(Opaque().requires_grad_(False), nn.Linear(3, 3))
    assert torch.equal(begin(frozen, 0)[0].weights, frozen[0].weights)


def test_nothing_to_train():
    with pytest.raises(ValueError, match="training: use embed"):
        begin(MLP(6, 3).requires_grad_(False), 0)
    with pytest.raises(ValueError, match="weights to train"):
        begin(nn.Flatten(), 0)


@pytest.mark.parametrize("seed", [-1, 0.5, -(2**40)])
def test_seeds_are_whole_numbers_from_0(seed):
    for draw in (lambda: begin(MLP(6, 3), seed), lambda: shuffle(seed, 0, 5)):
        with pytest.raises(ValueError, match="0 upwards"):
            draw()


def test_seeds_may_be_numpys():
    assert bytes_of(begin(MLP(6, 3), np.int64(7))) == bytes_of(begin(MLP(6, 3), 7))
