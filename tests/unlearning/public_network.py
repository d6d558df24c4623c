"""A network with a file of 'public' weights, as people have it: a module that makes it and loads them."""

from pathlib import Path

import torch
from torch import nn

from maxrr.nets import Resized

FILE = Path("weights.pt")  # tests write one, and say where


class Encoder(nn.Module):
    """Made for images of 12 × 12 pixels and 1,000 classes."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2, bias=False), nn.BatchNorm2d(4), nn.ReLU())
        self.stage = nn.Sequential(nn.Conv2d(4, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.classifier = nn.Linear(72, 1000)

    def forward(self, images):
        return self.classifier(self.stage(self.stem(images)).flatten(1))


def encoder():
    network = Encoder()
    network.load_state_dict(torch.load(FILE, weights_only=True))
    return Resized(network, 12, mean=0.5, scale=0.25)


def drawing_encoder():
    """One that forgets to load some."""
    network = Encoder()
    network.stem.load_state_dict(Encoder().stem.state_dict())
    return Resized(network, 12)


def write_weights(file, seed=0):
    """Made-up weights, with statistics as if batches had been seen."""
    generator = torch.Generator().manual_seed(seed)
    weights = Encoder().state_dict()
    for value in weights.values():
        if value.is_floating_point():
            centre = 0.0 if value.ndim > 1 else 1.0
            value.copy_(centre + 0.3 * torch.randn(value.shape, generator=generator).clamp(-2.0, 2.0))
    torch.save(weights, file)
