"""Some digits, a small network, and what its ranking is compared by."""

import functools

import numpy as np

from maxrr.core import Ranking
from maxrr.core.ranking import ranking_seeds
from maxrr.data import load
from maxrr.nets import MLP, Recipe

MODEL = 5  # the seed of a model whose ranking is among these runs
SEEDS, C, RECIPE = (3, 11, *ranking_seeds(MODEL, 2)), 0.5, Recipe(epochs=20, batch_size=32, lr=1e-2)


@functools.cache
def records(count=120):
    """Not in the order of their ids."""
    train, _ = load("digits")
    ids = np.sort(train.ids)[:count]
    return train.select(ids[np.random.default_rng(0).permutation(count)])


def network():
    return MLP(64, 10, hidden=(16,))


def same(one, other):
    """Whether two rankings have the same bytes throughout."""
    arrays = zip((one.ids, one.votes), (other.ids, other.votes), strict=True)
    equal = all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in arrays)
    return equal and (one.seeds, one.worst_gap) == (other.seeds, other.worst_gap)


def made_up(ids, votes):
    """A ranking from a table of votes, runs × records, for ids in any order."""
    ids, votes = np.array(ids), np.array(votes, dtype=bool)
    order = np.argsort(ids)
    return Ranking(ids[order], tuple(range(len(votes))), np.packbits(votes[:, order], axis=1), 0.0)
