"""Networks that compute with more than their `state_dict()` holds, and some that only look so."""

import functools
import random

import numpy as np
import torch
from torch import nn


class Plain(nn.Module):
    """Eight numbers in, two scores out; what is done to the numbers first is up to the others."""

    def __init__(self, activation=torch.relu):
        super().__init__()
        self.first, self.last = nn.Linear(8, 12), nn.Linear(12, 2)
        self.activation = activation

    def before(self, x):
        return x

    def forward(self, x):
        return self.last(self.activation(self.first(self.before(x))))


class MovedBuffer(Plain):
    """Training moves a buffer that is not persistent."""

    def __init__(self):
        super().__init__()
        self.register_buffer("centre", torch.zeros(8), persistent=False)

    def before(self, x):
        if self.training:
            self.centre = 0.9 * self.centre + 0.1 * x.detach().mean(0)
        return x - self.centre


class MovedNumber(Plain):
    """Training moves a number of Python."""

    def __init__(self):
        super().__init__()
        self.scale = 1.0

    def before(self, x):
        if self.training:
            self.scale *= 1.01
        return x * self.scale


class DrawnAttribute(Plain):
    """Random features, drawn when the network is made and kept as a plain attribute."""

    def __init__(self):
        super().__init__()
        self.frequencies = torch.randn(8, 8)

    def before(self, x):
        return torch.cos(x @ self.frequencies)


class DrawnDeep(Plain):
    """The same in an array of NumPy, in a dictionary, in a list, in an object."""

    def __init__(self):
        super().__init__()
        self.held = functools.partial(dict, kept=[{"w": np.random.default_rng().normal(size=(8, 8)).astype("f4")}])

    def before(self, x):
        return torch.cos(x @ torch.from_numpy(self.held.keywords["kept"][0]["w"]))


class UnregisteredLayer(Plain):
    """A layer in a plain list, which PyTorch does not see."""

    def __init__(self):
        super().__init__()
        self.hidden = [nn.Linear(8, 8)]

    def before(self, x):
        return self.hidden[0](x)


class DrawnNumber(Plain):
    """A setting that is another each time."""

    def __init__(self):
        super().__init__()
        self.scale = 1.0 + random.random()

    def before(self, x):
        return x * self.scale


class Cache(Plain):
    """Keeps what it saw last, and how often it was called: nothing depends on it."""

    def __init__(self):
        super().__init__()
        self.seen, self.maps = None, []

    def before(self, x):
        self.seen = x.detach()
        self.maps = [x.detach() * 2]
        return x


class Table(Plain):
    """A table that is the same each time, in a buffer that is not persistent."""

    def __init__(self):
        super().__init__()
        self.register_buffer("places", torch.arange(8.0) / 8, persistent=False)

    def before(self, x):
        return x + self.places


class AttributeTable(Plain):
    """The same as a plain attribute."""

    def __init__(self):
        super().__init__()
        self.places = torch.arange(8.0) / 8

    def before(self, x):
        return x + self.places


class Registered(Plain):
    """Random features as they should be kept."""

    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", torch.randn(8, 8))

    def before(self, x):
        return torch.cos(x @ self.frequencies)


def normed():
    """A network of PyTorch's own parts that keep plain attributes: spectral norm, recurrent layers."""
    return nn.Sequential(nn.Unflatten(1, (8, 1)), Recurrent(), nn.utils.spectral_norm(nn.Linear(6, 5)), nn.Linear(5, 2))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.GRU(1, 6, batch_first=True)

    def forward(self, x):
        return self.cells(x)[0][:, -1]


def plain_start():
    """A network that is trained from a module with weights, then frozen: a bare extractor."""
    return nn.Sequential(nn.Linear(8, 6), nn.ReLU())


class Counting(Plain):
    """Keeps how often it was called, the shape it saw last, and a list of what it gave: nothing depends on these."""

    def __init__(self):
        super().__init__()
        self.calls, self.shape, self.losses = 0, (), []

    def before(self, x):
        self.calls += 1
        self.shape = tuple(x.shape)
        self.losses.append(float(x.mean()))
        return x


class Late(Plain):
    """Registers a buffer when it sees its first records."""

    def before(self, x):
        if not hasattr(self, "centre"):
            self.register_buffer("centre", x.detach().mean(0))
        return x - self.centre


class Words(nn.Module):
    """A bag of words, weighed by a table in a plain attribute."""

    def __init__(self, known):
        super().__init__()
        self.embedding, self.last = nn.Embedding(known, 4), nn.Linear(4, 2)
        self.weights = torch.ones(known)

    def forward(self, tokens):
        return self.last((self.embedding(tokens) * self.weights[tokens][..., None]).mean(1))


class Sequences(nn.Module):
    """Tokens, lengths that must not be longer than they are, and a mask; it notes what it was given."""

    def __init__(self, known, seen):
        super().__init__()
        self.embedding, self.last, self.note = nn.Embedding(known, 4), nn.Linear(4, 2), seen.append

    def forward(self, tokens, lengths, mask):
        if int(lengths.max()) > tokens.shape[1]:
            raise ValueError("longer than the sequence")
        scores = self.last((self.embedding(tokens) * mask[..., None]).sum(1) / (1 + lengths[:, None]))
        self.note((tokens, lengths))
        return scores


class Born(Plain):
    """Knows when it was made, and does nothing with it."""

    def __init__(self):
        super().__init__()
        self.born = random.random()


class Logarithms(Plain):
    """Gives nothing that is a number for numbers below zero, and has random features."""

    def __init__(self):
        super().__init__()
        self.frequencies = torch.randn(8, 8)

    def before(self, x):
        return torch.log(x) @ self.frequencies


def last_channels():
    """A network whose weights lie in memory with the channels last."""
    network = nn.Sequential(
        nn.Unflatten(1, (2, 2, 2)), nn.Conv2d(2, 8, 2), nn.ReLU(), nn.Conv2d(8, 8, 1), nn.Flatten(), nn.Linear(8, 2)
    )
    return network.to(memory_format=torch.channels_last)
