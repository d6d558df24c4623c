"""Features of records. The bytes of one do not depend on which others are embedded with it.

Records go through the extractor in blocks of one fixed size, the last filled up with copies of its first record, and
each block is computed by one thread: so a matrix product never has another shape, and its rows do not depend on each
other. Copies, because what is no record, such as a sequence of length zero, some networks do not take.

A few records that are only to be predicted would wait for hundreds of copies: they go through in blocks of two, which
round otherwise. No head is fitted on such features.
"""

import copy
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maxrr.data import Dataset
from maxrr.nets.inputs import Inputs, as_tensors, call, chosen_device, each, ready
from maxrr.nets.public_weights import Resize
from maxrr.nets.seeding import as_asked, full_precision, pinned
from maxrr.parallel.engine import Threads
from maxrr.plain_text import first_few
from maxrr.progress import Progress

BY_ROUNDING = 1e-5  # of a record's largest feature; float32 rounds to 6e-8, and a deep network adds that up
BLOCKS = {"cpu": 256, "cuda": 4096}  # records; part of the contract: another size may give other bytes
RESIZED_BLOCKS = {"cpu": 32, "cuda": 512}  # of networks whose images are resized, and so take more memory each
FEW = 16  # records that are predicted on a CPU two at a time: one alone is a case of its own for code like `squeeze`


def embed(
    extractor: nn.Module, dataset: Dataset, *, device: str | torch.device | None = None,
    progress: Progress | None = None,
) -> NDArray[Any]:  # fmt: skip
    """Compute the features of every record.

    A record's features are the same bytes whichever records are embedded with it, and in which order, on the same
    machine and device, if the extractor treats each record by itself. Whether it does is looked at in the first block,
    to 1e-5 of a record's largest feature.

    Parameters
    ----------
    extractor : torch.nn.Module
        A network's part from `split`, or any pretrained network that gives one vector per record. Used in evaluation
        mode, and left as it is.
    dataset : Dataset
        The records.
    device : optional
        "cpu" or "cuda"; by default CUDA where PyTorch finds it.
    progress : optional
        Called with how many records are embedded.

    Returns
    -------
    ndarray of shape (records, d)
        One row of features per record, in the order of the dataset.

    Raises
    ------
    ValueError
        The extractor gives no vector per record, or numbers that are not finite, or its features of a record depend on
        the other records of a batch.
    """
    place = chosen_device(device)
    found: list[NDArray[Any]] = []
    done = 0
    with closing(blocks_of(extractor, dataset, place)) as blocks:
        for rows in blocks:
            found.append(rows)
            done += len(rows)
            if progress is not None:
                progress("embedding", done, len(dataset))
    return np.concatenate(found)


def embed_to_predict(extractor: nn.Module, dataset: Dataset, device: str | torch.device | None) -> NDArray[Any]:
    """Compute features that no head is fitted on, by a model's extractor: in evaluation mode, and checked by `embed`.

    On a CPU those of up to 16 records differ from what `embed` gives by rounding: by less than 1e-6 of a record's
    largest feature, but through dozens of layers by a few times as much. Those of more records, or on CUDA, are the
    same bytes. In either case they depend on no other record.
    """
    place = chosen_device(device)
    size = 2 if place.type == "cpu" and len(dataset) <= FEW else block_size(extractor, place)
    with closing(blocks_of(extractor, dataset, place, size)) as blocks:
        return np.concatenate(list(blocks))


def blocks_of(
    extractor: nn.Module, dataset: Dataset, place: torch.device, size: int | None = None
) -> Generator[NDArray[Any]]:
    """The features of all records, block by block: on the CPU several blocks at once, each by one thread.

    Close it: until then PyTorch's settings are pinned. The size of blocks is given for an extractor that was checked.
    """
    if not len(dataset):
        raise ValueError("there are no records to embed")
    extract = block_extractor(extractor, place, dataset.ids, size)
    size = size or block_size(extractor, place)
    firsts = range(0, len(dataset), size)

    def block(first: int) -> NDArray[Any]:
        features = extract(first, as_tensors(np.asarray(dataset.inputs[first : first + size]))).cpu()
        if features.dtype == torch.bfloat16:
            raise ValueError("the extractor gives features in bfloat16, which NumPy lacks: give it float32 layers")
        return features.numpy()

    def alone(first: int) -> NDArray[Any]:
        torch.set_num_threads(1)  # PyTorch keeps the number for every thread
        return block(first)

    if place.type == "cuda":
        with full_precision():
            yield from map(block, firsts)
    else:
        with pinned(1), closing(Threads().map(alone, firsts)) as blocks:
            yield from blocks


