"""Whether a network comes back from what files keep of it: its layers, and the tensors of its `state_dict()`.

Networks may compute with more: buffers that are not persistent, tensors in plain attributes, numbers that training
counts. So what was kept is put into a network that is made anew, and both are given made-up records, which are drawn
from a seed and the records' type, never from records: they must give the same bytes.
"""

import copy
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from maxrr.data.fields import fields_of, packed
from maxrr.errors import DataError
from maxrr.nets.architecture import architecture, without_numbers
from maxrr.nets.inputs import as_tensors, call, ready
from maxrr.nets.seeding import DRAWS, WEIGHTS, Network, drawing, pinned

FEW = 8  # records to look at
BELOW = 1 << 15, 1 << 12, 1 << 9, 1 << 6, 1 << 3, 2  # which integers are drawn: the most that a network takes
ROUNDING = 1e-3  # of the largest feature, on another machine: hidden numbers make a larger difference

Shape = tuple[int, ...]
Kind = np.dtype[Any]


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The layers of an extractor and its features of made-up records, by which one that is made again is recognised."""

    layers: str
    features: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.features.flags.writeable = False  # bundles hand it out

    @classmethod
    def of(cls, extractor: nn.Module, shape: Shape, dtype: Kind) -> "Fingerprint":
        """Compute the fingerprint of an extractor for records of this shape and type."""
        used = copy.deepcopy(extractor)

        def alone() -> NDArray[np.float64]:
            torch.set_num_threads(1)  # PyTorch keeps the number for every thread
            return probed(used, shape, dtype)

        with pinned(1), ThreadPoolExecutor(1) as thread:
            features = thread.submit(alone).result()
        return cls(architecture(extractor, used), features)

    def differs_from(self, other: "Fingerprint", *, exactly: bool) -> str:
        """Say how another extractor differs, whose features must be the same to the bytes, or to rounding."""
        layers = [each.layers if exactly else without_numbers(each.layers) for each in (self, other)]
        if differs := layers_differ(*layers):
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
    if mine.startswith("class ") and mine.split()[:2] == theirs.split()[:2]:
        return f"the network has other code than the one that was fitted: the source of {' '.join(mine.split()[:2])}"
    return f"the network has other layers than the one that was fitted: {mine:.80}, and that had {theirs:.80}"


def made_up(shape: Shape, dtype: Kind, below: int = 2, count: int = 64) -> NDArray[Any]:
    """Make up records of a type and shape: random ones, always the same, and the outermost.

    Integers may be places in a table of any length: they are zeros and ones, or below another number. Booleans are
    nearly all true.
    """
    if dtype.names is not None:
        parts = fields_of(dtype).items()
        return packed({name: made_up(size, kind, below, count) for name, (kind, size) in parts})
    rng = np.random.default_rng(0)
    if dtype.kind == "i":
        return rng.integers(0, min(below, np.iinfo(dtype).max), (count, *shape), dtype=dtype)
    if dtype.kind == "b":
        return rng.random((count, *shape)) < 0.9
    if dtype == np.uint8:
        extremes = np.stack([np.zeros(shape), np.full(shape, 255)])
        return np.concatenate([rng.integers(0, 256, (count - 2, *shape)), extremes]).astype(dtype)
    scales = np.resize([0.1, 1.0, 10.0], count)
    scales[0] = 0.0
    normal = rng.standard_normal((count, *shape))
    return np.asarray(normal * scales.reshape(-1, *(1 for _ in shape)), dtype)


def probed(network: nn.Module, shape: Shape, dtype: Kind) -> NDArray[np.float64]:
    """Compute what a network gives for a few made-up records, with integers as large as it takes.

    The network is changed: it is moved to the CPU and set to evaluation mode, and its forward pass may store something.
    """
    network.cpu().eval()
    for weights in network.parameters():
        weights.data = weights.data.contiguous()  # channels that come last round differently
    kind = next((weights.dtype for weights in network.parameters()), torch.float32)
    integers = any(one.kind == "i" for one, _ in fields_of(dtype).values()) or dtype.kind == "i"
    tried = [made_up(shape, dtype, below, FEW) for below in (BELOW if integers else BELOW[-1:])]
    if dtype.kind == "f":
        tried.append(np.abs(tried[0]) + 1)  # for networks of what is positive
    failed: Exception | None = None
    found: NDArray[np.float64] | None = None
    for records in (*tried, np.ones_like(tried[0]), np.zeros_like(tried[0])):
        try:
            with torch.inference_mode(), drawing(0, DRAWS):
                given = call(network, ready(as_tensors(records), kind))
                found = np.array(given.flatten(1).double().numpy())
            if np.isfinite(found).all():  # what is not compares nothing
                return found
        except Exception as error:  # of the caller's code
            failed = failed or error
    if found is not None:
        return found
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
    if any(is_lazy(weights) for weights in one.parameters()):
        raise DataError(
            "the network has layers without weights, which get some at the first call: let the function that makes it "
            "call it once, on records of zeros"
        )
    if not isinstance(network, nn.Module):
        if types_and_shapes(one.state_dict()) != types_and_shapes(other.state_dict()):
            raise hidden_state_error(one)
        other.load_state_dict(one.state_dict())
    before = copy.deepcopy(one), copy.deepcopy(other)
    try:
        expected = probed(one, shape, dtype)
    except DataError:
        return  # training says what is wrong, and so does `with_weights_of`
    again = gives(other, expected, shape, dtype)
    layers = [architecture(first, used) for first, used in zip(before, (one, other), strict=True)]
    if not again or (not isinstance(network, nn.Module) and layers[0] != layers[1]):
        raise hidden_state_error(before[0])


def with_weights_of(trained: nn.Module, anew: nn.Module, shape: Shape, dtype: Kind) -> nn.Module:
    """Put the weights of a network, which is used up, into one made anew; refuse it if that gives something else."""
    if types_and_shapes(anew.state_dict()) != types_and_shapes(trained.state_dict()):
        raise hidden_state_error(trained)
    anew.load_state_dict(trained.state_dict())
    if not gives(copy.deepcopy(anew), probed(trained, shape, dtype), shape, dtype):
        raise hidden_state_error(trained)
    return anew.eval()


def types_and_shapes(weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """Types and shapes by name."""
    return {name: (value.dtype, value.shape) for name, value in weights.items()}


def gives(network: nn.Module, expected: NDArray[np.float64], shape: Shape, dtype: Kind) -> bool:
    """Whether a network gives these very bytes for made-up records."""
    return probed(network, shape, dtype).tobytes() == expected.tobytes()


def made_by(function: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Let a function make a network, from other random numbers for each seed."""
    with drawing(seed, WEIGHTS):
        return copy.deepcopy(function())


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


def hidden_state_error(network: nn.Module) -> DataError:
    """The refusal of a network that does not come back, naming what may be the cause."""
    stored = set(network.state_dict())
    names = [name for name, _ in network.named_buffers() if name not in stored]
    for place, module in network.named_modules():
        held = (name for name, value in vars(module).items() if isinstance(value, Tensor | np.ndarray))
        names += [f"{place}.{name}".strip(".") for name in held]
    perhaps = f" (perhaps {', '.join(map(repr, names[:3]))})" if names else ""
    return DataError(
        f"the network computes with something that its state_dict() does not hold{perhaps}: one that is made anew "
        "differs with the same weights. Nothing but the state_dict() comes back from a file. Keep tensors, and what "
        "training moves, by register_buffer(name, tensor). A constant table may stay if a function makes the network, "
        "the same each time"
    )
