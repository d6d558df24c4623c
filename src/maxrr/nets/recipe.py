"""How a network is trained, and what came of it."""

import operator
import platform
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Recipe:
    """Adam on the cross-entropy; a subclass may have another optimiser.

    The defaults land on the paper's accuracy and support-vector counts for LeNet-5.
    """

    epochs: int = 18
    batch_size: int = 64
    lr: float = 1e-3

    def __post_init__(self) -> None:
        for name, kind in (("epochs", operator.index), ("batch_size", operator.index), ("lr", float)):
            object.__setattr__(self, name, kind(getattr(self, name)))  # NumPy's numbers become Python's
        if self.epochs < 1 or self.batch_size < 1 or not self.lr > 0.0:
            raise ValueError(
                f"training takes one epoch or more, batches of one record or more and a positive learning rate, "
                f"not epochs={self.epochs}, batch_size={self.batch_size}, lr={self.lr}"
            )

    def optimiser(self, weights: Sequence[Tensor]) -> torch.optim.Optimizer:
        """What moves these weights, step by step."""
        return torch.optim.Adam(weights, lr=self.lr, fused=True, capturable=weights[0].device.type == "cuda")

    def batches(self, count: int) -> list[int]:
        """Sizes of an epoch's batches. The last may be smaller; a single record left over joins the batch before it,
        because batch normalisation cannot do with one.

        >>> Recipe(batch_size=4).batches(10), Recipe(batch_size=4).batches(9)
        ([4, 4, 2], [4, 5])
        """
        full, rest = divmod(count, self.batch_size)
        sizes = [self.batch_size] * full + [rest] * (rest > 0)
        return [*sizes[:-2], sizes[-2] + 1] if rest == 1 and full else sizes


@dataclass(frozen=True)
class Environment:
    """What, beside the seed, the bytes of a trained network depend on."""

    device: str
    threads: int
    torch_version: str
    numpy_version: str
    machine: str

    @classmethod
    def here(cls, device: torch.device, threads: int) -> "Environment":
        """This process, on one of its devices."""
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
        return cls(name, threads, torch.__version__, np.__version__, platform.machine())


@dataclass(frozen=True)
class Run:
    """A trained network, on the CPU and in evaluation mode."""

    seed: int
    network: nn.Module
    loss: float  # mean over the last epoch, as it went
    accuracy: float  # on the training records, over the last epoch, as it went
    environment: Environment
