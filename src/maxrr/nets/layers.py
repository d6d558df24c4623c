"""Layers one after the other, under a name of their own."""

from typing import Any

from torch import nn


class Layers(nn.Sequential):
    """A Sequential whose constructor takes something else than layers, and that can be cut into pieces all the same."""

    def __getitem__(self, which: slice | int) -> Any:
        layers = list(self)[which]
        return nn.Sequential(*layers) if isinstance(layers, list) else layers
