"""What can only be seen on a GPU. CI has none: run this by hand, with pytest or as a plain script.

make cuda        # or: PYTHONPATH=src python tests/cuda/test_networks.py
"""

import threading
import warnings

import numpy as np
import torch
from torch import nn

from maxrr.data import Dataset, load
from maxrr.nets import LeNet5, Recipe, embed, split, stacked, train, train_many
from maxrr.nets import runs as runs_cpu
from maxrr.nets.inputs import records
from maxrr.nets.seeding import begin

CUDA = torch.device("cuda")
DIGITS, HELD_OUT = load("digits")


def ignore(through: int, loss: float, accuracy: float) -> None:
    pass


class Residual(nn.Module):
    """Batch normalisation, a skip connection, and a convolution with a stride that our kernels leave to PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 12, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(12)
        self.second = nn.Conv2d(12, 12, 3, padding=1)
        self.down = nn.Conv2d(12, 20, 3, stride=2, padding=1)
        self.head = nn.Linear(20, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.norm(self.first(images)))
        inner = torch.relu(inner + self.second(inner))
        return self.head(torch.relu(self.down(inner)).mean((2, 3)))


def stacked_and_alone(network: nn.Module, recipe: Recipe, device: torch.device) -> float:
    """The largest difference between weights trained together and one at a time on the CPU."""
    seeds = [3, 4, 5]
    networks = [begin(network, seed) for seed in seeds]
    stack = stacked.Stack(networks, records(DIGITS, networks[0], device), recipe)
    stacked.fit(stack, recipe, seeds, ignore)
    worst = 0.0
    data = records(DIGITS, networks[0], torch.device("cpu"))
    for seed, alone, together in zip(seeds, networks, stack.fitted(), strict=True):
        runs_cpu.fit(alone, data, recipe, seed, threading.Event(), ignore)
        for name, value in alone.state_dict().items():
            worst = max(worst, float((value.double() - together[name].double()).abs().max()))
    return worst


def test_first_steps_in_float64_are_those_of_the_cpu() -> None:
    for network in (LeNet5((1, 8, 8)), Residual()):
        assert stacked_and_alone(network.double(), Recipe(epochs=1), CUDA) < 1e-11


def test_our_kernels_take_the_same_first_steps_as_the_cpu_in_float32() -> None:
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for network in (LeNet5((1, 8, 8)), Residual()):
            # One epoch of 23 steps at a learning rate of 1e-3: weights move by up to 0.02, so this is 1 % of that.
            assert stacked_and_alone(network, Recipe(epochs=1), CUDA) < 2e-4


def test_the_same_bytes_twice_and_in_any_order() -> None:
    network = LeNet5((1, 8, 8))
    shuffled = DIGITS.select(np.random.default_rng(0).permutation(DIGITS.ids))
    first = list(train_many(network, DIGITS, range(5), epochs=3, device="cuda"))
    again = list(train_many(network, shuffled, range(5), epochs=3, device="cuda"))
    for one, other in zip(first, again, strict=True):
        for here, there in zip(one.network.parameters(), other.network.parameters(), strict=True):
            assert torch.equal(here, there)


def test_it_ends_like_the_cpu_statistically() -> None:
    network = LeNet5((1, 8, 8))
    ends = {
        device: np.mean([run.accuracy for run in train_many(network, DIGITS, range(8), epochs=25, device=device)])
        for device in ("cpu", "cuda")
    }
    assert abs(ends["cpu"] - ends["cuda"]) < 0.02  # the runs of one device differ by about 0.01
    assert ends["cuda"] > 0.8


def test_features_do_not_depend_on_company() -> None:
    extractor, _ = split(train(LeNet5((1, 8, 8)), DIGITS, 0, epochs=1, device="cuda").network)
    every = embed(extractor, DIGITS, device="cuda")
    order = np.random.default_rng(1).permutation(len(DIGITS))[:500]
    assert np.array_equal(embed(extractor, DIGITS.select(DIGITS.ids[order]), device="cuda"), every[order])
    assert np.allclose(embed(extractor, DIGITS, device="cpu"), every, atol=1e-4)


def test_wide_layers_and_dropout_are_trained_too() -> None:
    wide = nn.Sequential(nn.Conv2d(1, 300, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(300, 10))
    assert len(list(train_many(wide, DIGITS, range(3), epochs=1, device="cuda"))) == 3
    dropping = nn.Sequential(nn.Flatten(), nn.Linear(64, 50), nn.Dropout(), nn.Linear(50, 10))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        runs = list(train_many(dropping, DIGITS, range(2), epochs=1, device="cuda"))
    assert any("one at a time" in str(warning.message) for warning in said)
    again = train(dropping, DIGITS, 1, epochs=1, device="cuda")
    for here, there in zip(runs[1].network.parameters(), again.network.parameters(), strict=True):
        assert torch.equal(here, there)


def test_pixels_are_scaled_as_on_the_cpu() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 1, 8, 8)).astype(np.uint8)
    data = Dataset(pixels, np.arange(64) % 2, ("a", "b"), np.arange(64))
    cpu, cuda = (embed(nn.Flatten(), data, device=device) for device in ("cpu", "cuda"))
    assert cpu.tobytes() == cuda.tobytes()


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name, flush=True)
