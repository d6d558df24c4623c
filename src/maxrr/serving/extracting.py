"""An extractor that PyTorch computes, and the heads on its features."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import nn

from maxrr.nets import Environment, Recipe
from maxrr.nets.naming import NamedNetwork
from maxrr.nets.records import as_tensors, call, ready
from maxrr.nets.seeding import Network
from maxrr.serving.computing import HEADS, Floats, Heads
from maxrr.serving.folders import Facts
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.facts import extractor_of, weights_of

EXTRACTOR = "extractor."  # in front of the names of its weights


class Extracted:
    """Heads on what an extractor makes of records."""

    def __init__(self, extractor: nn.Module, heads: Heads) -> None:
        self.extractor, self.heads = extractor, heads
        self.kind = next((weights.dtype for weights in extractor.parameters()), torch.float32)
        self.precision = np.dtype(np.float64 if self.kind == torch.float64 else np.float32)

    def scores(self, records: NDArray[Any]) -> Floats:
        with torch.inference_mode():
            features = call(self.extractor, ready(as_tensors(records), self.kind)).flatten(1)
        return self.heads.scores_of(features.numpy())

    def probabilities(self, records: NDArray[Any]) -> Floats:
        return self.heads.probabilities_of(self.scores(records))


def to_bytes(extractor: nn.Module, heads: Heads) -> bytes:
    """Both in one file."""
    weights = {EXTRACTOR + name: value for name, value in weights_of(extractor).items()}
    return safetensors.torch.save(weights | {name: torch.tensor(value) for name, value in heads.to_arrays().items()})


def from_bytes(content: bytes, facts: Facts, network: Network | None) -> Extracted:
    """The same back. Ours are made by name; other code is run only if the caller names it."""
    found = safetensors.torch.load(content)
    heads = Heads.from_arrays({name: found[name].numpy() for name in HEADS if name in found}, len(facts.classes))
    weights = {name.removeprefix(EXTRACTOR): found[name] for name in found if name.startswith(EXTRACTOR)}
    made = network if network is not None else named(facts.network)
    blueprint = Blueprint(
        made, facts.frozen, 0, Recipe(), 1.0, "cpu", 1, Environment.here(torch.device("cpu"), 1)
    )  # fmt: skip
    return Extracted(extractor_of(blueprint, facts.layers or "", weights).eval(), heads)


def named(network: Mapping[str, Any] | None) -> NamedNetwork:
    """The network that a folder names, if this library defines it."""
    which = "" if network is None else f", which {network.get('maker')} makes"
    if network is not None and network.keys() == {"maker", "arguments"} and isinstance(network["maker"], str):
        found = NamedNetwork(network["maker"], tuple(network["arguments"]))
        if found.our_own:
            return found
    raise ValueError(f"the model needs your own network{which}: give it as network=…")
