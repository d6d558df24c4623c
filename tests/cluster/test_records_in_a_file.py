"""Records in a memory-mapped file do not travel: workers open the file, and say so where they cannot."""

import numpy as np
import pytest

from maxrr.core import rank
from maxrr.data import Dataset, load
from maxrr.data.arrays import map_npy
from maxrr.errors import EngineError
from maxrr.nets import MLP, Recipe
from maxrr.parallel import Ray
from maxrr.parallel.parcels import by_path, opened

pytestmark = pytest.mark.usefixtures("cluster")


def test_a_ranking(tmp_path):
    training, _ = load("digits")
    digits = training.select(np.sort(training.ids[:300]))
    np.save(tmp_path / "digits.npy", digits.inputs)
    mapped = Dataset(map_npy(tmp_path / "digits.npy"), digits.labels, digits.class_names, digits.ids)
    found = rank(MLP(64, 10, hidden=(16,)), mapped, range(2), recipe=Recipe(epochs=12, lr=0.01), engine=Ray())
    expected = rank(MLP(64, 10, hidden=(16,)), digits, range(2), recipe=Recipe(epochs=12, lr=0.01))
    assert np.array_equal(found.votes, expected.votes)


def test_a_file_that_a_node_lacks(tmp_path):
    np.save(tmp_path / "inputs.npy", np.ones((3, 2)))
    sent = by_path(map_npy(tmp_path / "inputs.npy"))
    (tmp_path / "inputs.npy").unlink()
    ((_, future),) = Ray().as_finished(opened, [sent])
    with pytest.raises(EngineError, match=r"inputs\.npy: cannot be opened on node .* on a shared file system"):
        future.result()
