"""Networks of several cores with the same seeds on a GPU, for images and for tables. CI has none: run this by hand.

make cuda        # or: PYTHONPATH=src python tests/cuda/test_stacking.py
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils import parameters_to_vector

from lab import scores
from lab.lab import Lab
from lab.profiles import SMOKE
from lab.stacking import Networks, train_on_cores, train_together
from maxrr.data import Dataset, load
from maxrr.nets import Recipe

SEEDS = [3, 4]
PROFILE = replace(SMOKE, recipe=Recipe(epochs=2, batch_size=64, lr=1e-3), looks=(1, 2))


def flat(dataset: Dataset) -> Dataset:
    """Images as a table."""
    return replace(dataset, inputs=dataset.inputs.reshape(len(dataset), -1))


def lab(device: str, table: bool, folder: str) -> Lab:
    training, test = (flat(side) if table else side for side in load("digits"))
    return Lab(PROFILE, 0, training.in_order(), test.in_order(), torch.device(device), Path(folder), None)


def trained(device: str, table: bool) -> NDArray[np.float32]:
    """The weights of all networks."""
    with tempfile.TemporaryDirectory() as folder:
        one = lab(device, table, folder)
        cores = [one.training.ids[first::3][:470] for first in (0, 1)]
        networks = list(train_on_cores(one, cores, SEEDS))
    assert len(networks) == len(cores) * len(SEEDS)
    return np.stack([torch.cat([value.detach().flatten() for value in n.parameters()]).numpy() for n in networks])


def test_cores_in_one_stack_are_the_cpus() -> None:
    for table in (False, True):
        there, here = trained("cuda", table), trained("cpu", table)
        another = np.linalg.norm(here[:2] - here[2:])  # what another core makes of the same seed
        assert np.linalg.norm(there - here) < 0.1 * another


def test_one_training_is_looked_at_as_it_goes() -> None:
    for table in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            there, here = (scores.look(lab(device, table, folder), SEEDS) for device in ("cuda", "cpu"))
        assert [one.shape for one in there] == [one.shape for one in here]
        same = np.mean([one == other for one, other in zip(there, here, strict=True)])
        assert same > 0.95, same  # records that a network is undecided about may fall to either side


def test_a_look_on_the_way_is_a_shorter_training() -> None:
    looked: dict[int, list[bytes]] = {}

    def keep(epoch: int, networks: Networks) -> None:
        looked[epoch] = [parameters_to_vector(one.parameters()).detach().numpy().tobytes() for one in networks]

    with tempfile.TemporaryDirectory() as folder:
        here = lab("cuda", False, folder)
        train_together(here, SEEDS, recipe=replace(PROFILE.recipe, epochs=5), look=keep)
        wanted = looked[3]
        train_together(here, SEEDS, recipe=replace(PROFILE.recipe, epochs=3), look=keep)
    assert looked[3] == wanted
    assert looked[5] != wanted


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name, flush=True)
