"""Training for one seed, or for many.

On a CPU runs go on side by side, one thread each: steps of a small network are too short to be shared between cores.
On CUDA they all step together. On an engine each worker makes a run of its own, or some that step together.
"""

import copy
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from maxrr.data import Dataset
from maxrr.data.fields import described, parts_of
from maxrr.nets.inputs import Inputs, Records, as_array, as_tensor_of, call, chosen_device, device_on, each, records
from maxrr.nets.recipe import Recipe, Run, batch_sizes, optimiser_of
from maxrr.nets.runs import Tally, Task, hold, run_in_turn, run_side_by_side, run_together
from maxrr.nets.seeding import Network, all_drawing, begin, checked_seed, random_states
from maxrr.nets.stacked import Stack
from maxrr.nets.training_function import OwnTraining, Training, compared, small_part
from maxrr.parallel.engine import Engine, cores
from maxrr.parallel.ray_cluster import EngineLike, engine_from
from maxrr.progress import Progress

TOGETHER = 25  # runs that step together on one graphics processor of a cluster: bytes depend on how many do


def train(
    network: Network, dataset: Dataset, seed: int, *, recipe: Training | None = None,
    device: str | torch.device | None = None, threads: int | None = None, progress: Progress | None = None,
    **settings: Any,
) -> Run:  # fmt: skip
    """Train a network.

    The same seed gives the same bytes on the same machine with the same number of threads. The order of the records
    does not matter: they are sorted by their ids first.

    Parameters
    ----------
    network : torch.nn.Module or function
        Left as it is; a copy of it is trained, from weights that its layers draw for this seed (`reset_parameters`).
        Frozen layers keep theirs. A function without arguments makes a network by itself.
    dataset : Dataset
        The records to train on.
    seed : int
        Decides the first weights, the shuffles, and what layers such as dropout draw.
    recipe : Recipe, optional
        How the network is trained.
    device : optional
        "cpu" or "cuda"; by default CUDA where PyTorch finds it.
    threads : int, optional
        How many threads to use on the CPU; by default as many as PyTorch is set to.
    progress : optional
        Called with how many records training has gone through, the loss and the accuracy on the training records.
    **settings
        Those of a `Recipe`, such as `epochs=5`, in place of one.

    Returns
    -------
    Run
        The trained network on the CPU and in evaluation mode, with its loss and accuracy over the last epoch.

    Raises
    ------
    ValueError
        The network does not take the records, or training diverged.

    Examples
    --------
    >>> import maxrr
    >>> digits, _ = maxrr.data.load("digits")
    >>> run = train(maxrr.nets.MLP(64, 10, hidden=(8,)), digits, seed=0, epochs=1, device="cpu", threads=1)
    >>> run.seed, run.loss < 2.4
    (0, True)
    """
    count = torch.get_num_threads() if threads is None else threads
    if count < 1:
        raise ValueError(f"one thread or more, not {count}")
    task = Task(network, dataset, recipe or Recipe(**settings), chosen_device(device), count)
    (run,) = run_all(task, [seed], 1, progress)
    return run


def seen_twice(
    network: Network, dataset: Dataset, seed: int, recipe: Recipe, device: torch.device, threads: int
) -> str:
    """Train twice for a few steps on a part of the records, and say whether the networks have the same bytes."""
    part, few = small_part(dataset), replace(recipe, epochs=2)
    runs = (train(network, part, seed, recipe=few, device=device, threads=threads) for _ in range(2))
    return compared(*(run.network.state_dict() for run in runs))


def warm_up(device: str | torch.device | None) -> None:
    """Let PyTorch load what it needs for the first step of a process: seconds that belong to no training."""
    weights = torch.zeros(1, device=chosen_device(device), requires_grad=True)
    weights.sum().backward()
    optimiser_of(Recipe(), weights).step()


