"""The networks we bring: what the paper's table says, and equal to PyTorch's own layers."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from maxrr.nets import MLP, LeNet5, split
from maxrr.nets.networks import AveragePool2


def plain(network):
    """The same network with PyTorch's pooling, sharing the weights."""
    return nn.Sequential(*(nn.AvgPool2d(2) if isinstance(layer, AveragePool2) else layer for layer in network))


def test_layers_of_the_papers_table():
    network = LeNet5()
    kinds = [type(layer) for layer in network]
    convolution = [nn.Conv2d, nn.ReLU, AveragePool2]
    assert kinds == [*convolution, *convolution, nn.Flatten, nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    shapes = [tuple(layer.weight.shape) for layer in network if hasattr(layer, "weight")]
    assert shapes == [(6, 1, 5, 5), (16, 6, 5, 5), (120, 400), (84, 120), (10, 84)]
    assert all(layer.stride == (1, 1) for layer in network if isinstance(layer, nn.Conv2d))
    assert sum(weights.numel() for weights in network.parameters()) == 61_706


def test_features_are_the_84_after_the_last_relu():
    network = LeNet5()
    images = torch.rand(7, 1, 28, 28)
    extractor, prediction = split(network)
    features = extractor(images)
    assert features.shape == (7, 84)
    assert torch.equal(features, nn.Sequential(*list(network)[:-1])(images))
    assert features.min() == 0.0
    assert (prediction.in_features, prediction.out_features) == (84, 10)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (2, 11, 30), (1, 13, 12)])
def test_equal_to_pytorchs_own_pooling(shape):
    torch.manual_seed(0)
    network = LeNet5(shape)
    images, labels = torch.rand(5, *shape), torch.arange(5)
    results = []
    for form in (network, plain(network)):
        network.zero_grad()
        scores = form(images)
        nn.functional.cross_entropy(scores, labels).backward()
        results.append([scores.detach(), *(weights.grad.clone() for weights in network.parameters())])
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs, rtol=0.0, atol=1e-6)


@given(channels=st.integers(1, 3), height=st.integers(4, 64), width=st.integers(4, 64), classes=st.integers(2, 12))
def test_other_sizes(channels, height, width, classes):
    network = LeNet5((channels, height, width), classes)
    scores = network(torch.rand(2, channels, height, width))
    assert scores.shape == (2, classes)
    scores.sum().backward()
    assert all(weights.grad is not None for weights in network.parameters())
    if min(height, width) >= 12 or (height, width) == (28, 28):  # nothing but the size of the image has changed
        assert network[3].padding == (0, 0)


@pytest.mark.parametrize("shape", [(28, 28), (784,), (1, 1, 28, 28), (1, 3, 28), (1, 28, 0), (0, 28, 28), ()])
def test_bad_shapes(shape):
    with pytest.raises(ValueError, match="LeNet-5 takes images"):
        LeNet5(shape)


def test_too_few_classes():
    with pytest.raises(ValueError, match="classes"):
        LeNet5(classes=0)


@given(
    lead=st.lists(st.integers(1, 3), min_size=1, max_size=2), height=st.integers(2, 15), width=st.integers(2, 15),
    double=st.booleans(), turned=st.booleans(),
)  # fmt: skip
def test_pooling_equals_pytorchs(lead, height, width, double, turned):
    torch.manual_seed(height * 100 + width)
    images = torch.randn(*lead, height, width, dtype=torch.float64 if double else torch.float32)
    theirs = images.clone().requires_grad_()
    # If turned, a view whose rows do not lie one after the other.
    ours = (images.mT.contiguous().mT if turned else images.clone()).requires_grad_()
    one, other = AveragePool2()(ours), nn.AvgPool2d(2)(theirs)
    tolerance = 1e-14 if double else 1e-6
    assert one.dtype == other.dtype
    assert torch.allclose(one, other, rtol=0.0, atol=tolerance)
    one.square().sum().backward(), other.square().sum().backward()
    assert torch.allclose(ours.grad, theirs.grad, rtol=0.0, atol=tolerance)


def test_pooling_under_vmap():
    images = torch.randn(3, 2, 4, 7, 9)
    expected = torch.stack([nn.AvgPool2d(2)(each) for each in images])
    assert torch.allclose(vmap(AveragePool2())(images), expected, atol=1e-6)
    assert torch.allclose(vmap(AveragePool2(), in_dims=4, out_dims=0)(images.movedim(0, 4)), expected, atol=1e-6)


def test_many_lenets_under_vmap():
    networks = [LeNet5((1, 8, 8), 3) for _ in range(3)]
    images = torch.rand(3, 4, 1, 8, 8)
    scores = vmap(lambda *stack: functional_call(networks[0], stack[:2], stack[2:]))(
        *stack_module_state(networks), images
    )
    for network, each, expected in zip(networks, images, scores, strict=True):
        assert torch.allclose(network(each), expected, atol=1e-6)


def test_mlp():
    network = MLP(6, 3, hidden=(8, 5))
    assert [type(layer) for layer in network] == [nn.Flatten, nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    assert network(torch.rand(4, 6)).shape == (4, 3)
    assert split(network)[0](torch.rand(4, 6)).shape == (4, 5)
    assert MLP(64, 10)(torch.rand(2, 1, 8, 8)).shape == (2, 10)  # images are tables, too
    assert len(MLP(6, 3, hidden=[4])) == 4


@pytest.mark.parametrize("network", [LeNet5((1, 8, 8), 3), MLP(64, 3)])
def test_slices_like_any_sequential(network):
    images = torch.rand(4, 1, 8, 8)
    assert torch.equal(network[-1](network[:-1](images)), network(images))


@pytest.mark.parametrize("arguments", [(0, 3), (6, 1), (6, 3, ()), (6, 3, (4, 0))])
def test_mlp_without_room(arguments):
    with pytest.raises(ValueError, match="input or more"):
        MLP(*arguments)
