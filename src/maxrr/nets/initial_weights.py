"""Whether something is lost when a network's layers draw their weights anew: training, or a start of its own.

Layers are drawn anew a few times, and the weights at hand compared with what came out. Where every draw gives the same
(ones, zeros, no statistics yet), any other value was learned or set. Otherwise the largest weight and the spread are
compared: by default layers draw from an interval, which training soon leaves. A difference counts if it is far larger
than the draws differ among themselves, so that a network which was only made is not suspected. One that was trained
very little may be missed.
"""

import copy
import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from maxrr.nets.inputs import as_array
from maxrr.nets.seeding import WEIGHTS, Network, begin, drawing, is_frozen, reset

# Weights that a network was given, rather than drawn from a seed and trained here.
#
# Frozen layers, pretrained weights that a function loads, tables in buffers: nothing here says what these learned from.
# They are found by comparing two networks of different seeds: what is the same in both did not come from a seed.


SEEDS = 0, 1  # any two


def given_weights(network: Network) -> dict[str, str]:
    """Hash each weight or buffer that the network brings along before training, by name.

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
    """Return all weights and buffers, also those that are not stored with the network."""
    return {**dict(network.named_parameters()), **dict(network.named_buffers())}


def under_every_name(network: nn.Module) -> dict[str, Tensor]:
    """All weights and buffers, those that several layers share under each of their names."""
    weights = dict(network.named_parameters(remove_duplicate=False))
    return {**weights, **dict(network.named_buffers(remove_duplicate=False))}


def says_something(value: Tensor, other: Tensor) -> bool:
    """Whether two tensors share values other than zeros or ones."""
    if value.shape != other.shape:
        return True
    common = value.detach()[(value == other).detach()]
    if not common.numel():
        return False
    plain = value.requires_grad or bool(torch.isin(common[:1], torch.tensor([0, 1], dtype=common.dtype)))
    return not (plain and bool((common == common[0]).all()))


DRAWS = 6
FAR = 20.0  # times the range of the draws; of 400,000 tensors that were only drawn none was so far out
DRAWN_ANEW = (
    "the network's weights are not such as its layers draw by themselves: it was trained before, or started in a way "
    "of its own. They are drawn anew from the seed, and what it has learned is not used. To start from them, say "
    "start='given'; to keep them as they are, use Frozen(), MaxRR.adopt, or freeze the layers (requires_grad_(False)); "
    "to start in your own way, pass a function that makes the network"
)


class DrawnAnewWarning(UserWarning):
    """A network that was trained before is trained from the start: what it has learned is not used."""


def would_lose_weights(network: Network) -> bool:
    """Whether a network has weights that its layers would not draw, as a trained one has.

    >>> network = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 2))
    >>> would_lose_weights(network)
    False
    >>> with torch.no_grad():
    ...     _ = network[0].weight.mul_(2)
    >>> would_lose_weights(network)
    True
    """
    if not isinstance(network, nn.Module):
        return False  # a function makes what it wants to begin with
    draws = list[dict[str, Tensor]]()
    for seed in range(DRAWS):
        drawn = copy.deepcopy(network).cpu()
        with drawing(seed, WEIGHTS):
            for name, layer in drawn.named_modules():
                if not is_frozen(drawn, name):
                    reset(name, layer)
        draws.append({name: value.detach() for name, value in tensors(drawn).items()})
    own = tensors(network).items()
    return any(differs(value.detach().cpu(), [drawn[name] for drawn in draws]) for name, value in own)


def differs(value: Tensor, draws: Sequence[Tensor]) -> bool:
    """Whether a tensor is unlike those that were drawn."""
    if all(torch.equal(one, draws[0]) for one in draws):
        return not torch.equal(value, draws[0])
    size, *sizes = (float(one.double().abs().max()) for one in (value, *draws))
    spread, *spreads = (float(one.double().square().mean().sqrt()) for one in (value, *draws))
    return is_far(max(size, max(sizes)), *sizes) or is_far(spread, *spreads)


def is_far(value: float, *draws: float) -> bool:
    """Whether a number is further from some others than they are from each other."""
    low, high = min(draws), max(draws)
    outside = max(value - high, low - value)
    return not outside <= FAR * (high - low)