def block_size(extractor: nn.Module, device: torch.device) -> int:
    """How many records go through an extractor at a time."""
    resizes = any(isinstance(layer, Resize) for layer in extractor.modules())
    return (RESIZED_BLOCKS if resizes else BLOCKS)[device.type]


def block_extractor(
    extractor: nn.Module, device: torch.device, ids: NDArray[Any], checked_size: int | None = None
) -> Callable[[int, Inputs], Tensor]:
    """A function from the number of a block's first record and its inputs to their features, on the device.

    Every block is filled up to one size, so no record's features depend on how many are in its block. An extractor that
    was checked, and is in evaluation mode, may have blocks of another size.
    """
    size = checked_size or block_size(extractor, device)
    as_it_is = checked_size is not None and device.type == "cpu"
    network = extractor if as_it_is else copy.deepcopy(extractor).to(device).eval()
    kind = next((weights.dtype for weights in network.parameters()), torch.float32)  # that numbers are given in

    def extract(first: int, stored: Inputs) -> Tensor:
        count = len(stored if isinstance(stored, Tensor) else next(iter(stored.values())))
        looking = first == 0 and checked_size is None
        before = {name: value.clone() for name, value in network.named_buffers()} if looking else {}
        with torch.inference_mode(), as_asked(device):
            inputs = ready(each(lambda part: filled(part, size).to(device), stored), kind)
            result = called(network, inputs)
        if not isinstance(result, Tensor) or result.ndim < 2 or len(result) != size:
            found = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
            raise ValueError(f"the extractor should give one vector for each of {size} records, but gives {found}")
        features = result.flatten(1)[:count]
        finite = features.isfinite().all(1)
        if not bool(finite.all()):
            unusable = ids[first + int(finite.logical_not().nonzero()[0])].item()
            raise ValueError(f"the extractor gives features of record {unusable!r} that are not finite: scale the data")
        if looking:
            with as_asked(device):
                check_neighbours(network, inputs, result)
            check_buffers(network, before)
        return features

    return extract


def called(network: nn.Module, inputs: Inputs) -> Any:
    """Call the extractor with a block; say so if it takes other inputs."""
    try:
        return call(network, inputs)
    except TypeError as error:
        if isinstance(inputs, Tensor):
            raise
        raise ValueError(f"the extractor does not take the inputs {', '.join(inputs)}: {error}") from error


def filled(part: Tensor, size: int) -> Tensor:
    """Copy an input of some records, and fill it up to a size with copies of the first."""
    padded = part.new_empty(size, *part.shape[1:])
    padded[: len(part)] = part
    padded[len(part) :] = part[0]
    return padded


def check_neighbours(network: nn.Module, inputs: Inputs, result: Tensor) -> None:
    """Refuse an extractor for which a record's features depend on the others in its batch, by more than rounding.

    Every record of a block is seen with other neighbours: every second one first, then the rest, each beside copies of
    the first of them. What cuts a batch to its longest sequence may round otherwise when that is gone, and passes.
    """
    allowed = max(BY_ROUNDING, 8.0 * torch.finfo(result.dtype).eps) if result.is_floating_point() else 0.0
    for first in (0, 1):
        with torch.inference_mode():
            alone = call(network, each(partial(with_every_second, first=first), inputs)).flatten(1)[first::2].double()
        before = result.flatten(1)[first::2].double()
        if bool(((alone - before).abs().amax(1) > allowed * before.abs().amax(1)).any()):
            raise ValueError(
                "the extractor's features of a record depend on its neighbours in the batch (batch normalisation "
                "without running statistics does that, and a mean over the longest sequence of a batch): such features "
                "could not be told to belong to one record"
            )


def check_buffers(network: nn.Module, before: dict[str, Tensor]) -> None:
    """Refuse an extractor that changes stored buffers. It may keep tables that it computes and does not store."""
    stored = network.state_dict()
    moved = [
        name for name, value in network.named_buffers()
        if name in stored and not (name in before and before[name].allclose(value, rtol=0, atol=0, equal_nan=True))
    ]  # fmt: skip
    if moved:
        raise ValueError(
            f"the extractor changes its buffers {first_few(moved)} as it computes features: they would remember whom "
            "it has seen. Change them in training mode alone"
        )


def with_every_second(part: Tensor, first: int) -> Tensor:
    """Copy a block with every second record in its place, and copies of the first of these in the other places."""
    changed = part.clone()
    changed[1 - first :: 2] = part[first]
    return changed
