"""Weights that a network was given, rather than drawn from a seed and trained here.

Frozen layers, pretrained weights that a function loads, tables in buffers: nothing here says what these learned from.
They are found by comparing two networks of different seeds: what is the same in both did not come from a seed.
"""

import hashlib

import torch
from torch import Tensor, nn

from maxrr.nets.run_store import as_array
from maxrr.nets.seeding import Network, begin

SEEDS = 0, 1  # any two


def given_weights(network: Network) -> dict[str, str]:
    """What the network brings along before it is trained: the SHA-256 of each such weight or buffer, by name.

    Where layers start with plain zeros or ones, or a single value that is then trained, nothing was given.

    >>> from torch import nn
    >>> network = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> given_weights(network)
    {}
    >>> _ = network[0].requires_grad_(False)
    >>> list(given_weights(network))
    ['0.weight', '0.bias']
    """
    one, other = (begin(network, seed) for seed in SEEDS)
    drawn = tensors(other)
    return {
        name: hashlib.sha256(as_array(value.detach().contiguous()).tobytes()).hexdigest()
        for name, value in tensors(one).items()
        if name in drawn and says_something(value, drawn[name])
    }


def tensors(network: nn.Module) -> dict[str, Tensor]:
    """All weights and buffers, also those that are not stored with the network."""
    return {**dict(network.named_parameters()), **dict(network.named_buffers())}


def says_something(value: Tensor, other: Tensor) -> bool:
    """Whether the two tensors share values, in all or some places, that are not a plain start of zeros or ones."""
    if value.shape != other.shape:
        return True
    common = value.detach()[(value == other).detach()]
    if not common.numel():
        return False
    plain = value.requires_grad or bool(torch.isin(common[:1], torch.tensor([0, 1], dtype=common.dtype)))
    return not (plain and bool((common == common[0]).all()))
