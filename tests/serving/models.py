"""Models of several kinds to be served, fitted once; nobody changes them."""

import functools

import numpy as np
import torch
from torch import nn

from maxrr import MaxRR
from maxrr.core import HashCore
from maxrr.nets import MLP
from tests.unlearning.problems import digits, fresh, table

CORE = HashCore(0.5, key="house")


def own():
    """A network that only the caller's code makes."""
    return nn.Sequential(nn.Linear(5, 9), nn.BatchNorm1d(9), nn.Tanh(), nn.Linear(9, 3))


def sized(shape, classes):
    """The same for records of any shape."""
    return nn.Sequential(nn.Linear(*shape, 9), nn.Tanh(), nn.Linear(9, classes))


@functools.cache
def fitted(name):
    """A model by what is special about it."""
    records = table(classes=2 if name == "two classes" else 3)
    if name == "pixels":
        return fresh(CORE, digits(), epochs=2).fit((255 * digits().inputs).astype(np.uint8), digits().labels)
    if name == "in shards":
        return fresh(HashCore(0.5, key="house", shards=3), records).fit(records)
    if name == "own":
        return fresh(CORE, records, own).fit(records)
    if name == "embeddings":
        return MaxRR.on_features(C=0.7).fit(records)
    if name == "double precision":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            network = MLP(5, 3, hidden=(6,)).double()
        return fresh(CORE, records, network).fit(records.inputs.astype(np.float64), records.labels)
    return fresh(CORE, records).fit(records)


def some_records(name):
    """Records that the model was not fitted on."""
    if name.startswith("pixels"):
        return np.random.default_rng(2).integers(0, 256, (40, *digits().shape)).astype(np.uint8)
    features = table(count=40, seed=1).inputs
    return features.astype(np.float64) if name == "double precision" else features
