"""Training that starts from weights that were given, such as public ones, instead of from a seed.

Everything but the last linear layer starts from exactly the given bytes. That layer is drawn from the seed, with one
output for each class among the records to train on: so a network with the 1,000 outputs of ImageNet is given as it is.
"""

import copy
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from maxrr.errors import DataError, OtherWeights
from maxrr.nets.initial_weights import under_every_name
from maxrr.nets.inputs import as_array
from maxrr.nets.networks import Layers, last_linear, names_of, replace_layer
from maxrr.nets.seeding import WEIGHTS, Network, drawing, network_from

SEED, GIVEN = "seed", "given"  # where training may start


def check_start(start: str) -> str:
    """Return where training starts, if it is "seed", "given", or "given:" with words on the weights behind it."""
    kind, _, words = str(start).partition(":")
    if kind not in (SEED, GIVEN) or (kind == SEED and start != SEED):
        raise DataError(
            f"start is 'seed' (every weight is drawn), 'given' (the network's own weights), or 'given:' and what these "
            f"are, such as 'given:EfficientNet-Lite0, ImageNet'; it is {start!r:.80}"
        )
    return f"{GIVEN}:{words.strip()}" if words.strip() else kind


@dataclass(frozen=True)
class GivenWeights:
    """What is known of weights that were given: what they are, in the words of whoever gave them, and their hash."""

    name: str
    sha256: str

    @classmethod
    def of(cls, network: Network, start: str, *, whole: bool) -> "GivenWeights | None":
        """Name the weights of a network; None where training starts from the seed.

        `whole` says that the last linear layer is used, too. A function must give the same weights each time.
        """
        if start == SEED:
            return None
        hashes = {hash_of_weights(made_with(network, seed), whole=whole) for seed in (0, 1)}
        if len(hashes) > 1:
            raise DataError(
                "training should start from given weights, and the function that makes the network draws some of them "
                "at random, in other layers than the last linear one: load all of them"
            )
        return cls(start.partition(":")[2], hashes.pop())

    @property
    def start(self) -> str:
        """The `start` that `maxrr.MaxRR` was given."""
        return f"{GIVEN}:{self.name}" if self.name else GIVEN


def made_with(network: Network, seed: int) -> nn.Module:
    """Copy a network, or have one made with the random numbers of a seed, on the CPU."""
    with drawing(seed, WEIGHTS):
        return copy.deepcopy(network_from(network)).cpu()


def hash_of_weights(network: nn.Module, *, whole: bool = False) -> str:
    """Hash the names, types, shapes and bytes of all weights and buffers, and whether they are trained, by name.

    The last linear layer is left out, unless the network is used as a `whole`. What it shares with others is theirs.
    """
    found = hashlib.sha256()
    apart = set() if whole else names_of(network, last_linear(network))
    for name, value in sorted(under_every_name(network).items()):
        if name.rpartition(".")[0] not in apart:
            kind = "trained" if value.requires_grad else "kept"
            found.update(f"{name} {value.dtype} {list(value.shape)} {kind}\n".encode())
            found.update(as_array(value.detach().contiguous()).tobytes())
    return found.hexdigest()


@dataclass(frozen=True, eq=False)
class GivenStart:
    """A function that makes a network with its given weights, and draws its last linear layer anew."""

    network: Network
    sha256: str  # of the weights: others are refused
    outputs: int

    def __call__(self) -> nn.Module:
        network = made_with(self.network, 0)
        if (found := hash_of_weights(network)) != self.sha256:
            raise OtherWeights(
                f"training started from given weights with the SHA-256 {self.sha256[:12]}…, and the network has others "
                f"now, with {found[:12]}…: bring the network with the weights that were given then"
            )
        name = last_linear(network)
        last = network.get_submodule(name)
        assert isinstance(last, nn.Linear)
        anew = nn.Linear(last.in_features, self.outputs, last.bias is not None, dtype=last.weight.dtype)
        replace_layer(network, name, anew)
        return network


def as_given(network: Network) -> Network:
    """Return the network as the caller gave it, without the start from its weights."""
    return network.network if isinstance(network, GivenStart) else network


# Images in another size than a network was trained for.


class Resize(nn.Module):
    """Resize images, and shift and scale their numbers.

    Constants are made where the images are: to copy them there would make a GPU wait in every step.
    """

    def __init__(self, size: int, mean: tuple[float, ...], scale: tuple[float, ...]) -> None:
        super().__init__()
        self.size, self.mean, self.scale = size, mean, scale

    def forward(self, images: Tensor) -> Tensor:
        kind, place = images.dtype, images.device
        with torch.autocast(place.type, enabled=False):  # what a network sees does not depend on how it is trained
            down, across = (interpolation(side, self.size, kind, place) for side in images.shape[-2:])
            resized = ((images @ across).transpose(-1, -2) @ down).transpose(-1, -2)
            mean, scale = (
                torch.cat([torch.full((1,), number, dtype=kind, device=place) for number in each])
                for each in (self.mean, self.scale)
            )
            layout = torch.contiguous_format if images.is_contiguous() else torch.channels_last
            return ((resized - mean[:, None, None]) / scale[:, None, None]).contiguous(memory_format=layout)


def interpolation(before: int, after: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The matrix (before, after) that takes a row of pixels to one of another length: bilinear, smoothed if shorter.

    >>> interpolation(2, 4, torch.float32, torch.device("cpu"))[0].tolist()
    [1.0, 0.75, 0.25, 0.0]
    """
    step = before / after
    old, new = (torch.arange(count, dtype=torch.float64, device=device) for count in (before, after))
    centre = (new + 0.5) * step - 0.5
    weights = (1.0 - (old[:, None] - centre).abs() / max(step, 1.0)).clamp(min=0.0)
    return (weights / weights.sum(0)).to(dtype)


class Resized(Layers):
    """A network for images of another size than the records have: these are resized, shifted and scaled first.

    So records stay as they are stored, in bytes, until they are on the device, and features depend on nothing but the
    record. In `named_modules()` the network is `network`.

    Parameters
    ----------
    network : torch.nn.Module
        The network, which takes images (channels, size, size).
    size : int
        How many pixels per side it takes. Images are resized by bilinear interpolation, smoothed where they shrink.
    mean, scale : float or sequence of float
        The network is given (pixel − mean) / scale, where pixels are from 0 to 1: numbers for all channels, or one for
        each. Of grey images each makes a channel. They are constants: take those that the network was trained with.

    Examples
    --------
    >>> network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10))
    >>> Resized(network, 32, mean=(0.5, 0.4, 0.4), scale=0.25)(torch.zeros(7, 1, 28, 28)).shape
    torch.Size([7, 10])
    """

    def __init__(
        self, network: nn.Module, size: int, mean: float | Sequence[float] = 0.0, scale: float | Sequence[float] = 1.0
    ) -> None:
        means, scales = (
            (float(each),) if isinstance(each, int | float) else tuple(map(float, each)) for each in (mean, scale)
        )
        if size < 1 or 0.0 in scales:
            raise ValueError(f"images have one pixel per side or more, and no scale is 0, not {size} and {scale}")
        super().__init__(OrderedDict(resize=Resize(int(size), means, scales), network=network))
