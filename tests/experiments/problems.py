"""Experiments so small that each takes a moment: three classes of digits, networks that hardly learn."""

import functools
from dataclasses import replace

import numpy as np
import torch

from maxrr.core import Ranking
from maxrr.data import Dataset, load
from maxrr.experiments import Lab
from maxrr.experiments.profiles import SMOKE
from maxrr.nets import Recipe, embed, split, train

CLASSES, RECORDS = 3, 150
TINY = replace(
    SMOKE, ranked=4, small=30, large=60, extra=20, many=60, some=10, cores=(30,), lengths=(2,), looks=(1, 2, 3),
    recipe=Recipe(epochs=3, batch_size=16, lr=4e-3),
)  # fmt: skip
SEED = 3


@functools.cache
def sides():
    """Records to train on and to test with; not in the order of their ids, as data may come."""
    return tuple(some(side, count) for side, count in zip(load("digits"), (RECORDS, 60), strict=True))


def some(dataset, count):
    rows = np.flatnonzero(dataset.labels < CLASSES)[:count][::-1]
    names = dataset.class_names[:CLASSES]
    return Dataset(dataset.features[rows], dataset.labels[rows], names, dataset.ids[rows], name=dataset.name)


def tiny_lab(out, seed=SEED, report=None, **changes):
    """A lab of the tiny profile, perhaps with something changed."""
    training, test = (side.in_order() for side in sides())
    return Lab(replace(TINY, **changes), seed, training, test, torch.device("cpu"), out, report)


def with_marks(lab, marks):
    """The same lab, but with this ranking, runs × records."""
    ranking = Ranking(lab.training.ids, tuple(range(len(marks))), np.packbits(marks, axis=1), 0.0)
    other = replace(lab)
    other.__dict__["ranking"] = ranking  # where it would be cached
    return other


def embedded(lab, records, seed):
    """Training and test records under the extractor of one plain training."""
    how = lab.profile.recipe
    run = train(
        lab.network, records, seed, epochs=how.epochs, batch_size=how.batch_size, lr=how.lr, device="cpu", threads=1
    )
    extractor = split(run.network)[0]
    return embed(extractor, lab.training, device="cpu"), embed(extractor, lab.test, device="cpu")


def repeatable(result):
    """A result without what differs from one measurement to the next: when, where and for how long."""
    if isinstance(result, dict):
        return {name: repeatable(value) for name, value in result.items() if name not in ("made", "seconds")}
    return result
