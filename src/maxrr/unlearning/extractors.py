"""Extractors made again from stored weights. A network that the file only names is run if it is of this library."""

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from maxrr.nets import split
from maxrr.nets.networks import joined
from maxrr.nets.probe import Fingerprint, made_by, types_and_shapes, with_weights_of
from maxrr.nets.seeding import Network
from maxrr.unlearning.blueprint import Blueprint


def extractor_of(network: Network, weights: dict[str, Tensor], *, frozen: bool, shards: int) -> nn.Module:
    """The extractor: the network's layers, for each shard, with the stored weights."""
    if shards > max(len(weights), 1):  # each has some
        raise ValueError(f"there are not the weights of {shards:,} extractors")
    try:
        made = network if isinstance(network, nn.Module) else made_by(network, 0)
    except Exception as error:  # of the caller's code
        raise ValueError(f"the network could not be made: {error}") from error
    extractor = copy.deepcopy(made).cpu().eval() if frozen else joined([split(made)[0] for _ in range(shards)])
    if types_and_shapes(extractor.state_dict()) != types_and_shapes(weights):
        raise ValueError("the network has other layers than the one that was fitted: name the network that was")
    extractor.load_state_dict(weights)
    return extractor


def stored_extractor(blueprint: Blueprint, weights: dict[str, Tensor]) -> nn.Module:
    """The same, of a blueprint."""
    return extractor_of(blueprint.network, weights, frozen=blueprint.frozen, shards=blueprint.sharding.count)


def kept(
    blueprint: Blueprint, extractor: nn.Module, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[nn.Module, Fingerprint]:  # fmt: skip
    """Make an extractor again from its weights, check that it computes the same, and return it with its fingerprint."""
    anew = with_weights_of(extractor, stored_extractor(blueprint, weights_of(extractor)), shape, dtype)
    return anew, Fingerprint.of(anew, shape, dtype)


def weights_of(extractor: nn.Module) -> dict[str, Tensor]:
    """The extractor's weights and buffers, each in memory of its own."""
    state: dict[str, torch.Tensor] = extractor.state_dict()
    return {name: value.detach().cpu().contiguous().clone() for name, value in state.items()}
