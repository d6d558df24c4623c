"""A ranking on a cluster is that of this machine, to the byte; a run that fails is named, those before it are kept."""

import numpy as np
import pytest

from maxrr.core import rank
from maxrr.data import load
from maxrr.nets import MLP, Recipe
from maxrr.nets.training_function import OwnTraining
from maxrr.parallel import Ray
from tests.cluster import work

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


@pytest.mark.long
def test_a_run_that_fails_names_its_seed_and_those_before_are_kept(digits, tmp_path):
    recipe = OwnTraining.by(work.train)
    with pytest.raises(ValueError, match="with seed 2"):
        rank(work.Counted(tmp_path, poisoned=2), digits, range(4), recipe=recipe, engine=Ray(), folder=tmp_path / "a")
    assert sorted(path.name for path in (tmp_path / "a").glob("votes-*")) == ["votes-0.npz", "votes-1.npz"]
