"""Layers one after the other, under a name of their own."""

from typing import Any

from torch import nn


class Layers(nn.Sequential):
    """A `torch.nn.Sequential` whose constructor does not take layers, and that can be sliced nevertheless."""

    def __getitem__(self, which: slice | int) -> Any:
        layers = list(self)[which]
        return nn.Sequential(*layers) if isinstance(layers, list) else layers
