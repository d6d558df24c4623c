"""LeNet-5 on Fashion-MNIST: what the recipe reaches, and that stepping together reaches the same."""

import numpy as np
import pytest
import torch

from maxrr.data import load
from maxrr.nets import LeNet5, Recipe, train_many
from maxrr.nets.inputs import records
from maxrr.nets.runs import Tally, Task, run_together
from maxrr.nets.seeding import begin


@pytest.fixture(scope="module")
def fashion():
    return load("fashion-mnist")


def accuracy(network, dataset):
    """On records that it was not trained on."""
    right = 0
    for first in range(0, len(dataset), 1000):
        images = torch.from_numpy(np.array(dataset.inputs[first : first + 1000])).float() / 255.0
        with torch.no_grad():
            right += int((network(images).argmax(1).numpy() == dataset.labels[first : first + 1000]).sum())
    return right / len(dataset)


def test_two_epochs_of_the_recipe(fashion):
    """Ten classes; 15 epochs reach 0.9, so 0.75 after two is far from luck and far from a fault in the loop."""
    train, test = fashion
    for run in train_many(LeNet5(), train, [0, 1], epochs=2):
        assert accuracy(run.network, test) > 0.75
        assert run.accuracy > 0.7


def test_together_and_one_at_a_time_are_equally_good(fashion):
    """In float32 rounding drives runs apart. Accuracies of single runs then differ by about a point, so means of four
    by half of one: two points are four standard errors.
    """
    train, test = fashion
    some, seeds, recipe = train.select(train.ids[:10_000]), [0, 1, 2, 3], Recipe(epochs=3)
    network, cpu = LeNet5(), torch.device("cpu")
    task = Task(network, some, recipe, cpu, 1)
    tally = Tally(None, task.lengths(seeds))
    together = list(run_together(task, records(some, begin(network, 0), cpu), seeds, tally))
    alone = list(train_many(network, some, seeds, epochs=recipe.epochs, device="cpu"))
    means = [np.mean([accuracy(run.network, test) for run in runs]) for runs in (together, alone)]
    assert min(means) > 0.7
    assert abs(means[0] - means[1]) < 0.02
    assert abs(np.mean([run.loss for run in together]) - np.mean([run.loss for run in alone])) < 0.05
