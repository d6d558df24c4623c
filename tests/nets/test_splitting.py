"""A network is its extractor and then its prediction layer."""

import copy

import pytest
import torch
from torch import nn

from maxrr.nets import MLP, LeNet5, split
from tests.nets.problems import Block, HeadFirst, ResNet, TwoNames, bytes_of, dropping, normalised

SHARED = nn.ReLU()
NETWORKS = {
    "sequential": (nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)), (6,)),
    "one activation used twice": (
        nn.Sequential(nn.Linear(6, 5), SHARED, nn.Linear(5, 5), SHARED, nn.Linear(5, 3)),
        (6,),
    ),
    "head inside a part": (nn.Sequential(nn.Linear(6, 5), nn.Sequential(nn.Tanh(), nn.Linear(5, 3))), (6,)),
    "MLP": (MLP(6, 3), (6,)),
    "LeNet-5": (LeNet5((1, 8, 8), 3), (1, 8, 8)),
    "ResNet": (ResNet(), (1, 9, 7)),
    "batch normalisation": (normalised(), (6,)),
    "dropout": (dropping(), (6,)),
    "module in a module": (nn.Sequential(nn.Identity(), ResNet()), (1, 8, 8)),
}


def warmed_up(network, shape):
    """With running statistics that are not the ones it began with."""
    torch.manual_seed(0)
    network = copy.deepcopy(network).train()
    for _ in range(3):
        network(3.0 * torch.randn(8, *shape) + 1.0)
    return network


@pytest.mark.parametrize("name", NETWORKS)
def test_together_the_parts_are_the_network(name):
    network, shape = NETWORKS[name]
    network = warmed_up(network, shape)
    extractor, prediction = split(network)
    records = torch.randn(5, *shape)
    features = extractor(records)
    assert features.shape == (5, prediction.in_features)
    assert torch.equal(prediction(features), copy.deepcopy(network).eval()(records))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_network_is_left_as_it_was(name):
    network, shape = NETWORKS[name]
    network = warmed_up(network, shape)
    before, modes = bytes_of(network), [module.training for module in network.modules()]
    names = [name for name, _ in network.named_modules()]
    extractor, prediction = split(network)
    ours = {value.data_ptr() for value in network.state_dict().values()}
    with torch.no_grad():
        for part in (extractor, prediction):
            for value in part.state_dict().values():
                assert value.data_ptr() not in ours
                value.fill_(7)
    assert bytes_of(network) == before
    assert [module.training for module in network.modules()] == modes
    assert [name for name, _ in network.named_modules()] == names


@pytest.mark.parametrize("name", NETWORKS)
def test_features_do_not_depend_on_neighbours_or_luck(name):
    """In evaluation mode; 1e-5 is the rounding of batches of different sizes."""
    network, shape = NETWORKS[name]
    extractor, prediction = split(warmed_up(network, shape))
    assert not any(module.training for part in (extractor, prediction) for module in part.modules())
    records = torch.randn(6, *shape)
    alone = torch.cat([extractor(record[None]) for record in records])
    assert torch.allclose(extractor(records), alone, atol=1e-5)
    assert torch.equal(extractor(records), extractor(records))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_extractor_knows_nothing_of_the_prediction_layer(name):
    network, shape = NETWORKS[name]
    extractor, prediction = split(warmed_up(network, shape))
    secret = {prediction.weight.data_ptr(), prediction.bias.data_ptr()}
    contents = {prediction.weight.detach().numpy().tobytes(), prediction.bias.detach().numpy().tobytes()}
    for value in extractor.state_dict().values():
        assert value.data_ptr() not in secret
        assert value.numpy().tobytes() not in contents
    count = sum(weights.numel() for weights in network.parameters())
    parts = [sum(weights.numel() for weights in part.parameters()) for part in (extractor, prediction)]
    assert sum(parts) == count


def test_what_comes_after_the_layer_is_left_out():
    network = ResNet(logarithms=True).eval()
    extractor, prediction = split(network)
    records = torch.randn(4, 1, 8, 8)
    assert torch.equal(prediction(extractor(records)).log_softmax(1), network(records))
    softmax = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3), nn.Softmax(1))
    extractor, prediction = split(softmax)
    table = torch.randn(4, 6)
    assert torch.equal(prediction(extractor(table)).softmax(1), softmax(table))


def test_a_layer_can_be_named():
    network, records = HeadFirst().eval(), torch.randn(4, 6)
    extractor, prediction = split(network, at="head")
    assert torch.equal(prediction(extractor(records)), network(records))
    extractor, prediction = split(MLP(6, 3, hidden=(8, 5)), at="3")
    assert (prediction.in_features, prediction.out_features) == (8, 5)
    assert extractor(records).shape == (4, 8)


def test_without_a_name_it_is_the_layer_that_is_defined_last():
    extractor, prediction = split(HeadFirst())
    assert (prediction.in_features, prediction.out_features) == (6, 5)
    assert torch.equal(extractor(torch.ones(2, 6)), torch.ones(2, 6))


@pytest.mark.parametrize("at", [None, "head", "classifier"])
def test_a_layer_with_two_names(at):
    network, records = TwoNames().eval(), torch.randn(4, 6)
    extractor, prediction = split(network, at=at)
    assert torch.equal(prediction(extractor(records)), network(records))
    assert sum(weights.numel() for weights in extractor.parameters()) == 6 * 5 + 5


def test_an_extractor_can_be_copied_and_differentiated():
    extractor, _ = split(ResNet())
    records = torch.randn(3, 1, 8, 8, requires_grad=True)
    copied = copy.deepcopy(extractor)
    assert torch.equal(copied(records), extractor(records))
    extractor(records).sum().backward()
    assert records.grad is not None


def test_a_layer_that_the_network_does_not_come_to():
    network = HeadFirst()
    network.unused = nn.Linear(5, 3)
    extractor, _ = split(network)
    with pytest.raises(ValueError, match="not come"):
        extractor(torch.zeros(2, 6))


@pytest.mark.parametrize("network", [nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU()), Block(1, 2, 1), nn.Identity()])
def test_no_linear_layer(network):
    with pytest.raises(ValueError, match="no linear layer"):
        split(network)


@pytest.mark.parametrize("at", ["stem", "nonsense", "fc.weight", ""])
def test_a_name_that_is_no_linear_layer(at):
    with pytest.raises(ValueError, match="linear layer named"):
        split(ResNet(), at=at)


@pytest.mark.parametrize("at", [None, ""])
def test_nothing_before_the_layer(at):
    with pytest.raises(ValueError, match="nothing comes"):
        split(nn.Linear(3, 2), at=at)
