"""Extractors: any network cut before its last linear layer, and several of them as one.

The layer is taken out and what would have entered it is the result, so a network needs no particular shape, and
whatever it does afterwards (a softmax, say) is left out with it.
"""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Cut(BaseException):
    """Carries the features out of a network. Not an Exception, which a network might catch."""

    def __init__(self, features: Tensor) -> None:
        self.features = features


class CutPoint(nn.Module):
    """Where the layer was."""

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
    linear = [name for name, layer in every_name(network) if isinstance(layer, nn.Linear)]
    if not linear:
        raise ValueError(
            "the network has no linear layer to cut before: add one that maps features to classes, "
            "or use the network as it is as a frozen extractor"
        )
    name = linear[-1] if at is None else at
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
    for alias in [alias for alias, layer in every_name(body) if layer is prediction]:
        parent, _, child = alias.rpartition(".")
        setattr(body.get_submodule(parent), child, CutPoint())
    return Extractor(body).eval(), prediction.eval()


def every_name(network: nn.Module) -> list[tuple[str, nn.Module]]:
    """All layers, those that have several names under each of them."""
    return list(network.named_modules(remove_duplicate=False))


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
    """One extractor of several; a single one as it is."""
    return parts[0] if len(parts) == 1 else SideBySide(parts).eval()


def parts_of(extractor: nn.Module) -> list[nn.Module]:
    """The extractors that `joined` was given."""
    return list(extractor.parts) if isinstance(extractor, SideBySide) else [extractor]
