"""Records as networks read them: tensors on a device, in the order of their ids."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maxrr.data import Dataset
from maxrr.data.fields import by_place
from maxrr.parallel import Ray
from maxrr.parallel.engine import Engine

WHITE = 255  # the largest value of a pixel in a byte

Inputs = Tensor | dict[str, Tensor]
"""What a network takes: one tensor, or several by name, as `maxrr.data.fields` names them."""


@dataclass(frozen=True)
class Records:
    """Inputs as they are stored (bytes stay bytes), labels, and the type that the network computes in."""

    inputs: Inputs
    labels: Tensor
    dtype: torch.dtype

    def __len__(self) -> int:
        return len(self.labels)

    def only(self, rows: NDArray[np.int64] | None) -> "Records":
        """Return the records of some rows; None stands for all."""
        if rows is None:
            return self
        places = torch.from_numpy(rows).to(self.labels.device)
        return Records(each(lambda part: part[places], self.inputs), self.labels[places], self.dtype)

    def batch(self, rows: Tensor) -> tuple[Inputs, Tensor]:
        """Some records, ready for the network: pixels in bytes become numbers from 0 to 1."""
        return ready(each(lambda part: part[rows], self.inputs), self.dtype), self.labels[rows]


def each(function: Callable[[Tensor], Tensor], inputs: Inputs) -> Inputs:
    """Apply a function to every input."""
    if isinstance(inputs, Tensor):
        return function(inputs)
    return {name: function(part) for name, part in inputs.items()}


def arguments(inputs: Inputs) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """Return the inputs of a network as positional and as named arguments."""
    if isinstance(inputs, Tensor):
        return (inputs,), {}
    return (tuple(inputs.values()), {}) if by_place(list(inputs)) else ((), inputs)


def call(network: nn.Module, inputs: Inputs) -> Any:
    """Call a network with inputs that are ready for it."""
    by_position, by_name = arguments(inputs)
    return network(*by_position, **by_name)


def ready(inputs: Inputs, dtype: torch.dtype) -> Inputs:
    """Convert inputs as networks read them: bytes to numbers from 0 to 1, floats to the network's type.

    >>> ready(torch.tensor([0, 51, 255], dtype=torch.uint8), torch.float32)
    tensor([0.0000, 0.2000, 1.0000])
    >>> ready(torch.tensor([101, 7, 102]), torch.float32)
    tensor([101,   7, 102])
    """

    def read(part: Tensor) -> Tensor:
        if part.dtype == torch.uint8:
            return part.to(dtype) * (1 / WHITE)  # a product, because CUDA's quotient is one: the same bytes everywhere
        return part.to(dtype) if part.is_floating_point() else part

    return each(read, inputs)


def as_tensors(array: NDArray[Any]) -> Inputs:
    """The inputs of records as tensors."""
    if array.dtype.names is None:
        return as_tensor(array)
    return {name: as_tensor(array[name]) for name in array.dtype.names}


def as_tensor(array: NDArray[Any]) -> Tensor:
    """Share an array's memory with a tensor, also where the array is read-only: nothing is written to it.

    It is a copy if the array lies in memory in another way than row by row. PyTorch would see that, and round
    differently; it even looks at how far apart the parts of an axis of length 1 would be.
    """
    array = np.require(array, requirements=["C", "ALIGNED"])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array.reshape(-1)).view(array.shape)


def as_array(value: Tensor) -> NDArray[Any]:
    """Convert a tensor to an array; bfloat16, which NumPy lacks, as its bits."""
    return (value.view(torch.int16) if value.dtype == torch.bfloat16 else value).numpy()


def as_tensor_of(array: NDArray[Any], kind: torch.dtype) -> Tensor:
    """A tensor of this type with the numbers of an array that `as_array` made."""
    return torch.tensor(array).view(kind)


def tensors(dataset: Dataset, device: str | torch.device = "cpu") -> tuple[Any, Tensor]:
    """Convert records to tensors as the network will be given them, for a training function of your own.

    Parameters
    ----------
    dataset : Dataset
        The records.
    device : str or torch.device
        Where the tensors should be.

    Returns
    -------
    inputs : Tensor or dict of str to Tensor
        Floats in float32; pixels in bytes become numbers from 0 to 1; other integers as they are. Several inputs by
        their names.
    labels : Tensor
        The number of each record's class.

    Examples
    --------
    >>> import numpy as np
    >>> dataset = Dataset(np.array([[0, 51], [255, 0]], dtype=np.uint8), np.array([0, 1]), ("no", "yes"), np.arange(2))
    >>> tensors(dataset)[0].tolist()[1]
    [1.0, 0.0]
    """
    inputs = each(lambda part: part.to(device), as_tensors(dataset.inputs))
    return ready(inputs, torch.float32), as_tensor(dataset.labels).to(device)


def records(dataset: Dataset, network: nn.Module, device: torch.device) -> Records:
    """All records of a data set, in the order of their ids."""
    if not len(dataset):
        raise ValueError("there are no records to train on")
    ordered = dataset.in_order()
    kinds = {weights.dtype for weights in network.parameters()}
    if len(kinds) != 1:
        raise ValueError(f"the network's weights are of several types, {kinds}: use one, as in network.float()")
    inputs = each(lambda part: part.to(device), as_tensors(ordered.inputs))
    return Records(inputs, as_tensor(ordered.labels).to(device), kinds.pop())


def chosen_device(device: str | torch.device | None) -> torch.device:
    """The device asked for; None stands for CUDA where there is some, else the CPU."""
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(device)
    except RuntimeError:
        raise ValueError(f"networks are trained on 'cpu' or 'cuda', not {str(device)!r}") from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("CUDA was asked for, but PyTorch finds no CUDA device here: use device='cpu'")
    if found.type not in ("cpu", "cuda"):
        raise ValueError(f"networks are trained on 'cpu' or 'cuda', not {str(device)!r}")
    if found.type == "cuda":  # products that use the same memory each time; read at the first of them
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    return found


def device_on(engine: Engine | None, device: str | torch.device | None) -> torch.device:
    """Where the workers of an engine train: those of a cluster on the CPU, or on the graphics processors asked for."""
    if engine is not None and torch.get_default_dtype() != torch.float32:
        raise ValueError("workers of an engine have PyTorch's usual default type, float32: set that, or use no engine")
    if not isinstance(engine, Ray):
        return chosen_device(device)
    there = torch.device("cuda" if engine.gpus else "cpu")
    if device is not None and str(device).partition(":")[0] != there.type:
        asks = f"Ray(…, gpus={engine.gpus:g})"
        raise ValueError(
            f"{asks} trains on {there.type!r}, and device={str(device)!r} was asked for: leave the device out, and say "
            "how many graphics processors a worker takes by gpus=…"
        )
    return there
