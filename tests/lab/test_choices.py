"""The readings of what the paper leaves open: each is trained as its name says."""

import torch
import torch.nn.functional as F
from torch.func import functional_call

from lab import choices
from lab.choices import Momentum, measure_reading, readings
from lab.lab import Lab
from maxrr.nets import Recipe, stacked
from maxrr.nets.records import records
from maxrr.nets.seeding import begin, shuffle
from maxrr.nets.training import train_by
from tests.lab.problems import tiny_lab

CPU = torch.device("cpu")


def test_readings_have_names_of_their_own_and_the_usual_one_is_first(lab):
    found = readings(lab)
    names = [reading.name for reading in found]
    assert len(set(names)) == len(names)
    assert names[:4] == [
        "one-vs-rest, 3 epochs", "one-vs-one, 3 epochs", "one-vs-rest, 2 epochs", "one-vs-one, 2 epochs",
    ]  # fmt: skip
    assert found[0].recipe == lab.profile.recipe
    assert {type(reading.recipe) for reading in found} == {Recipe, Momentum}


def test_every_reading_is_measured(lab, measured):
    assert list(measured["choices"]["cells"]) == [reading.name for reading in choices.readings(lab)]


def test_networks_and_heads_are_those_of_the_reading(lab, tmp_path, monkeypatch):
    """Told from what the laboratory is asked for, the ranking's networks among it."""
    trained, solved = [], []
    train, fit_heads = Lab.train, Lab.fit_heads

    def spied(self, seeds, records, *, recipe, piece):
        trained.append((recipe, self.profile.pixels))
        return train(self, seeds, records, recipe=recipe, piece=piece)

    def solving(self, features, masks, kind):
        solved.append(kind)
        return fit_heads(self, features, masks, kind)

    monkeypatch.setattr(Lab, "train", spied)
    monkeypatch.setattr(Lab, "fit_heads", solving)
    reading = next(reading for reading in readings(lab) if reading.pixels == "standardised")
    measure_reading(tiny_lab(tmp_path), reading)
    assert trained == [(reading.recipe, reading.pixels)] * 4
    assert solved == [reading.heads] * 2


def test_momentum_by_hand(lab):
    """One network, step by step as the textbook has it; and the same where many step together."""
    recipe, seed, momentum = Momentum(epochs=2, batch_size=16, lr=0.05), 4, 0.9
    (run,) = train_by(recipe, lab.network, lab.training, [seed], device="cpu")
    network = begin(lab.network, seed)
    data = records(lab.training, network, CPU)
    weights = {name: value.detach().clone().requires_grad_() for name, value in network.named_parameters()}
    speed = {name: torch.zeros_like(value) for name, value in weights.items()}
    for epoch in range(recipe.epochs):
        for rows in torch.from_numpy(shuffle(seed, epoch, len(data))).split(recipe.batches(len(data))):
            inputs, labels = data.batch(rows)
            loss = F.cross_entropy(functional_call(network, weights, (inputs,)), labels)
            for (name, value), slope in zip(
                list(weights.items()), torch.autograd.grad(loss, list(weights.values())), strict=True
            ):  # fmt: skip
                speed[name] = momentum * speed[name] + slope
                weights[name] = (value - recipe.lr * speed[name]).detach().requires_grad_()
    stack = stacked.Stack([begin(lab.network, other) for other in (seed, 5)], data, recipe)
    stacked.fit(stack, recipe, [seed, 5], lambda *_: None)
    (first, _) = stack.fitted()
    for name, value in weights.items():
        assert torch.allclose(run.network.state_dict()[name], value, atol=1e-4)
        assert torch.allclose(first[name], value, atol=1e-4)
