"""An extractor that PyTorch computes, and the heads on its features."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import nn

from maxrr.files import from_plain
from maxrr.nets.inputs import as_tensors, call, ready
from maxrr.nets.naming import NamedNetwork, as_recorded
from maxrr.nets.probe import Fingerprint
from maxrr.nets.seeding import Network
from maxrr.serving.folders import Facts
from maxrr.serving.runtimes import HEADS, Floats, Heads
from maxrr.unlearning.extractors import extractor_of, weights_of

EXTRACTOR, PROBE = "extractor.", "probe"  # in front of the names of its weights; its features of made-up records


class TorchRuntime:
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
        return self.heads.platt.probabilities(self.scores(records))


def to_bytes(extractor: nn.Module, heads: Heads, probe: NDArray[np.float64]) -> bytes:
    """Both in one file, with the features of made-up records."""
    weights = {EXTRACTOR + name: value for name, value in weights_of(extractor).items()}
    arrays = {**heads.to_arrays(), PROBE: probe}
    return safetensors.torch.save(weights | {name: torch.tensor(value) for name, value in arrays.items()})


def from_bytes(content: bytes, facts: Facts, network: Network | None) -> TorchRuntime:
    """The same back. Ours are made by name; other code is run only if the caller names it."""
    found = safetensors.torch.load(content)
    heads = Heads.from_arrays({name: found[name].numpy() for name in HEADS if name in found}, len(facts.classes))
    weights = {name.removeprefix(EXTRACTOR): found[name] for name in found if name.startswith(EXTRACTOR)}
    given = as_recorded(network, recorded(facts.network))
    made = named(facts.network) if given is None else given
    extractor = extractor_of(made, weights, frozen=facts.frozen, shards=facts.shards)
    stored = Fingerprint(facts.layers or "", found[PROBE].numpy())
    if differs := Fingerprint.of(extractor, tuple(facts.shape), facts.kind).differs_from(stored, exactly=False):
        raise ValueError(f"the network is not the one that was exported: {differs}. Bring its code as it was")
    return TorchRuntime(extractor.eval(), heads)


def named(network: Mapping[str, Any] | None) -> NamedNetwork:
    """The network that a folder names, if this library defines it."""
    found = recorded(network)
    if found is not None and found.our_own:
        return found
    which = "" if network is None else f", which {network.get('maker')} makes"
    raise ValueError(f"the model needs your own network{which}: give it as network=…")


def recorded(network: Mapping[str, Any] | None) -> NamedNetwork | None:
    """The function that a folder names, with what it was called with; nothing of it is run here."""
    return None if network is None else from_plain(NamedNetwork, network)
