"""Adam without PyTorch's classes: the same bytes as with them, and without their compiler."""

import subprocess
import sys

import pytest
import torch

from maxrr.nets import Recipe
from maxrr.nets.recipe import FusedAdam, optimiser_of, torch_optimiser

KINDS = {
    "adam": Recipe(lr=0.01), "decay": Recipe(lr=0.1, weight_decay=0.3),
    "adamw": Recipe(lr=0.01, optimiser="adamw", weight_decay=0.1),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_bytes_of_pytorchs_own(kind, dtype):
    recipe, generator = KINDS[kind], torch.Generator().manual_seed(0)
    mine, theirs = (torch.linspace(-2, 2, 1001, dtype=dtype).requires_grad_() for _ in range(2))
    ours, oracle = optimiser_of(recipe, mine), torch_optimiser(recipe, [theirs])
    assert isinstance(ours, FusedAdam)
    assert isinstance(oracle, torch.optim.Optimizer)
    for step in range(25):
        gradient = torch.randn(1001, dtype=dtype, generator=generator) * 10.0 ** (step % 7 - 3)
        mine.grad, theirs.grad = gradient.clone(), gradient.clone()
        for optimiser in (ours, oracle):
            optimiser.param_groups[0]["lr"] = recipe.lr / (step + 1)
            optimiser.step()
        assert torch.equal(mine, theirs)


def test_another_optimiser_is_pytorchs():
    weights = torch.zeros(3, requires_grad=True)
    assert isinstance(optimiser_of(Recipe(optimiser="sgd"), weights), torch.optim.SGD)


FRESH = """
import sys
from maxrr.data import load
from maxrr.nets import MLP, train
training, _ = load("digits")
train(MLP(64, 10, hidden=(8,)), training, 0, epochs=1, device="cpu")
sys.exit("torch._dynamo" in sys.modules)
"""


def test_a_process_that_trains_does_not_load_pytorchs_compiler():
    assert subprocess.run([sys.executable, "-c", FRESH], check=False).returncode == 0
