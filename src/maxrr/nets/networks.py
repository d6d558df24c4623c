"""Networks: LeNet-5 for images, which is the paper's (`tab:lenet5`), an MLP for tables, and none for embeddings."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Layers(nn.Sequential):
    """A `torch.nn.Sequential` whose constructor does not take layers, and that can be sliced nevertheless."""

    def __getitem__(self, which: slice | int) -> Any:
        layers = list(self)[which]
        return nn.Sequential(*layers) if isinstance(layers, list) else layers


class AveragePool2(nn.Module):
    """Means over 2 × 2 pixels; an odd last row or column is left out, as in `torch.nn.AvgPool2d(2)`.

    Two rows of an image lie one after the other in memory, so they are one long row without copying anything, and
    averaging pairs of columns in it is a product with a fixed matrix: half a step's time of a small network on a CPU is
    saved by not going through the pixels one by one, forwards and backwards.
    """

    def forward(self, images: Tensor) -> Tensor:
        height, width = images.shape[-2] // 2, images.shape[-1]
        pairs = images[..., : 2 * height, :].unflatten(-2, (height, 2)).flatten(-2)
        pooled: Tensor = pairs @ means(width, images.dtype, images.device)
        return pooled


def means(width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The matrix (2·width, width // 2) that takes two rows to their means.

    >>> means(2, torch.float32, torch.device("cpu")).tolist()
    [[0.25], [0.25], [0.25], [0.25]]
    """
    column = torch.arange(2 * width, device=device) % width // 2
    return (column[:, None] == torch.arange(width // 2, device=device)).to(dtype) * 0.25


SMALLEST = 4  # pixels per side


class LeNet5(Layers):
    """LeNet-5 with ReLU and average pooling; 61,706 parameters on 28 × 28 pixels.

    Gives scores; the softmax of the paper's table is part of the loss.

    Parameters
    ----------
    shape : (channels, height, width)
        The shape of one image, with at least 4 pixels per side. The first convolution is padded by 2, so that 28 × 28
        pixels give the 400 values of the original. Below 12 pixels per side the second convolution is padded as well,
        since nothing would be left otherwise.
    classes : int
        How many classes to tell apart, two or more.
    width : float
        How wide the layers are, relative to the original: above 0, 1 by default. With 0.5 there are 3 and 8 channels,
        60 and 42 units.
    features : int, optional
        How many units the last hidden layer has, whatever the width: the features that heads stand on, by default 84
        times the width. For the extractors of several shards, whose features add up.

    Raises
    ------
    ValueError
        Images are smaller, there are fewer classes, or width or features are none.

    Examples
    --------
    >>> sum(weights.numel() for weights in LeNet5().parameters())
    61706
    """

    def __init__(
        self, shape: tuple[int, ...] = (1, 28, 28), classes: int = 10, width: float = 1.0, features: int | None = None
    ) -> None:
        if len(shape) != 3 or shape[0] < 1 or min(shape[1:]) < SMALLEST:
            raise ValueError(
                f"LeNet-5 takes images (channels, height, width) of {SMALLEST} pixels per side or more, not {shape}: "
                "move the channels of others to the front, as by np.moveaxis(images, -1, 1). For tables there is MLP"
            )
        if classes < 2 or not 0.0 < width < math.inf or (features is not None and features < 1):
            raise ValueError(
                f"LeNet-5 has two classes or more, a width above 0 and one feature or more, not classes={classes}, "
                f"width={width}, features={features}"
            )
        channels, *sides = shape
        padding = 2 if min(sides) < 12 else 0
        inside = math.prod((side // 2 + 2 * padding - 4) // 2 for side in sides)
        first, second, third, last = (max(1, round(width * size)) for size in (6, 16, 120, 84))
        last = last if features is None else int(features)
        super().__init__(
            nn.Conv2d(channels, first, 5, padding=2),
            nn.ReLU(),
            AveragePool2(),
            nn.Conv2d(first, second, 5, padding=padding),
            nn.ReLU(),
            AveragePool2(),
            nn.Flatten(),
            nn.Linear(second * inside, third),
            nn.ReLU(),
            nn.Linear(third, last),
            nn.ReLU(),
            nn.Linear(last, classes),
        )
        # As files have named it from the beginning, where it is the original.
        sizes = [] if width == 1.0 and features is None else [float(width)]
        sizes += [] if features is None else [int(features)]
        self.arguments = (tuple(map(int, shape)), int(classes), *sizes)


class MLP(Layers):
    """Linear layers with ReLU between them.

    Parameters
    ----------
    inputs : int
        How many columns the table has.
    classes : int
        How many classes to tell apart, two or more.
    hidden : tuple of int
        Widths of the layers in between. The last one is the number of features of a record.

    Raises
    ------
    ValueError
        There is no input, no hidden layer, or fewer than two classes.
    """

    def __init__(self, inputs: int, classes: int, hidden: tuple[int, ...] = (128, 64)) -> None:
        if inputs < 1 or classes < 2 or not hidden or min(hidden) < 1:
            raise ValueError(
                f"an MLP has one input or more, two classes or more and hidden layers of one unit or more, "
                f"not inputs={inputs}, classes={classes}, hidden={hidden}"
            )
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in zip((inputs, *hidden), hidden, strict=False):
            layers += [nn.Linear(before, after), nn.ReLU()]
        super().__init__(*layers, nn.Linear(hidden[-1], classes))
        self.arguments = (int(inputs), int(classes), tuple(map(int, hidden)))


class NoNetwork(nn.Flatten):
    """Says that there is no network: the records are embeddings, and the heads are fitted on them as they are.

    `maxrr.MaxRR.on_features` makes a model with it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.arguments: tuple[()] = ()


# Extractors: any network cut before its last linear layer, and several of them as one.
#
# The layer is taken out and what would have entered it is the result, so a network needs no particular shape, and
# whatever it does afterwards (a softmax, say) is left out with it.


class Cut(BaseException):
    """Carries the features out of a network. Not an Exception, which a network might catch."""

    def __init__(self, features: Tensor) -> None:
        self.features = features


class CutPoint(nn.Module):
    """Stands in the place of the layer that was cut out."""

    def forward(self, features: Tensor) -> Tensor:
        raise Cut(features)


class Extractor(nn.Module):
    """A network up to the layer that was taken out: records in, features (records, d) out."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        try:
            self.body(*inputs, **named)
        except Cut as reached:
            return reached.features.flatten(1)
        raise ValueError("the network did not come to the layer it was cut at: name one that it uses, split(…, at=…)")


def split(network: nn.Module, at: str | None = None) -> tuple[nn.Module, nn.Linear]:
    """Split a network before its last linear layer, into two copies.

    Parameters
    ----------
    network : torch.nn.Module
        Any network with a linear layer; left as it is.
    at : str, optional
        The name of the layer to split before, as in `network.named_modules()`; by default the linear layer that the
        network defines last.

    Returns
    -------
    extractor : torch.nn.Module
        The network without that layer and what follows it. It is in evaluation mode: batch normalisation does not look
        at the other records of a batch, and dropout draws no numbers.
    prediction : torch.nn.Linear
        The layer.

    Raises
    ------
    ValueError
        The network has no linear layer of that name, or consists of nothing else.

    Examples
    --------
    >>> import torch
    >>> extractor, prediction = split(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)))
    >>> extractor(torch.zeros(5, 4)).shape, prediction
    (torch.Size([5, 3]), Linear(in_features=3, out_features=2, bias=True))
    """
    name = last_linear(network) if at is None else at
    linear = linear_layers(network)
    if name not in linear:
        raise ValueError(f"the network has no linear layer named {name!r}; it has {', '.join(map(repr, linear))}")
    if not name:
        raise ValueError("the network is a single linear layer, and nothing comes before it: there are no features")
    body = copy.deepcopy(network)
    prediction = body.get_submodule(name)
    assert isinstance(prediction, nn.Linear)
    if isinstance(body, nn.Sequential) and type(body).forward is nn.Sequential.forward and "." not in name:
        layers = list(body)  # nothing else happens in it
        last = max(place for place, layer in enumerate(layers) if layer is prediction)
        return nn.Sequential(*layers[:last], nn.Flatten()).eval(), prediction.eval()
    replace_layer(body, name, CutPoint())
    return Extractor(body).eval(), prediction.eval()


def linear_layers(network: nn.Module) -> list[str]:
    """The names of all linear layers, in the order in which the network defines them."""
    return [name for name, layer in every_name(network) if isinstance(layer, nn.Linear)]


def last_linear(network: nn.Module) -> str:
    """The name of the linear layer that the network defines last."""
    linear = linear_layers(network)
    if not linear:
        raise ValueError(
            "the network has no linear layer to cut before: add one that maps features to classes, "
            "or use the network as it is as a frozen extractor"
        )
    return linear[-1]


def every_name(network: nn.Module) -> list[tuple[str, nn.Module]]:
    """All layers, those that have several names under each of them."""
    return list(network.named_modules(remove_duplicate=False))


def names_of(network: nn.Module, name: str) -> set[str]:
    """All names of one layer."""
    layer = network.get_submodule(name)
    return {alias for alias, found in every_name(network) if found is layer}


def replace_layer(network: nn.Module, name: str, layer: nn.Module) -> None:
    """Put a layer in the place of another, under all of its names."""
    for alias in names_of(network, name):
        parent, _, child = alias.rpartition(".")
        setattr(network.get_submodule(parent), child, layer)


class SideBySide(nn.Module):
    """Extractors that see the same records; a record's features are those of the first, then of the second, and so on.

    Parameters
    ----------
    parts : sequence of torch.nn.Module
        The extractors. Each gives one vector per record.

    Examples
    --------
    >>> both = SideBySide([nn.Linear(4, 2), nn.Linear(4, 3)])
    >>> both(torch.zeros(7, 4)).shape
    torch.Size([7, 5])
    """

    def __init__(self, parts: Sequence[nn.Module]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        """The features of records, (records, d)."""
        return torch.cat([part(*inputs, **named).flatten(1) for part in self.parts], dim=1)


def joined(parts: Sequence[nn.Module]) -> nn.Module:
    """Join several extractors into one; return a single one as it is."""
    return parts[0] if len(parts) == 1 else SideBySide(parts).eval()


def parts_of(extractor: nn.Module) -> list[nn.Module]:
    """The extractors that `joined` was given."""
    return list(extractor.parts) if isinstance(extractor, SideBySide) else [extractor]
