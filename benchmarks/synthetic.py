"""Made-up embeddings: one centre per class, noise around it, and labels of which some are wrong."""

import numpy as np
import torch

from features import Labels

APART, LEAST = 0.2, 4.0  # how far centres are from zero, in standard deviations of the noise: per direction, in all
LENGTH = 4.0  # of a sample, about
BLOCK = 1 << 16  # rows made at a time


def embeddings(
    samples: int, width: int, classes: int, wrong: float, device: str = "cpu", seed: int = 0
) -> tuple[torch.Tensor, Labels]:
    """Samples in float32, made where they are used, block by block; and labels, a share of them drawn anew."""
    rng, generator = np.random.default_rng(seed), torch.Generator(device).manual_seed(seed)
    y = rng.integers(classes, size=samples)
    centres = max(APART, LEAST / width**0.5) * torch.randn(classes, width, generator=generator, device=device)
    X = torch.empty(samples, width, device=device)
    for start in range(0, samples, BLOCK):
        block = X[start : start + BLOCK]
        block.normal_(generator=generator)
        block += centres[torch.as_tensor(y[start : start + BLOCK], device=device)]
        block *= LENGTH / width**0.5
    drawn_anew = rng.random(samples) < wrong
    y[drawn_anew] = rng.integers(classes, size=int(drawn_anew.sum()))
    return X, y
