"""How records lie in memory is nothing about them: PyTorch computes the same from every layout."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from maxrr.core import rank
from maxrr.nets import LeNet5, Recipe, embed, split, train
from maxrr.nets.inputs import as_tensor, tensors
from tests.nets.problems import bytes_of, pictures
from tests.small_networks import solved_here  # noqa: F401

LAYOUTS = {
    "channels last": lambda array: array.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2),
    "columns first": np.asfortranarray,
    "backwards": lambda array: np.ascontiguousarray(array[::-1])[::-1],
    "every second": lambda array: np.repeat(array, 2, axis=3)[..., ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [1, 3])
def test_the_same_bytes_from_every_layout(layout, channels):
    plain = pictures(60, (channels, 28, 28))
    other = replace(plain, inputs=LAYOUTS[layout](plain.inputs))
    assert other.inputs.strides != plain.inputs.strides or channels == 1
    network = LeNet5(plain.shape)
    first, second = (train(network, dataset, seed=3, epochs=1, batch_size=20).network for dataset in (plain, other))
    assert bytes_of(first) == bytes_of(second)
    features = [embed(split(first)[0], dataset) for dataset in (plain, other)]
    assert features[0].tobytes() == features[1].tobytes()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tensors_are_row_by_row(layout):
    """Also along an axis of length 1, where NumPy may say anything."""
    array = LAYOUTS[layout](pictures(4, (1, 5, 6)).inputs)
    found = as_tensor(array)
    assert found.stride() == (30, 30, 6, 1)
    assert np.array_equal(found.numpy(), array)


def test_what_lies_row_by_row_is_not_copied():
    dataset = pictures()
    assert as_tensor(dataset.inputs).data_ptr() == dataset.inputs.ctypes.data
    assert isinstance(tensors(dataset)[0], torch.Tensor)


@pytest.mark.usefixtures("solved_here")
def test_a_ranking_from_another_layout():
    plain = pictures(40, (1, 28, 28))
    other = replace(plain, inputs=LAYOUTS["channels last"](plain.inputs))
    network = nn.Sequential(nn.Conv2d(1, 4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 576, 3))
    votes = [rank(network, dataset, range(2), recipe=Recipe(epochs=1)).votes.tobytes() for dataset in (plain, other)]
    assert votes[0] == votes[1]
