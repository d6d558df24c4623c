"""What can only be seen on a GPU: a ranking there is that of fits on the features of the same networks."""

import numpy as np

from maxrr import LinearSVM
from maxrr.core import rank
from maxrr.data import load
from maxrr.nets import LeNet5, Recipe, embed, split, train_many


def test_marks_on_cuda(tmp_path) -> None:
    dataset, _ = load("digits")
    network, recipe, seeds = LeNet5((1, 8, 8)), Recipe(epochs=5), range(3)
    found = rank(network, dataset, seeds, recipe=recipe, device="cuda", folder=tmp_path)
    assert not list(tmp_path.glob("run-*.npz"))
    for row, run in enumerate(train_many(network, dataset, seeds, epochs=5, device="cuda")):
        features = embed(split(run.network)[0], dataset, device="cuda")
        support = LinearSVM().fit(features, dataset.labels).support_
        votes = np.unpackbits(found.votes[row], count=len(dataset)).astype(bool)
        assert np.array_equal(found.ids[votes], np.sort(dataset.ids[support]))
