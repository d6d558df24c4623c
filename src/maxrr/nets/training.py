"""One training run, one step after the other."""

import threading
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maxrr.nets.recipe import Recipe
from maxrr.nets.records import Records
from maxrr.nets.seeding import shuffle

GLANCE = 0.2  # seconds between two looks at how far a run is

Seen = Callable[[int, float, float], None]
"""Called now and then with the records gone through so far, the mean loss and the accuracy of this epoch."""


class Stopped(Exception):  # noqa: N818 - nobody's error
    """Somebody asked the run to stop."""


def fit(
    network: nn.Module, records: Records, recipe: Recipe, seed: int, stop: threading.Event, seen: Seen
) -> tuple[float, float]:  # fmt: skip
    """Train a network in place; returns its loss and accuracy over the last epoch.

    Raises
    ------
    Stopped
        When `stop` is set.
    """
    count, device = len(records), records.labels.device
    flat, gradient = flatten(network)
    optimiser = recipe.optimiser([flat])
    loss_sum, correct = torch.zeros((), dtype=flat.dtype, device=device), torch.zeros((), device=device)
    last_look = time.monotonic()
    for epoch in range(recipe.epochs):
        order = torch.from_numpy(shuffle(seed, epoch, count)).to(device)
        loss_sum.zero_(), correct.zero_()
        through = 0
        for rows in order.split(recipe.batches(count)):
            if stop.is_set():
                raise Stopped
            inputs, labels = records.batch(rows)
            gradient.zero_()
            scores = network(inputs)
            loss = F.cross_entropy(scores, labels)
            loss.backward()
            optimiser.step()
            loss_sum.add_(loss.detach(), alpha=len(rows))
            correct.add_((scores.detach().argmax(1) == labels).sum())
            through += len(rows)
            if through == count or time.monotonic() - last_look > GLANCE:
                last_look = time.monotonic()
                seen(epoch * count + through, float(loss_sum) / through, float(correct) / through)
    for weights in network.parameters():
        weights.data, weights.grad = weights.detach().clone(), None
    return float(loss_sum) / count, float(correct) / count


def flatten(network: nn.Module) -> tuple[Tensor, Tensor]:
    """Let all trained weights lie in one tensor and their gradients in another, so that a step is one call."""
    trained = [weights for weights in network.parameters() if weights.requires_grad]
    flat = torch.cat([weights.detach().flatten() for weights in trained]).requires_grad_()
    gradient = flat.grad = torch.zeros_like(flat)
    sizes = [weights.numel() for weights in trained]
    for weights, place, slope in zip(trained, flat.detach().split(sizes), gradient.split(sizes), strict=True):
        weights.data = place.view_as(weights)
        weights.grad = slope.view_as(weights)
    return flat, gradient
