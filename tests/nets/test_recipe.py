"""Recipes with more than the defaults: facts there and back, and bytes that depend on the seed alone."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call

from maxrr.nets import MLP, LeNet5, Recipe, stacked
from maxrr.nets.inputs import records
from maxrr.nets.recipe import Variations, batch_sizes
from maxrr.nets.seeding import begin, shuffle
from maxrr.nets.training import train, train_many, why_not_stacked
from maxrr.nets.training_function import training_of
from tests.nets.problems import bytes_of, pictures, reordered, table

RICH = (
    Recipe(2, 8, optimiser="adamw", weight_decay=0.1), Recipe(2, 8, 1e-2, optimiser="sgd", momentum=0.5),
    Recipe(2, 8, schedule="cosine"), Recipe(2, 8, schedule="linear"), Recipe(2, 8, label_smoothing=0.2),
    Recipe(2, 8, augment="flip"), Recipe(2, 8, augment=("shift:2",)), Recipe(2, 8, augment=("flip", "shift:1")),
)  # fmt: skip
CPU = torch.device("cpu")


def trained(recipe, dataset, seed=3):
    run = train(LeNet5((1, 8, 8), 3), dataset, seed, recipe=recipe, device="cpu", threads=1)
    return bytes_of(run.network)


def test_the_defaults_say_what_they_said():
    assert Recipe().facts == {"epochs": 18, "batch_size": 64, "lr": 1e-3}


@pytest.mark.parametrize("recipe", RICH, ids=lambda recipe: str(list(recipe.facts.items())[3:]))
def test_each_is_repeatable_and_something_else_than_the_default(recipe):
    dataset = pictures()
    found = trained(recipe, dataset)
    assert found == trained(recipe, reordered(dataset))
    assert found != trained(Recipe(recipe.epochs, recipe.batch_size, recipe.lr), dataset)
    assert training_of(recipe.facts) == recipe


def test_many_runs_are_those_of_one():
    recipe, dataset = Recipe(2, 8, schedule="cosine", augment=("flip", "shift:2")), pictures()
    runs = train_many(LeNet5((1, 8, 8), 3), dataset, [3, 4], recipe=recipe, device="cpu")
    assert [bytes_of(run.network) for run in runs] == [trained(recipe, dataset, seed) for seed in (3, 4)]


def test_momentum_by_hand():
    """One network, step by step as the textbook has it; and the same where many step together."""
    recipe, network, dataset, seed = (
        Recipe(2, 16, 0.05, optimiser="sgd", momentum=0.9),
        LeNet5((1, 8, 8), 3),
        pictures(),
        4,
    )
    (run,) = train_many(network, dataset, [seed], recipe=recipe, device="cpu")
    begun = begin(network, seed)
    data = records(dataset, begun, CPU)
    weights = {name: value.detach().clone().requires_grad_() for name, value in begun.named_parameters()}
    speed = {name: torch.zeros_like(value) for name, value in weights.items()}
    for epoch in range(recipe.epochs):
        for rows in torch.from_numpy(shuffle(seed, epoch, len(data))).split(batch_sizes(recipe, len(data))):
            inputs, labels = data.batch(rows)
            loss = F.cross_entropy(functional_call(begun, weights, (inputs,)), labels)
            slopes = torch.autograd.grad(loss, list(weights.values()))
            for (name, value), slope in zip(list(weights.items()), slopes, strict=True):
                speed[name] = recipe.momentum * speed[name] + slope
                weights[name] = (value - recipe.lr * speed[name]).detach().requires_grad_()
    stack = stacked.Stack([begin(network, other) for other in (seed, 5)], data, recipe)
    stacked.fit(stack, recipe, [seed, 5], lambda *_: None)
    (first, _) = stack.fitted()
    for name, value in weights.items():
        assert torch.allclose(run.network.state_dict()[name], value, atol=1e-4)
        assert torch.allclose(first[name], value, atol=1e-4)


def test_variations_against_the_naive_way():
    """Record by record, pixel by pixel."""
    inputs = torch.rand(6, 2, 5, 4)
    drawn = Variations.drawn(("flip", "shift:2"), 0, 1, 20, CPU)
    rows = torch.tensor([3, 19, 0, 7, 8, 5])
    found = drawn.of(inputs, rows)
    for number, row in enumerate(rows.tolist()):
        image = inputs[number].flip(-1) if drawn.flipped[row] else inputs[number]
        down, right = drawn.moved[row].tolist()
        expected = torch.zeros_like(image)
        for y in range(5):
            for x in range(4):
                if 0 <= y - down < 5 and 0 <= x - right < 4:
                    expected[:, y, x] = image[:, y - down, x - right]
        assert torch.equal(found[number], expected)
    assert {True, False} == set(drawn.flipped.tolist())
    assert set(np.unique(drawn.moved)) == {-2, -1, 0, 1, 2}


@pytest.mark.parametrize("wrong", [
    {"optimiser": "adagrad"}, {"schedule": "step"}, {"weight_decay": -1}, {"label_smoothing": 1}, {"momentum": 1},
    {"augment": "rotate"}, {"augment": "shift"}, {"augment": "shift:0"}, {"augment": ("flip", "flip")},
    {"augment": "flip:2"},
])  # fmt: skip
def test_what_is_no_recipe(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Recipe(**wrong)


def test_tables_are_not_turned_around():
    with pytest.raises(ValueError, match="augment varies images"):
        train(MLP(6, 3), table(), 0, epochs=1, augment="flip", device="cpu", threads=1)


@pytest.mark.parametrize("facts", [
    {"epochs": 18}, {"epochs": 18, "batch_size": 64, "lr": "much"}, {"epochs": 1, "batch_size": 6, "lr": 1, "mood": 2},
    {"epochs": 1, "batch_size": 6, "lr": 1.0, "augment": "flip"},
    {"epochs": 1, "batch_size": 6, "lr": 1.0, "schedule": "constant"},
])  # fmt: skip
def test_facts_that_are_none(facts):
    with pytest.raises((ValueError, TypeError)):
        training_of(facts)


def test_what_cannot_be_recorded_as_one_step_is_trained_one_at_a_time():
    network = begin(LeNet5((1, 8, 8), 3), 0)
    data = records(pictures(), network, CPU)
    assert why_not_stacked(network, data, Recipe(optimiser="sgd", label_smoothing=0.1)) is None
    for recipe in (Recipe(schedule="cosine"), Recipe(augment="flip")):
        assert "follow" in why_not_stacked(network, data, recipe)
