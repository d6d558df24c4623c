"""Extractors that workers of the cluster can import."""

import time

import numpy as np
import torch
from torch import nn

from maxrr.data import Dataset
from tests.cluster.work import note

ROWS, BLOCK = 1400, 256
COLUMNS = 6


def records(inputs=None, poisoned=None):
    """Records whose first number is that of their row."""
    if inputs is None:
        inputs = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(np.float32)
        inputs[:, 0] = np.arange(ROWS)
        if poisoned is not None:
            inputs[poisoned, 1] = 3e38
    return Dataset(inputs, np.arange(len(inputs)) % 2, ("no", "yes"), [f"record {row}" for row in range(len(inputs))])


class Noted(nn.Module):
    """A linear layer that notes the first row of each block, where it is told a folder; and takes its time."""

    def __init__(self, folder=None, seconds=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.told = nn.Linear(COLUMNS, 5), Told(folder, seconds)

    def forward(self, x):
        if self.told.folder is not None:
            note(self.told.folder, int(x[0, 0]))
        time.sleep(self.told.seconds)
        return self.linear(x)


class Told:
    """What is no setting of a network, and not looked into: where it notes something, and how long it takes."""

    __slots__ = ("folder", "seconds")

    def __init__(self, folder, seconds):
        self.folder, self.seconds = folder, seconds


class Mixing(nn.Module):
    """Gives a record other features beside other records."""

    def forward(self, x):
        return x - x.mean(0)


class Narrowing(nn.Module):
    """Gives fewer features of later records."""

    def forward(self, x):
        return x if x[0, 0] < 2 * BLOCK else x[:, 1:]
