"""What a cluster gives is what this machine gives, to the byte."""

import numpy as np
import pytest

from maxrr.core import rank
from maxrr.data import load
from maxrr.nets import MLP, Recipe
from maxrr.parallel import Ray

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def digits():
    training, _ = load("digits")
    return training.select(training.ids[:300])


def test_a_ranking(digits, beside):
    network, recipe, seeds = MLP(64, 10, hidden=(16,)), Recipe(epochs=12, lr=0.01), range(4)
    here, *others = (rank(network, digits, seeds, recipe=recipe, engine=engine) for engine in (None, beside, Ray()))
    for other in others:
        assert np.array_equal(here.votes, other.votes)
        assert here.worst_gap == other.worst_gap
