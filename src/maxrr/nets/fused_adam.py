"""Adam on the CPU, by the very operation of PyTorch that its own classes call, but without these.

Making one of them imports PyTorch's compiler, which nobody here uses: it takes longer than all else that a process does
before its first step, in every worker and every replay.
"""

from typing import Any, Protocol

import torch
from torch import Tensor

from maxrr.nets.recipe import Recipe

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # what torch.optim.Adam has


class Optimiser(Protocol):
    """What training asks of an optimiser."""

    @property
    def param_groups(self) -> list[dict[str, Any]]: ...
    def step(self) -> Any: ...


class FusedAdam:
    """The steps of `torch.optim.Adam`, or `AdamW`, with `fused=True`, of one tensor of weights."""

    def __init__(self, weights: Tensor, lr: float, weight_decay: float, *, decoupled: bool) -> None:
        self.weights, self.weight_decay = weights, weight_decay
        self.operation = torch._fused_adamw_ if decoupled else torch._fused_adam_
        self.mean, self.square = torch.zeros_like(weights), torch.zeros_like(weights)
        self.steps = torch.zeros(())
        self.param_groups: list[dict[str, Any]] = [{"lr": lr}]

    @torch.no_grad()
    def step(self) -> None:
        """Move the weights against their gradient."""
        assert self.weights.grad is not None
        self.steps += 1
        self.operation(
            [self.weights], [self.weights.grad], [self.mean], [self.square], [], [self.steps],
            lr=self.param_groups[0]["lr"], beta1=BETA1, beta2=BETA2, weight_decay=self.weight_decay, eps=EPSILON,
            amsgrad=False, maximize=False, grad_scale=None, found_inf=None,
        )  # fmt: skip


def optimiser_of(recipe: Recipe, weights: Tensor) -> Optimiser:
    """What moves one tensor of weights as the recipe says."""
    usual = type(recipe).make_optimiser is Recipe.make_optimiser and recipe.optimiser in ("adam", "adamw")
    if usual and weights.device.type == "cpu":
        return FusedAdam(weights, recipe.lr, recipe.weight_decay, decoupled=recipe.optimiser == "adamw")
    return recipe.make_optimiser([weights])
