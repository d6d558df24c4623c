"""Records as networks read them: tensors on a device, in the order of their ids."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maxrr.data import Dataset

WHITE = 255  # the largest value of a pixel in a byte


@dataclass(frozen=True)
class Records:
    """Inputs as they are stored (bytes stay bytes), labels, and the type that the network computes in."""

    inputs: Tensor
    labels: Tensor
    dtype: torch.dtype

    def __len__(self) -> int:
        return len(self.labels)

    def only(self, rows: NDArray[np.int64] | None) -> "Records":
        """Some of them; None stands for all."""
        if rows is None:
            return self
        places = torch.from_numpy(rows).to(self.labels.device)
        return Records(self.inputs[places], self.labels[places], self.dtype)

    def batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Some records, ready for the network: pixels in bytes become numbers from 0 to 1."""
        return ready(self.inputs[rows], self.dtype), self.labels[rows]


def ready(inputs: Tensor, dtype: torch.dtype) -> Tensor:
    """Inputs as a network reads them.

    >>> ready(torch.tensor([0, 51, 255], dtype=torch.uint8), torch.float32)
    tensor([0.0000, 0.2000, 1.0000])
    """
    numbers = inputs.to(dtype)
    # A product, because CUDA's quotient is one: the same bytes on every device.
    return numbers * (1 / WHITE) if inputs.dtype == torch.uint8 else numbers


def as_tensor(array: NDArray[Any]) -> Tensor:
    """The array's memory as a tensor, also where it may only be read, which we only do; a copy if it runs backwards."""
    if min(array.strides, default=0) < 0:
        array = array.copy()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)


def tensors(dataset: Dataset, device: str | torch.device = "cpu") -> tuple[Tensor, Tensor]:
    """Records as tensors, for a training function of one's own: just as the network will be given them to embed.

    Parameters
    ----------
    dataset : Dataset
        The records.
    device : str or torch.device
        Where the tensors should be.

    Returns
    -------
    inputs : Tensor
        In float32; pixels in bytes become numbers from 0 to 1.
    labels : Tensor
        The number of each record's class.

    Examples
    --------
    >>> import numpy as np
    >>> dataset = Dataset(np.array([[0, 51], [255, 0]], dtype=np.uint8), np.array([0, 1]), ("no", "yes"), np.arange(2))
    >>> tensors(dataset)[0].tolist()[1]
    [1.0, 0.0]
    """
    return ready(as_tensor(dataset.inputs).to(device), torch.float32), as_tensor(dataset.labels).to(device)


def records(dataset: Dataset, network: nn.Module, device: torch.device) -> Records:
    """All records of a data set, in the order of their ids."""
    if not len(dataset):
        raise ValueError("there are no records to train on")
    ordered = dataset.in_order()
    kinds = {weights.dtype for weights in network.parameters()}
    if len(kinds) != 1:
        raise ValueError(f"the network's weights are of several types, {kinds}: use one, as in network.float()")
    return Records(as_tensor(ordered.inputs).to(device), as_tensor(ordered.labels).to(device), kinds.pop())


def chosen_device(device: str | torch.device | None) -> torch.device:
    """The device asked for; None stands for CUDA where there is some, else the CPU."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except RuntimeError:
        raise ValueError(f"networks are trained on 'cpu' or 'cuda', not {str(device)!r}") from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("CUDA was asked for, but PyTorch finds no CUDA device here: use device='cpu'")
    if found.type not in ("cpu", "cuda"):
        raise ValueError(f"networks are trained on 'cpu' or 'cuda', not {str(device)!r}")
    return found
