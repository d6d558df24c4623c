"""Experiments so small that each takes a moment: three classes of digits, networks that hardly learn."""

import functools
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch

from lab.lab import Lab
from lab.profiles import SMOKE
from maxrr import LinearSVM
from maxrr.core import Ranking
from maxrr.core.ranking import ranking_seeds
from maxrr.data import Dataset, load
from maxrr.nets import Recipe, embed, split, train

CLASSES, RECORDS = 3, 54
TINY = replace(
    SMOKE, small=12, large=22, extra=8, many=22, some=5, cores=(16,), trials=1, lengths=(2,), looks=(1, 2, 3),
    fractions=(0.75,), recipe=Recipe(epochs=3, batch_size=8, lr=8e-3),
)  # fmt: skip
SEED = 3


@functools.cache
def sides():
    """Records to train on and to test with; not in the order of their ids, as data may come."""
    return tuple(some(side, count) for side, count in zip(load("digits"), (RECORDS, 40), strict=True))


def some(dataset, count):
    rows = np.flatnonzero(dataset.labels < CLASSES)[:count][::-1]
    names = dataset.class_names[:CLASSES]
    return Dataset(dataset.inputs[rows], dataset.labels[rows], names, dataset.ids[rows], name=dataset.name)


def tiny_lab(out, seed=SEED, progress=None, engine=None, **changes):
    """A lab of the tiny profile, perhaps with something changed."""
    training, test = (side.in_order() for side in sides())
    return Lab(replace(TINY, **changes), seed, training, test, torch.device("cpu"), out, progress, engine=engine)


def with_ranking(lab, ranking):
    """The same lab, but with this ranking, which it need not measure."""
    other = replace(lab)
    other.__dict__["ranking"] = ranking  # where it would be cached
    return other


def with_votes(lab, votes):
    """The same lab, but with a ranking of these votes, runs × records."""
    return with_ranking(lab, Ranking(lab.training.ids, tuple(range(len(votes))), np.packbits(votes, axis=1), 0.0))


def ranked_by_hand(lab):
    """The lab's ranking from plain trainings, in this process: to start another takes longer than all of it."""
    seeds = ranking_seeds(lab.seed, lab.profile.ranked)
    votes = np.zeros((len(seeds), len(lab.training)), dtype=bool)
    for row, seed in zip(votes, seeds, strict=True):
        row[LinearSVM().fit(embedded(lab, lab.training, seed)[0], lab.training.labels).support_] = True
    return Ranking(lab.training.ids, tuple(seeds), np.packbits(votes, axis=1), 0.0)


@contextmanager
def in_this_process():
    """Laboratories rank by hand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lab, "measure_ranking", lambda lab, seeds: ranked_by_hand(lab))
        yield


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
