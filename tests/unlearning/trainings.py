"""Training functions as a team has them, and some that cannot be relied on."""

import os
import random
import threading

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from maxrr.nets import tensors


def by_adamw(network, dataset, seed, device):
    """AdamW, a cosine schedule, label smoothing, noise on the inputs: drawn from all three sources of numbers."""
    inputs, labels = tensors(dataset, device)
    network.to(device).train()
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-2, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=8)
    for _ in range(8):
        order = torch.randperm(len(labels)) if random.random() < 0.5 else torch.from_numpy(legacy(len(labels)))
        for rows in order.split(16):
            optimiser.zero_grad()
            scores = network(inputs[rows] + 0.01 * torch.randn_like(inputs[rows]))
            F.cross_entropy(scores, labels[rows], label_smoothing=0.1).backward()
            optimiser.step()
        schedule.step()
    return network


def legacy(count):
    return np.random.permutation(count)  # noqa: NPY002 (as much code does)


def by_seeding_numpy(network, dataset, seed, device):
    """As many scripts begin: NumPy takes a seed of 32 bits."""
    np.random.seed(seed)  # noqa: NPY002
    return by_adamw(network, dataset, seed, device)


def by_chance(network, dataset, seed, device):
    """Draws a number that nobody can draw again."""
    found = by_adamw(network, dataset, seed, device)
    with torch.no_grad():
        found[-1].bias += int.from_bytes(os.urandom(4), "big") / 2**32
    return found


def of_many_records(network, dataset, seed, device):
    """Made for more records than the small part has."""
    if len(dataset) < 45:
        raise ZeroDivisionError("no full batch")
    return by_adamw(network, dataset, seed, device)


def of_scaled_inputs(network, dataset, seed, device):
    """Scales the inputs itself, as a loader of a team does."""
    inputs, labels = tensors(dataset, device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-2)
    for _ in range(3):
        optimiser.zero_grad()
        F.cross_entropy(network(inputs * 10.0 - 1.0), labels).backward()
        optimiser.step()
    return network


def of_two_arguments(network, dataset):
    return network


def nothing(network, dataset, seed, device):
    by_adamw(network, dataset, seed, device)


def another_network(network, dataset, seed, device):
    return nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3))


def diverging(network, dataset, seed, device):
    with torch.no_grad():
        next(network.parameters()).fill_(float("nan"))
    return network


def greedy(network, dataset, seed, device):
    """Changes what it is given."""
    dataset.inputs[:] = 0.0
    return network


class Elsewhere:
    """What a trainer leaves behind in a network: hooks, and references that cannot be copied."""

    def __call__(self, network, dataset, seed, device):
        raise AssertionError("it is not importable by a name")


object_of_a_class = Elsewhere()


def with_leftovers(network, dataset, seed, device):
    found = by_adamw(network, dataset, seed, device)
    found.register_forward_hook(lambda *_: None)
    found.trainer = threading.Lock()  # neither copied nor pickled
    return found
