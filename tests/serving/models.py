"""Models of several kinds to be served, fitted once; nobody changes them."""

import functools

from torch import nn

from maxrr import MaxRR
from maxrr.core import HashCore
from tests.unlearning.problems import fresh, table

CORE = HashCore(0.5, key="house")


def own():
    """A network that only the caller's code makes."""
    return nn.Sequential(nn.Linear(5, 9), nn.BatchNorm1d(9), nn.Tanh(), nn.Linear(9, 3))


@functools.cache
def fitted(name):
    """A model by what is special about it; those of embeddings need no ONNX graph, which takes seconds to write."""
    records = table(classes=2 if name == "two classes" else 3)
    if name == "own":
        return fresh(CORE, records, own).fit(records)
    if name in ("embeddings", "two classes"):
        return MaxRR.on_features(C=0.7).fit(records)
    return fresh(HashCore(0.5, key="house", shards=3), records).fit(records)


def some_records():
    """Records that no model was fitted on."""
    return table(count=40, seed=1).inputs
