"""What workers of the cluster can import."""

import os
import time
from pathlib import Path

import torch
from torch import nn

from maxrr.nets import tensors


class UnspeakableError(Exception):
    """What cannot be shown raises this."""


class StrangeError(Exception):
    """Is made of two things, and says one."""

    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")


def note(folder, *words):
    """Add a line to a file that all workers share; short lines are written whole."""
    descriptor = os.open(Path(folder) / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, (" ".join(map(str, words)) + "\n").encode())
    os.close(descriptor)


def notes(folder):
    path = Path(folder) / "notes"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def slowly(item, folder):
    """Tell when work on an item begins and ends, and who does it."""
    note(folder, "begin", item, os.getpid())
    time.sleep(0.3)
    note(folder, "end", item, os.getpid())
    return item * item


def meet(item, folder):
    """Work until two processes do, and tell which this is."""
    note(folder, "begin", item, os.getpid())
    while len({line[2] for line in notes(folder)}) < 2:
        time.sleep(0.02)
    return os.getpid()


def train(network, dataset, seed, device):
    """A training function of one's own, whose runs are counted; the network knows the folder for notes."""
    note(network.folder, "begin", seed, os.getpid())
    if seed == network.poisoned:
        with torch.no_grad():
            network[1].weight.fill_(torch.nan)
        return network
    inputs, labels = tensors(dataset, device)
    weights = list(network.parameters())
    for _ in range(60):  # by hand: PyTorch's optimisers load its compiler, which takes each worker seconds
        loss = nn.functional.cross_entropy(network(inputs), labels)
        with torch.no_grad():
            for weight, slope in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                weight -= 0.5 * slope
    time.sleep(network.seconds)
    return network


class Counted(nn.Sequential):
    """A small network that says where its runs are noted down, and which seed fails."""

    def __init__(self, folder, poisoned=-1, seconds=0.0):
        super().__init__(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
        self.folder, self.poisoned, self.seconds = str(folder), poisoned, seconds
