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
    """How a network is trained: Adam on the cross-entropy. A subclass may have another optimiser.

    The defaults give the paper's accuracy and number of influential records for LeNet-5 on Fashion-MNIST.

    Attributes
    ----------
    epochs
        How often training goes through all records.
    batch_size
        How many records each step sees.
    lr
        Adam's learning rate. Lower it when training diverges.
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
        """The optimiser that moves the weights.

        Parameters
        ----------
        weights
            The tensors to train, all on one device.

        Returns
        -------
        torch.optim.Optimizer
            Adam with the learning rate `lr`.
        """
        return torch.optim.Adam(weights, lr=self.lr, fused=True, capturable=weights[0].device.type == "cuda")

    def batches(self, count: int) -> list[int]:
        """The sizes of an epoch's batches.

        The last one may be smaller. A single record left over joins the batch before it, because batch normalisation
        cannot be trained on one record.

        Parameters
        ----------
        count
            How many records there are.

        Returns
        -------
        list of int
            Sizes that sum to `count`.

        Examples
        --------
        >>> Recipe(batch_size=4).batches(10), Recipe(batch_size=4).batches(9)
        ([4, 4, 2], [4, 5])
        """
        full, rest = divmod(count, self.batch_size)
        sizes = [self.batch_size] * full + [rest] * (rest > 0)
        return [*sizes[:-2], sizes[-2] + 1] if rest == 1 and full else sizes


@dataclass(frozen=True)
class Environment:
    """What the bytes of a trained network depend on besides the seed.

    Attributes
    ----------
    device
        The name of the GPU, or 'cpu'.
    threads
        How many threads trained each network.
    torch_version, numpy_version
        Versions of PyTorch and NumPy.
    machine
        The kind of processor, such as 'x86_64'.
    """

    device: str
    threads: int
    torch_version: str
    numpy_version: str
    machine: str

    @classmethod
    def here(cls, device: torch.device, threads: int) -> "Environment":
        """The environment of this process.

        Parameters
        ----------
        device
            The device that networks are trained on.
        threads
            How many threads train each network.

        Returns
        -------
        Environment
            With the versions that are installed here.
        """
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
        return cls(name, threads, torch.__version__, np.__version__, platform.machine())


@dataclass(frozen=True)
class Run:
    """A trained network, and how its training ended.

    Attributes
    ----------
    seed
        What the first weights and the shuffles were drawn from.
    network
        The trained network, on the CPU and in evaluation mode.
    loss
        The mean cross-entropy over the last epoch, measured while it trained.
    accuracy
        The accuracy on the training records over the last epoch, measured while it trained.
    environment
        Where it was trained.
    """

    seed: int
    network: nn.Module
    loss: float
    accuracy: float
    environment: Environment
