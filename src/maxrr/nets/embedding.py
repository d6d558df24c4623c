"""Features of records. The bytes of one do not depend on which others are embedded with it.

Records go through the extractor in blocks of one fixed size, the last filled up with copies of its first record, and
each block is computed by one thread: so a matrix product never has another shape, and its rows do not depend on each
other. Copies, because what is no record, such as a sequence of length zero, some networks do not take.
"""

import copy
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maxrr.data import Dataset
from maxrr.files import write_atomically
from maxrr.nets.inputs import Inputs, as_tensors, call, device_on, each, ready
from maxrr.nets.seeding import pinned
from maxrr.parallel import Engine, EngineLike, Ray, Threads, engine_from
from maxrr.parallel.parcels import by_path, opened
from maxrr.progress import Progress

T = TypeVar("T")
Stretch = tuple[int, int]
"""The number of a first record, and of the one after the last."""

BY_ROUNDING = 1e-5  # of a record's largest feature; float32 rounds to 6e-8, and a deep network adds that up
BLOCKS = {"cpu": 256, "cuda": 4096}  # records; part of the contract: another size may give other bytes
STRETCH = 64  # blocks that a worker of an engine embeds at a time


def embed(
    extractor: nn.Module, dataset: Dataset, *, device: str | torch.device | None = None,
    out: str | Path | None = None, progress: Progress | None = None, engine: EngineLike = None,
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
    out : path, optional
        A `.npy` file to write the features to as they are computed, for features that do not fit in memory.
    progress : optional
        Called with how many records are embedded.
    engine : optional
        Where records are embedded, as in `maxrr.parallel.engine_from`: "ray" or "ray://host:10001" for a cluster. By
        default on this machine, as for up to 16,384 records on the CPU. On the CPU the features are the same from
        every engine, on machines of the same kind. Records in a memory map are read from its file.

    Returns
    -------
    ndarray of shape (records, d)
        One row of features per record, in the order of the dataset; with `out`, a memory map of that file.

    Raises
    ------
    ValueError
        The extractor gives no vector per record, or numbers that are not finite, or its features of a record depend on
        the other records of a batch.
    """
    chosen = engine_from(engine)
    place, count = device_on(chosen, device), len(dataset)
    if not count:
        raise ValueError("there are no records to embed")
    if chosen is not None and worth_sending(chosen, count, place):
        rows = rows_by(chosen, extractor, dataset, place)
    else:
        rows = blocks_of(extractor, dataset.inputs, dataset.ids, place, (0, count))
    with closing(rows):
        found = counted(rows, count, progress)
        return np.concatenate(list(found)) if out is None else stored_as(found, count, Path(out))


def stored_as(parts: Iterator[NDArray[Any]], count: int, path: Path) -> NDArray[Any]:
    """The features of so many records in a `.npy` file, as a memory map of it."""

    def write(file: BinaryIO) -> None:
        first: NDArray[Any] | None = None
        for rows in parts:
            if first is None:
                first = rows
                header = {"descr": rows.dtype.str, "fortran_order": False, "shape": (count, rows.shape[1])}
                np.lib.format.write_array_header_1_0(file, header)
            if (rows.dtype, rows.shape[1]) != (first.dtype, first.shape[1]):
                raise ValueError(
                    f"the extractor gives {first.shape[1]} features of type {first.dtype} for some records, and "
                    f"{rows.shape[1]} of type {rows.dtype} for others"
                )
            file.write(rows.tobytes())

    write_atomically(path, write)
    stored: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return stored


def blocks_of(
    extractor: nn.Module, inputs: NDArray[Any], ids: NDArray[Any], place: torch.device, stretch: Stretch
) -> Generator[NDArray[Any]]:  # fmt: skip
    """The features of a stretch of records that begins where a block does, block by block.

    Close it: until then PyTorch's settings are pinned.
    """
    extract, size = block_extractor(extractor, place, ids), BLOCKS[place.type]

    def block(first: int) -> NDArray[Any]:
        features = extract(first, as_tensors(np.asarray(inputs[first : first + size]))).cpu()
        if features.dtype == torch.bfloat16:
            raise ValueError(
                "the extractor gives features in bfloat16, a type that NumPy lacks: give it float32 layers"
            )
        return features.numpy()

    return in_turn(block, range(*stretch, size), place)


def worth_sending(engine: Engine, count: int, place: torch.device) -> bool:
    """Whether an engine does it: on graphics processors that of a cluster, otherwise for more than one stretch."""
    return isinstance(engine, Ray) if place.type == "cuda" else count > STRETCH * BLOCKS["cpu"]


def rows_by(engine: Engine, extractor: nn.Module, dataset: Dataset, place: torch.device) -> Generator[NDArray[Any]]:
    """The features of all records in order, a stretch at a time, by the workers of an engine."""
    count, size = len(dataset), STRETCH * BLOCKS[place.type]
    stretches = [(first, min(first + size, count)) for first in range(0, count, size)]
    network = copy.deepcopy(extractor).cpu()
    return engine.map(rows_of, stretches, (network, by_path(dataset.inputs), dataset.ids, place.type))


def rows_of(stretch: Stretch, given: tuple[nn.Module, Any, NDArray[Any], str]) -> NDArray[Any]:
    """What a worker does for a stretch, with the extractor, the inputs or where they lie, all ids, and the device."""
    extractor, inputs, ids, device = given
    with closing(blocks_of(extractor, opened(inputs), ids, torch.device(device), stretch)) as blocks:
        return np.concatenate(list(blocks))


def embed_on_device(extractor: nn.Module, inputs: Tensor, ids: NDArray[Any]) -> Tensor:
    """The same features, byte for byte, of records that lie on a device already; they stay there.

    For a hundred extractors that look at the same records, one after the other.
    """
    extract, size = block_extractor(extractor, inputs.device, ids), BLOCKS[inputs.device.type]
    firsts = range(0, len(inputs), size)
    with closing(in_turn(lambda first: extract(first, inputs[first : first + size]), firsts, inputs.device)) as blocks:
        return torch.cat(list(blocks)).clone()  # outside of inference mode: a tensor like any other


def block_extractor(
    extractor: nn.Module, device: torch.device, ids: NDArray[Any]
) -> Callable[[int, Inputs], Tensor]:  # fmt: skip
    """A function from the number of a block's first record and its inputs to their features, on the device.

    Every block is filled up to one size, so no record's features depend on how many are in its block.
    """
    size = BLOCKS[device.type]
    network = copy.deepcopy(extractor).to(device).eval()
    kind = type_read(network)

    def extract(first: int, stored: Inputs) -> Tensor:
        count = len(stored if isinstance(stored, Tensor) else next(iter(stored.values())))
        with torch.inference_mode():
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
        if first == 0:
            check_neighbours(network, inputs, result)
        return features

    return extract


def type_read(extractor: nn.Module) -> torch.dtype:
    """The type in which an extractor is given numbers: that of its first weights."""
    return next((weights.dtype for weights in extractor.parameters()), torch.float32)


def called(network: nn.Module, inputs: Inputs) -> Any:
    """What the extractor makes of a block. One that takes other arguments is said to."""
    try:
        return call(network, inputs)
    except TypeError as error:
        if isinstance(inputs, Tensor):
            raise
        raise ValueError(f"the extractor does not take the inputs {', '.join(inputs)}: {error}") from error


def filled(part: Tensor, size: int) -> Tensor:
    """A copy of an input of some records, with more of the first to make up one size."""
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


def with_every_second(part: Tensor, first: int) -> Tensor:
    """An input of a block with every second record in its place, from this one on, and copies of it in the others."""
    changed = part.clone()
    changed[1 - first :: 2] = part[first]
    return changed


def in_turn(block: Callable[[int], T], firsts: range, device: torch.device) -> Generator[T]:
    """Blocks in order; on the CPU several are computed at once, but never many more than were asked for."""
    if device.type == "cuda":
        with full_precision():
            yield from map(block, firsts)
        return

    def alone(first: int) -> T:
        torch.set_num_threads(1)  # PyTorch keeps the number for every thread
        return block(first)

    with pinned(1), closing(Threads().map(alone, firsts)) as blocks:
        yield from blocks


def counted(blocks: Iterator[NDArray[Any]], total: int, progress: Progress | None) -> Iterator[NDArray[Any]]:
    """The blocks, telling how many records have passed."""
    done = 0
    for rows in blocks:
        done += len(rows)
        if progress is not None:
            progress("embedding", done, total)
        yield rows


@contextmanager
def full_precision() -> Iterator[None]:
    """All 24 bits of float32 on CUDA, and one fixed algorithm for a convolution."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
