"""Whether a network fits the records, and whether many of it can be trained at once."""

import copy

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from maxrr.data import Dataset
from maxrr.nets.records import Records

FEW = 2  # records to try with


def check(network: nn.Module, records: Records, dataset: Dataset) -> None:
    """Refuse a network that cannot take these records, or cannot tell their classes apart."""
    inputs, _ = records.batch(torch.arange(min(FEW, len(records)), device=records.labels.device))
    trial = copy.deepcopy(network).to(inputs.device).eval()
    try:
        with torch.no_grad():
            scores = trial(inputs)
    except (RuntimeError, ValueError, IndexError) as error:
        raise ValueError(f"the network does not take records of shape {dataset.shape}: {error}") from error
    classes = len(dataset.class_names)
    if scores.shape[:1] != inputs.shape[:1] or scores.ndim != 2 or scores.shape[1] < classes:
        raise ValueError(
            f"the network gives scores of shape {tuple(scores.shape[1:])} for a record, but the data set has {classes} "
            f"classes: its last layer should have {classes} outputs"
        )


def why_alone(network: nn.Module, records: Records) -> str | None:
    """Why networks of this kind must be trained one at a time; None if they need not."""
    inputs, _ = records.batch(torch.arange(min(FEW, len(records)), device=records.labels.device))
    copies = [copy.deepcopy(network).to(inputs.device) for _ in range(2)]
    before = torch.get_rng_state(), cuda_state(inputs.device)
    copies[0](inputs)
    after = torch.get_rng_state(), cuda_state(inputs.device)
    if not all(torch.equal(then, now) for then, now in zip(before, after, strict=True)):
        return "they draw random numbers as they go (dropout), and PyTorch has one source of these for all"
    if inputs.device.type != "cuda":
        return None
    try:
        weights, state = stack_module_state(copies)
        vmap(lambda *stack: functional_call(copies[0], stack[:2], stack[2:]))(
            weights, state, inputs.expand(2, *inputs.shape)
        )
    except Exception as error:
        return f"PyTorch cannot stack them ({str(error).splitlines()[0]})"
    return None


def cuda_state(device: torch.device) -> torch.Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.zeros(0)
