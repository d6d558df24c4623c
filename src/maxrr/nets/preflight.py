"""Checks before training: whether a network takes the records, and whether many networks can step together."""

import copy

import numpy as np
import torch
from torch import nn

from maxrr.data import Dataset
from maxrr.data.fields import described, parts_of
from maxrr.nets.inputs import Inputs, Records, call, each
from maxrr.nets.recipe import Recipe
from maxrr.nets.seeding import DRAWS, drawing
from maxrr.nets.stacked import Stack

FEW = 2  # records to try with


def check(network: nn.Module, records: Records, dataset: Dataset, smallest_batch: int) -> None:
    """Refuse a network that cannot take these records, or cannot tell their classes apart."""
    trial = copy.deepcopy(network).to(records.labels.device)
    try:
        with torch.no_grad(), drawing(0, DRAWS):
            scores = call(trial.eval(), inputs_for(records, FEW))
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise ValueError(f"the network does not take {kind_of(dataset)}: {error}{hint(dataset, error)}") from error
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


def kind_of(dataset: Dataset) -> str:
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
