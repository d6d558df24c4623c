"""Training for one seed, or for many.

On a CPU runs go on side by side, one thread each: steps of a small network are too short to be shared between cores.
On CUDA they all step together. On an engine each worker makes a run of its own, or some that step together. Each
finished run can be put on the disk at once, and runs that are there already are not repeated.
"""

import copy
import hashlib
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from maxrr.data import Dataset
from maxrr.data.fields import described, parts_of
from maxrr.nets.inputs import Inputs, Records, call, chosen_device, device_on, each, records
from maxrr.nets.recipe import Recipe, Run, optimiser_of
from maxrr.nets.run_store import RunStore, content_of, kind_of, run_in
from maxrr.nets.runs import Tally, Task, run_in_turn, run_side_by_side, run_together
from maxrr.nets.seeding import DRAWS, Network, begin, checked, drawing
from maxrr.nets.stacked import Stack
from maxrr.nets.training_function import OwnTraining, Training
from maxrr.parallel.engine import Engine, cores
from maxrr.parallel.ray_cluster import EngineLike, engine_from
from maxrr.progress import Progress

TOGETHER = 25  # runs that step together on one graphics processor of a cluster: bytes depend on how many do


def train(
    network: Network, dataset: Dataset, seed: int, *,
    epochs: int = Recipe.epochs, batch_size: int = Recipe.batch_size, lr: float = Recipe.lr,
    device: str | torch.device | None = None, threads: int | None = None, progress: Progress | None = None,
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
    epochs, batch_size, lr
        As in `Recipe`: how often training goes through all records, how many each step sees, and the learning rate.
    device : optional
        "cpu" or "cuda"; by default CUDA where PyTorch finds it.
    threads : int, optional
        How many threads to use on the CPU; by default as many as PyTorch is set to.
    progress : optional
        Called with how many records training has gone through, the loss and the accuracy on the training records.

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
    recipe = Recipe(epochs, batch_size, lr)
    return train_once(network, dataset, seed, recipe, device=device, threads=count, progress=progress)


def warm_up(device: str | torch.device | None) -> None:
    """Let PyTorch load what it needs for the first step of a process: seconds that belong to no training."""
    weights = torch.zeros(1, device=chosen_device(device), requires_grad=True)
    weights.sum().backward()
    optimiser_of(Recipe(), weights).step()


def train_once(
    network: Network, dataset: Dataset, seed: int, recipe: Training, *, device: str | torch.device | None,
    threads: int, progress: Progress | None,
) -> Run:  # fmt: skip
    """As `train`, for any recipe, or by a function of the caller's own."""
    if threads < 1:
        raise ValueError(f"one thread or more, not {threads}")
    (run,) = run_all(Task(network, dataset, recipe, chosen_device(device), threads, None), [seed], 1, progress)
    return run


def train_apart(
    network: Network, dataset: Dataset, rows: Mapping[int, NDArray[np.int64]], recipe: Training, *,
    device: str | torch.device | None, threads: int, progress: Progress | None, tell: bool,
    engine: Engine | None = None,
) -> Generator[Run]:  # fmt: skip
    """As `train_once` for several seeds, each of which sees rows of its own alone, in the order of the seeds.

    `dataset` is in the order of ids. The bytes are those of training on the records of these rows by themselves: on
    the CPU runs go on side by side, or on the workers of an engine; on CUDA one after the other, here, where bytes
    depend on how many step together. Where they cannot go on side by side, a warning says so if the caller wants to
    `tell`.
    """
    place = chosen_device(device)
    if engine is not None and place.type == "cpu":
        task = Task(network, dataset, recipe, place, threads, None, rows)
        yield from run_all(task, list(rows), 1, progress, engine)
        return
    groups = [list(rows)] if place.type == "cpu" else [[seed] for seed in rows]
    for seeds in groups:
        some = {seed: rows[seed] for seed in seeds}
        task = Task(network, dataset, recipe, place, threads, None, some, tell)
        yield from run_all(task, seeds, max(1, cores() // threads), progress)


def train_many(
    network: Network, dataset: Dataset, seeds: Iterable[int], *,
    epochs: int = Recipe.epochs, batch_size: int = Recipe.batch_size, lr: float = Recipe.lr,
    device: str | torch.device | None = None, workers: int | None = None, without: Sequence[ArrayLike] | None = None,
    folder: str | Path | None = None, progress: Progress | None = None, engine: EngineLike = None,
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
    epochs, batch_size, lr, device
        As in `train`.
    workers : int, optional
        How many runs go on side by side on the CPU; by default one per core. An engine has workers of its own.
    without : sequence of ids, optional
        For each seed the ids of the records that its run must not see, equally many for each seed. The run is the one
        that `dataset.without(ids)` would give. On CUDA, runs without different records can so share their steps.
    folder : path, optional
        Where each run is stored as soon as it is finished. Runs that are stored already are not repeated, so that
        work that was interrupted, or killed, goes on where it stopped.
    progress : optional
        As in `train`, for all runs together.
    engine : optional
        Where the runs are made, as in `maxrr.parallel.engine_from`: "ray" or "ray://host:10001" for a cluster. By
        default on this machine. On the CPU the bytes are the same from every engine, on machines of the same kind.

    Returns
    -------
    iterator of Run
        One per seed, in the order of the seeds.

    Raises
    ------
    ValueError
        As in `train`; or a seed is given twice, or the folder holds runs of another network, recipe or other records.
    """
    return train_by(
        Recipe(epochs, batch_size, lr), network, dataset, seeds, device=device, workers=workers, without=without,
        folder=folder, progress=progress, engine=engine,
    )  # fmt: skip


def train_by(
    recipe: Training, network: Network, dataset: Dataset, seeds: Iterable[int], *,
    device: str | torch.device | None = None, workers: int | None = None, without: Sequence[ArrayLike] | None = None,
    folder: str | Path | None = None, progress: Progress | None = None, engine: EngineLike = None,
) -> Generator[Run]:  # fmt: skip
    """As `train_many`, for any recipe, or by a function of the caller's own."""
    wanted = [checked(seed) for seed in seeds]
    if len(set(wanted)) < len(wanted):
        raise ValueError("a seed is asked for twice: it would give the same run again")
    at_once = cores() if workers is None else workers
    if at_once < 1:
        raise ValueError(f"one worker or more, not {at_once}")
    chosen = engine_from(engine)
    if chosen is not None and workers is not None:
        raise ValueError("an engine has workers of its own: leave out either workers or the engine")
    place = device_on(chosen, device)
    rows = None if without is None else rows_without(dataset, wanted, without)
    runs = None
    if folder is not None and wanted:
        kind = kind_of(begin(network, 0), dataset, recipe)
        if rows is not None:
            kind["without"] = {str(seed): hashlib.sha256(seen.tobytes()).hexdigest() for seed, seen in rows.items()}
        runs = RunStore(folder, kind)
    task = Task(network, dataset, recipe, place, 1, runs, rows)
    return run_all(task, wanted, at_once, progress, chosen)


def rows_without(
    dataset: Dataset, seeds: Sequence[int], without: Sequence[ArrayLike]
) -> dict[int, NDArray[np.int64]]:  # fmt: skip
    """The rows, in the order of ids, that are left for each seed's run."""
    if len(without) != len(seeds):
        raise ValueError(
            f"there are {len(seeds)} seeds, but records to leave out for {len(without)}: one list per seed"
        )
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
) -> Generator[Run]:  # fmt: skip
    """The runs in the order of the seeds, those on the disk among them; by so many workers here, or by an engine's."""
    missing = [seed for seed in seeds if task.runs is None or seed not in task.runs]
    tally = Tally(progress, task.lengths(seeds), set(seeds) - set(missing))
    tally.show()
    if not missing:
        fresh = (run for run in list[Run]())
    else:
        fresh = run_missing(task, missing, workers, tally) if engine is None else run_on(engine, task, missing, tally)
    computed = set(missing)
    with closing(fresh):  # its threads end when the caller wants no more, and not when it is collected
        for seed in seeds:
            if seed in computed:
                yield next(fresh)
            else:
                assert task.runs is not None
                yield task.runs.get(seed, begin(task.network, seed))


def run_on(engine: Engine, task: Task, seeds: Sequence[int], tally: Tally) -> Generator[Run]:
    """The runs that are not on the disk yet, made by the workers of an engine, in the order of the seeds."""
    groups = groups_for(task.device, seeds)
    with closing(engine.map(run_by_worker, groups, replace(task, runs=None))) as done:
        for group, contents in zip(groups, done, strict=True):
            for seed, content in zip(group, contents, strict=True):
                run = run_in(content, seed, begin(task.network, seed))
                if task.runs is not None:
                    task.runs.add(run)
                tally.finished(run)
                yield run


def groups_for(device: torch.device, seeds: Sequence[int]) -> list[tuple[int, ...]]:
    """Divide seeds among workers: one each, or so many as step together on a graphics processor."""
    size = TOGETHER if device.type == "cuda" else 1
    return [tuple(seeds[first : first + size]) for first in range(0, len(seeds), size)]


def run_by_worker(seeds: Sequence[int], task: Task) -> list[bytes]:
    """What a worker does for some runs: one, or those that step together on its graphics processor.

    They are sent as they are stored: weights alone, to be put into networks there.
    """
    rows = None if task.rows is None else {seed: task.rows[seed] for seed in seeds}
    return [content_of(run) for run in run_all(replace(task, rows=rows), seeds, 1, None)]


def run_missing(task: Task, seeds: Sequence[int], workers: int, tally: Tally) -> Generator[Run]:
    """The runs that are not on the disk yet."""
    example = begin(task.network, seeds[0])
    data = records(task.dataset, example, task.device)
    if isinstance(task.recipe, OwnTraining):
        check_network(example, data, task.dataset, min(FEW, task.count))
        return run_in_turn(task, seeds, tally)
    check_network(example, data, task.dataset, min(task.recipe.batches(task.count)))
    draws = draws_numbers(example, data)
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


def check_network(network: nn.Module, records: Records, dataset: Dataset, smallest_batch: int) -> None:
    """Refuse a network that cannot take these records, or cannot tell their classes apart."""
    trial = copy.deepcopy(network).to(records.labels.device)
    try:
        with torch.no_grad(), drawing(0, DRAWS):
            scores = call(trial.eval(), inputs_for(records, FEW))
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise ValueError(
            f"the network does not take {kind_of_records(dataset)}: {error}{hint(dataset, error)}"
        ) from error
    classes = len(dataset.class_names)
    found = tuple(scores.shape[1:]) if isinstance(scores, torch.Tensor) else type(scores).__name__
    if not isinstance(scores, torch.Tensor) or scores.ndim != 2 or scores.shape[1] < classes:
        raise ValueError(
            f"the network should give a score for each of the {classes} classes, but gives {found} for a record"
        )
    trial = copy.deepcopy(network).to(records.labels.device)
    try:
        with torch.no_grad(), drawing(0, DRAWS):
            call(trial, inputs_for(records, smallest_batch))
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"the network cannot be trained on {smallest_batch} record(s) at a time: {error}") from error


def kind_of_records(dataset: Dataset) -> str:
    """What the records are like, for a message."""
    if dataset.inputs.dtype.kind == "f" or dataset.inputs.dtype == np.uint8:
        return f"records of shape {dataset.shape}"
    return f"records of {described(dataset.inputs.dtype, dataset.shape)}"


def hint(dataset: Dataset, error: Exception) -> str:
    """What may help where a network does not take the records."""
    kinds = [part.dtype for _, part in parts_of(dataset.inputs)]
    if "indices" in str(error):  # of an embedding
        bytes_ = (
            "Numbers in uint8 are pixels, and reach a network divided by 255: bring" if np.uint8 in kinds else "Bring"
        )
        return f". {bytes_} token ids as int32 or int64; in an .npz file, by the name of the argument, as in X.tokens"
    if isinstance(error, RuntimeError) and any(kind.kind in "ib" for kind in kinds):
        return ". Integers and booleans reach a network as they are: convert the numbers of a table to float32"
    return ""


def inputs_for(records: Records, count: int) -> Inputs:
    """The first records, as the network reads them."""
    return records.batch(torch.arange(min(count, len(records)), device=records.labels.device))[0]


def draws_numbers(network: nn.Module, records: Records) -> bool:
    """Whether the network draws random numbers as it goes (dropout)."""
    device = records.labels.device
    trial = copy.deepcopy(network).to(device)
    with torch.no_grad(), drawing(0, DRAWS):
        before = random_state(device)
        call(trial, inputs_for(records, FEW))
        return not torch.equal(before, random_state(device))


def random_state(device: torch.device) -> torch.Tensor:
    """The state of PyTorch's random numbers, of which a device has one source."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def why_not_stacked(network: nn.Module, records: Records, recipe: Recipe) -> str | None:
    """Why PyTorch cannot take one step with many of these networks at once; None if it can."""
    if recipe.schedule != "constant" or recipe.augment:
        return "a step that is recorded once cannot follow a schedule, or vary each network's images by themselves"
    inputs = inputs_for(records, FEW)
    try:
        stack = Stack([network, network], records, Recipe(lr=1.0))
        stack.forward(stack.weights, stack.state, each(lambda part: part.expand(2, *part.shape), inputs))
    except Exception as error:  # whatever it is: they are then trained one at a time
        return str(error).splitlines()[0]
    return None
