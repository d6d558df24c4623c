"""Small data sets and networks of many kinds."""

import functools

import numpy as np
import torch
from torch import nn

from maxrr.data import Dataset, load
from maxrr.nets.inputs import as_array


def table(count=50, columns=6, classes=3, seed=0, dtype=np.float32, ids=None):
    """A table whose classes can be learned."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, count)
    features = rng.normal(size=(count, columns)) + 2.0 * rng.normal(size=(classes, columns))[labels]
    names = tuple(f"class {number}" for number in range(classes))
    return Dataset(features.astype(dtype), labels, names, np.arange(count) if ids is None else ids)


def pictures(count=30, shape=(1, 8, 8), classes=3, seed=0):
    """Images in bytes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, count)
    names = tuple(f"class {number}" for number in range(classes))
    return Dataset(rng.integers(0, 256, (count, *shape)).astype(np.uint8), labels, names, np.arange(count))


@functools.cache
def digits(count=300):
    """Some of the digits, 8 × 8 pixels."""
    train, _ = load("digits")
    return train.select(train.ids[:count])


def reordered(dataset, seed=0):
    """The same records in another order."""
    return dataset.select(dataset.ids[np.random.default_rng(seed).permutation(len(dataset))])


def bytes_of(network):
    """All weights and statistics of a network, with their names."""
    return {name: as_array(value).tobytes() for name, value in network.state_dict().items()}


def same_run(one, other):
    """Whether two runs have the same bytes throughout."""
    numbers = (one.seed, one.loss, one.accuracy) == (other.seed, other.loss, other.accuracy)
    return numbers and bytes_of(one.network) == bytes_of(other.network)


class Block(nn.Module):
    """Two convolutions with batch normalisation, and a way past them."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.first = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(out)
        self.second = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(out)
        self.past = nn.Identity() if stride == 1 and channels == out else nn.Conv2d(channels, out, 1, stride=stride)

    def forward(self, x):
        inside = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(inside)) + self.past(x))


class ResNet(nn.Module):
    """The shape of a residual network; ends in log-probabilities if asked to."""

    def __init__(self, channels=1, classes=3, logarithms=False):
        super().__init__()
        self.logarithms = logarithms
        self.stem = nn.Conv2d(channels, 4, 3, padding=1)
        self.blocks = nn.Sequential(Block(4, 4, 1), Block(4, 8, 2))
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        scores = self.fc(self.blocks(self.stem(x)).mean((2, 3)))
        return scores.log_softmax(1) if self.logarithms else scores


class HeadFirst(nn.Module):
    """Registers its layers in another order than it uses them."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(5, 3)
        self.body = nn.Sequential(nn.Linear(6, 5), nn.Tanh())

    def forward(self, x):
        return self.head(self.body(x))


class TwoNames(nn.Module):
    """Its last layer goes by two names."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 5)
        self.head = nn.Linear(5, 3)
        self.classifier = self.head

    def forward(self, x):
        return self.classifier(self.body(x).relu())


class Tied(nn.Module):
    """Two layers with one matrix of weights."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.head(self.second(self.first(x).relu()).relu())


class WithBuffer(nn.Module):
    """A constant that is no part of what is stored."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 3)
        self.register_buffer("scale", torch.full((6,), 0.5), persistent=False)

    def forward(self, x):
        return self.linear(x * self.scale)


def normalised():
    """A table's network with batch normalisation."""
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def dropping():
    """A table's network that draws numbers as it goes."""
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
