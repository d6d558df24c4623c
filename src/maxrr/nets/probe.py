"""Whether a network comes back from what files keep of it: its layers, and the tensors of its `state_dict()`.

Networks may compute with more: buffers that are not persistent, tensors in plain attributes, numbers that training
counts. So what was kept is put into a network that is made anew, and both are given made-up records, which are drawn
from a seed and the records' type, never from records: they must give the same bytes.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maxrr.data.fields import fields_of, packed
from maxrr.errors import DataError
from maxrr.nets.architecture import architecture
from maxrr.nets.pinning import pinned
from maxrr.nets.records import as_tensors, call, ready
from maxrr.nets.seeding import DRAWS, WEIGHTS, Network, drawing

ROUNDING = 1e-3  # of the largest feature, on another machine: hidden numbers make a larger difference

Shape = tuple[int, ...]
Kind = np.dtype[Any]


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """What an extractor that is made again is recognised by: its layers, and its features of made-up records."""

    layers: str
    features: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.features.flags.writeable = False  # bundles hand it out

    @classmethod
    def of(cls, extractor: nn.Module, shape: Shape, dtype: Kind) -> "Fingerprint":
        """Take it of an extractor for records of this shape and type."""
        with pinned(1):
            torch.set_num_threads(1)
            return cls(architecture(extractor), probed(copy.deepcopy(extractor), shape, dtype))

    def differs_from(self, other: "Fingerprint", *, exactly: bool) -> str:
        """Say how another extractor differs, whose features must be the same to the bytes, or to rounding."""
        if differs := layers_differ(self.layers, other.layers):
            return differs
        one, two = self.features, other.features
        if one.shape == two.shape and one.tobytes() == two.tobytes():
            return ""
        if not exactly and one.shape == two.shape and np.max(np.abs(one - two)) <= ROUNDING * np.max(np.abs(two)):
            return ""
        return "with the same weights the network gives other features: something beside its state_dict() is another"


def layers_differ(layers: str, fitted: str) -> str:
    """Say how the layers of a network differ from those of the one that was fitted; nothing where they do not."""
    if layers == fitted:
        return ""
    lines = zip(layers.splitlines(), fitted.splitlines(), strict=False)
    mine, theirs = next((pair for pair in lines if pair[0] != pair[1]), ("some", "others"))
    return f"the network has other layers than the one that was fitted: {mine:.80}, and that had {theirs:.80}"


def made_up(shape: Shape, dtype: Kind) -> NDArray[Any]:
    """Make up records of a type and shape: random ones, always the same, and the outermost.

    Integers may be places in a table of any length: all of them are zeros and ones, and booleans nearly all true.
    """
    if dtype.names is not None:
        return packed({name: made_up(size, kind) for name, (kind, size) in fields_of(dtype).items()})
    rng = np.random.default_rng(0)
    if dtype.kind in "ib":
        return (rng.random((64, *shape)) < (0.5 if dtype.kind == "i" else 0.9)).astype(dtype)
    if dtype == np.uint8:
        extremes = np.stack([np.zeros(shape), np.full(shape, 255)])
        return np.concatenate([rng.integers(0, 256, (62, *shape)), extremes]).astype(dtype)
    scales = np.repeat([0.0, 0.1, 1.0, 10.0], [1, 21, 21, 21])
    normal = rng.standard_normal((len(scales), *shape))
    return np.asarray(normal * scales.reshape(-1, *(1 for _ in shape)), dtype)


def probed(network: nn.Module, shape: Shape, dtype: Kind) -> NDArray[np.float64]:
    """Compute what a network gives for a few made-up records, or for ones or zeros if it takes no others.

    It is used as it is, on the CPU and in evaluation mode, and may keep something of them.
    """
    network.cpu().eval()
    kind = next((weights.dtype for weights in network.parameters()), torch.float32)
    some = made_up(shape, dtype)[7::8]
    failed: Exception | None = None
    for records in (some, np.ones_like(some), np.zeros_like(some)):
        try:
            with torch.inference_mode(), drawing(0, DRAWS):
                found = call(network, ready(as_tensors(records), kind))
                return np.array(found.flatten(1).double().numpy())
        except Exception as error:  # of the caller's code
            failed = failed or error
    raise DataError(
        f"the network takes no made-up records ({failed}), not even ones or zeros, so that nobody could see whether it "
        "comes back from a file: let it take records of zeros"
    ) from failed


def check_comes_back(network: Network, shape: Shape, dtype: Kind) -> None:
    """Refuse a network that is another each time it is made, though its weights are the same."""
    if isinstance(network, nn.Module):
        one, other = copy.deepcopy(network), with_other_attributes(network)
    else:
        one, other = (made_by(network, seed) for seed in (0, 1))
        other.load_state_dict(one.state_dict())
    try:
        expected = probed(one, shape, dtype)
    except DataError:
        return  # training says what is wrong, and so does `taken_over`
    if architecture(one) != architecture(other) or not gives(other, expected, shape, dtype):
        raise left_out(network)


def taken_over(trained: nn.Module, anew: nn.Module, shape: Shape, dtype: Kind) -> nn.Module:
    """Put the weights of a network, which is used up, into one made anew; refuse it if that gives something else."""
    anew.load_state_dict(trained.state_dict())
    if not gives(copy.deepcopy(anew), probed(trained, shape, dtype), shape, dtype):
        raise left_out(trained)
    return anew.eval()


def gives(network: nn.Module, expected: NDArray[np.float64], shape: Shape, dtype: Kind) -> bool:
    """Whether a network gives just this for made-up records."""
    try:
        return probed(network, shape, dtype).tobytes() == expected.tobytes()
    except DataError:
        return False


def made_by(function: Any, seed: int) -> nn.Module:
    """Let a function make a network, from other random numbers for each seed."""
    with drawing(seed, WEIGHTS):
        network: nn.Module = function()
    return network


def with_other_attributes(network: nn.Module) -> nn.Module:
    """Copy a module, with other values in all tensors and arrays that are neither parameters nor buffers of it.

    Copying leaves a note of every object that was copied, wherever in the module it is kept.
    """
    copies: dict[int, Any] = {}
    made = copy.deepcopy(network, copies)
    registered = {id(value) for value in (*made.parameters(), *made.buffers())}
    for value in list(copies.values()):
        if isinstance(value, Tensor | np.ndarray) and id(value) not in registered:
            change(value)
    return made


def change(value: Tensor | NDArray[Any]) -> None:
    """Put other numbers into a tensor or an array."""
    if isinstance(value, Tensor):
        value.data = ~value.data if value.dtype == torch.bool else value.data + 1
    elif value.dtype.kind in "biufc":
        value[...] = ~value if value.dtype == bool else value + 1


def left_out(network: Network) -> DataError:
    """The refusal of a network that does not come back, naming what may be the cause."""
    names = []
    if isinstance(network, nn.Module):
        stored = set(network.state_dict())
        names += [name for name, _ in network.named_buffers() if name not in stored]
        for place, module in network.named_modules():
            names += [f"{place}.{name}".strip(".") for name, value in vars(module).items() if isinstance(value, Tensor)]
    perhaps = f", perhaps for {', '.join(map(repr, names[:3]))}" if names else ""
    return DataError(
        "the network computes with something that its state_dict() does not hold: one that is made anew gives other "
        f"features with the same weights{perhaps}. Nothing but the state_dict() comes back from a file. Keep tensors, "
        "and what training moves, by register_buffer(name, tensor); or pass a function that makes the network, the "
        "same each time"
    )
