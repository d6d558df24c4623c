"""Networks in one stack are those that are trained by themselves, whatever others have the same seed."""

import numpy as np
import pytest
import torch

from lab import scores
from lab.stacking import find_right, train_on_cores, train_together
from tests.lab.problems import TINY, tiny_lab


def weights(network):
    return np.concatenate([value.detach().numpy().ravel() for value in network.parameters()])


def test_several_cores_with_the_same_seeds_in_one_stack(tmp_path):
    lab, seeds = tiny_lab(tmp_path), [3, 4]
    cores = [lab.training.ids[::-3], lab.training.ids[1::3]]
    alone = [weights(network) for network in train_on_cores(lab, cores, seeds)]
    rows = np.stack([np.sort(lab.training.rows(core)) for core in cores for _ in seeds])
    stacked = [weights(network) for network in train_together(lab, seeds * 2, rows)]
    np.testing.assert_allclose(stacked, alone, atol=1e-4)
    assert min(np.abs(one - other).max() for one, other in zip(alone[:2], alone[2:], strict=True)) > 1e-2


def test_on_a_graphics_processor_they_are_stacked_in_equal_groups(tmp_path, monkeypatch):
    lab, asked = tiny_lab(tmp_path), []
    object.__setattr__(lab, "device", torch.device("cuda"))
    monkeypatch.setattr("lab.stacking.AT_ONCE", 5)
    monkeypatch.setattr(
        "lab.stacking.train_together", lambda _, seeds, rows: asked.append((seeds, rows.tolist())) or []
    )
    cores = [lab.training.ids[:4], lab.training.ids[9:5:-1]]
    assert list(train_on_cores(lab, cores, [7, 8, 9])) == []
    first, second = [0, 1, 2, 3], [6, 7, 8, 9]
    assert asked == [([7, 8, 9], [first] * 3), ([7, 8, 9], [second] * 3)]


def test_one_training_looked_at_is_trainings_of_several_lengths(tmp_path):
    lab = tiny_lab(tmp_path)
    wanted = scores.look(lab, [1, 2])
    found = find_right(lab, [1, 2], TINY.looks)
    assert [one.shape for one in found] == [(2, len(lab.training))] * len(TINY.looks)
    assert np.mean([one == other for one, other in zip(found, wanted, strict=True)]) > 0.99  # but for rounding
    assert not np.array_equal(found[0], found[-1])


def test_a_network_that_diverges_is_named(tmp_path, monkeypatch):
    lab = tiny_lab(tmp_path)
    monkeypatch.setattr("lab.stacking.stacked.fit", lambda *_: ([0.5, float("nan")], [0.1, 0.1]))
    with pytest.raises(ValueError, match="seed 6 diverged"):
        train_together(lab, [5, 6])