def train_apart(
    network: Network, dataset: Dataset, rows: Mapping[int, NDArray[np.int64]], recipe: Training, *,
    device: str | torch.device | None, threads: int, progress: Progress | None, tell: bool,
    engine: Engine | None = None,
) -> Generator[Run]:  # fmt: skip
    """Train a network for several seeds, each of which sees rows of its own alone, in the order of the seeds.

    `dataset` is in the order of ids. The bytes are those of training on the records of these rows by themselves: on
    the CPU runs go on side by side, or on the workers of an engine; on CUDA one after the other, here, where bytes
    depend on how many step together. Where they cannot go on side by side, a warning says so if the caller wants to
    `tell`.
    """
    place = chosen_device(device)
    if engine is not None and place.type == "cpu":
        yield from run_all(Task(network, dataset, recipe, place, threads, rows), list(rows), 1, progress, engine)
        return
    groups = [list(rows)] if place.type == "cpu" else [[seed] for seed in rows]
    for seeds in groups:
        task = Task(network, dataset, recipe, place, threads, {seed: rows[seed] for seed in seeds}, tell)
        yield from run_all(task, seeds, max(1, cores() // threads), progress)


def train_many(
    network: Network, dataset: Dataset, seeds: Iterable[int], *, recipe: Training | None = None,
    device: str | torch.device | None = None, without: Sequence[ArrayLike] | None = None,
    progress: Progress | None = None, engine: EngineLike = None, **settings: Any,
) -> Generator[Run]:  # fmt: skip
    """Train a network once for each seed, in the way of `train`.

    On the CPU each run has one thread and the bytes of `train(…, threads=1)`. On CUDA networks share their steps, and
    the last bits of a result may depend on how many there are.

    Parameters
    ----------
    network, dataset
        As in `train`.
    seeds : iterable of int
        One run for each, all different.
    recipe, device : optional
        As in `train`.
    without : sequence of ids, optional
        For each seed the ids of the records that its run must not see, equally many for each seed. The run is the one
        that `dataset.without(ids)` would give. On CUDA, runs without different records can so share their steps.
    progress : optional
        As in `train`, for all runs together.
    engine : optional
        Where the runs are made, as in `maxrr.parallel.engine_from`: "ray" or "ray://host:10001" for a cluster. By
        default on this machine, one run per core. On the CPU the bytes are the same from every engine, on machines of
        the same kind.
    **settings
        As in `train`.

    Returns
    -------
    iterator of Run
        One per seed, in the order of the seeds, each as soon as it is trained.

    Raises
    ------
    ValueError
        As in `train`; or a seed is given twice.
    """
    wanted = [checked_seed(seed) for seed in seeds]
    if len(set(wanted)) < len(wanted):
        raise ValueError("a seed is asked for twice: it would give the same run again")
    chosen = engine_from(engine)
    rows = None if without is None else rows_without(dataset, wanted, without)
    task = Task(network, dataset, recipe or Recipe(**settings), device_on(chosen, device), 1, rows)
    return run_all(task, wanted, cores(), progress, chosen)


def rows_without(dataset: Dataset, seeds: Sequence[int], without: Sequence[ArrayLike]) -> dict[int, NDArray[np.int64]]:
    """The rows, in the order of ids, that are left for each seed's run."""
    ordered = dataset.in_order()
    rows = {
        seed: np.setdiff1d(np.arange(len(ordered)), ordered.rows(ids)) for seed, ids in zip(seeds, without, strict=True)
    }
    if len({len(left) for left in rows.values()}) > 1:
        raise ValueError("runs that step together see equally many records: leave out as many for each seed")
    return rows


@torch.inference_mode(False)  # gradients are recorded whatever the caller does, and not while it has a run
def run_all(
    task: Task, seeds: Sequence[int], workers: int, progress: Progress | None, engine: Engine | None = None
) -> Generator[Run]:
    """Yield the runs in the order of the seeds, made by workers here or by those of an engine."""
    tally = Tally(progress, task.lengths(seeds))
    tally.show()
    if seeds:
        runs = run_here(task, seeds, workers, tally) if engine is None else run_on(engine, task, seeds, tally)
        with closing(runs):  # its threads end when the caller wants no more, and not when it is collected
            yield from runs


def run_on(engine: Engine, task: Task, seeds: Sequence[int], tally: Tally) -> Generator[Run]:
    """Yield the runs in the order of the seeds, made by the workers of an engine."""
    with closing(engine.map(run_by_worker, groups_for(task.device, seeds), task)) as done:
        for arrays, run in chain.from_iterable(done):
            network = begin(task.network, run.seed)
            kinds = {name: value.dtype for name, value in network.state_dict().items()}
            network.load_state_dict({name: as_tensor_of(value, kinds[name]) for name, value in arrays.items()})
            tally.finished(run)
            yield replace(run, network=network.eval())


def groups_for(device: torch.device, seeds: Sequence[int]) -> list[tuple[int, ...]]:
    """Divide seeds among workers: one each, or so many as step together on a graphics processor."""
    size = TOGETHER if device.type == "cuda" else 1
    return [tuple(seeds[first : first + size]) for first in range(0, len(seeds), size)]


def run_by_worker(seeds: Sequence[int], task: Task) -> list[tuple[dict[str, NDArray[Any]], Run]]:
    """Train some runs in a worker: one, or those that step together on its GPU.

    Weights are sent as arrays, to be put into networks there.
    """
    rows = None if task.rows is None else {seed: task.rows[seed] for seed in seeds}
    return [
        ({name: as_array(value) for name, value in run.network.state_dict().items()}, replace(run, network=nn.Module()))
        for run in run_all(replace(task, rows=rows), seeds, 1, None)
    ]


def run_here(task: Task, seeds: Sequence[int], workers: int, tally: Tally) -> Generator[Run]:
    """Yield the runs in the order of the seeds, made by this process."""
    example = begin(task.network, seeds[0])
    data = records(task.dataset, example, task.device)
    if isinstance(task.recipe, OwnTraining):
        check_network(example, data, task.dataset, min(FEW, task.count))
        return run_in_turn(task, seeds, tally)
    hold(example, task.recipe)
    draws = check_network(example, data, task.dataset, min(batch_sizes(task.recipe, task.count)))
    why_not = None
    if draws:
        why_not = "they draw random numbers as they go (dropout), and PyTorch has one source of these for all"
    elif task.device.type == "cuda":
        why_not = why_not_stacked(example, data, task.recipe)
        if why_not is None:
            return run_together(task, data, seeds, tally)
    if why_not is not None and len(seeds) > 1 and task.tell:
        warnings.warn(f"networks are trained one at a time: {why_not}", stacklevel=2)
    return run_side_by_side(task, data, seeds, workers if why_not is None else 1, draws, tally)


# Checks before training: whether a network takes the records, and whether many networks can step together.


FEW = 2  # records to try with
STACKED = "epochs", "batch_size", "lr", "optimiser", "momentum", "weight_decay", "label_smoothing"  # of a recipe


def check_network(network: nn.Module, records: Records, dataset: Dataset, smallest_batch: int) -> bool:
    """Refuse a network that cannot take these records, or cannot tell their classes apart.

    Returns whether the network draws random numbers as it is trained (dropout).
    """
    try:
        scores, _ = tried(network, records, FEW, training=False)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        kind = described(dataset.inputs.dtype, dataset.shape)
        raise ValueError(f"the network does not take records of {kind}: {error}{hint(dataset, error)}") from error
    classes = len(dataset.class_names)
    found = tuple(scores.shape[1:]) if isinstance(scores, torch.Tensor) else type(scores).__name__
    if not isinstance(scores, torch.Tensor) or scores.ndim != 2 or scores.shape[1] < classes:
        raise ValueError(f"the network should score each of the {classes} classes, but gives {found} for a record")
    try:
        return tried(network, records, smallest_batch)[1]
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"the network cannot be trained on {smallest_batch} record(s) at a time: {error}") from error


def tried(network: nn.Module, records: Records, count: int, *, training: bool = True) -> tuple[Any, bool]:
    """Try a copy of the network on the first records; return its scores, and whether it drew random numbers."""
    device = records.labels.device
    trial = copy.deepcopy(network).to(device)
    if not training:
        trial.eval()
    with torch.no_grad(), all_drawing(0):
        before = random_states(device)
        scores = call(trial, inputs_for(records, count))
        return scores, before != random_states(device)


def hint(dataset: Dataset, error: Exception) -> str:
    """Say what may help where a network does not take the records."""
    kinds = [part.dtype for _, part in parts_of(dataset.inputs)]
    if "indices" in str(error):  # of an embedding
        return ". Bring token ids as int32 or int64: numbers in uint8 are pixels, and reach a network divided by 255"
    if len(dataset.shape) == 3 and dataset.shape[2] <= 4 < dataset.shape[0]:
        return ". Networks want the channels of images first: np.moveaxis(images, -1, 1)"
    if isinstance(error, RuntimeError) and any(kind.kind in "ib" for kind in kinds):
        return ". Integers and booleans reach a network as they are: convert the numbers of a table to float32"
    return ""


def inputs_for(records: Records, count: int) -> Inputs:
    """The first records, as the network reads them."""
    return records.batch(torch.arange(min(count, len(records)), device=records.labels.device))[0]


def why_not_stacked(network: nn.Module, records: Records, recipe: Recipe) -> str | None:
    """Say why many of these networks cannot step together; None if they can."""
    if recipe != Recipe(**{name: getattr(recipe, name) for name in STACKED}):
        return "a step that is recorded once cannot follow a schedule, vary images, or treat layers in different ways"
    inputs = inputs_for(records, FEW)
    try:
        stack = Stack([network, network], records, Recipe(lr=1.0))
        stack.forward(stack.weights, stack.state, each(lambda part: part.expand(2, *part.shape), inputs))
    except Exception as error:  # whatever it is: they are then trained one at a time
        return str(error).splitlines()[0]
    return None
