"""Networks that step together are the networks that step alone: in float64, on CPU tensors."""

import copy
import threading

import numpy as np
import pytest
import torch
from torch import nn

from maxrr.nets import MLP, LeNet5, Recipe, stacked, training
from maxrr.nets import runs as runs_cpu
from maxrr.nets.inputs import records
from maxrr.nets.runs import Tally, Task, run_together
from maxrr.nets.seeding import begin
from tests.nets.problems import (
    ResNet,
    Tied,
    WithBuffer,
    bytes_of,
    dropping,
    normalised,
    pictures,
    table,
)

CPU = torch.device("cpu")
SEEDS = [4, 0, 7]


def frozen_first():
    network = MLP(6, 3, hidden=(8, 5))
    network[1].requires_grad_(False)
    return network


NETWORKS = {
    "MLP": (lambda: MLP(6, 3, (8,)), table()),
    "LeNet-5": (lambda: LeNet5((1, 8, 8), 3), pictures(20)),
    "ResNet": (ResNet, pictures(20)),
    "batch normalisation": (normalised, table()),
    "frozen": (frozen_first, table()),
    "tied": (Tied, table()),
    "buffer": (WithBuffer, table()),
}


def together(network, dataset, recipe, seeds=SEEDS, progress=None, rows=None):
    task = Task(network, dataset, recipe, CPU, 1, rows)
    tally = Tally(progress, task.lengths(seeds))
    return list(run_together(task, records(dataset, begin(network, 0), CPU), seeds, tally))


def alone(network, dataset, recipe, seed):
    started = begin(network, seed)
    data = records(dataset, started, CPU)
    loss, accuracy = runs_cpu.fit(started, data, recipe, seed, threading.Event(), lambda *news: None)
    return started.eval(), loss, accuracy


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("batch_size", [16, 64])
def test_equal_to_one_run_after_the_other(name, batch_size):
    """1e-10 leaves room for sums in another order: a weight without influence, such as a bias before batch
    normalisation, has rounding errors for a slope, and Adam divides those by no less than 1e-8.
    """
    make, dataset = NETWORKS[name]
    network, recipe = make().double(), Recipe(epochs=2, batch_size=batch_size, lr=1e-3)
    for seed, run in zip(SEEDS, together(network, dataset, recipe), strict=True):
        expected, loss, accuracy = alone(network, dataset, recipe, seed)
        assert run.seed == seed
        assert abs(run.loss - loss) < 1e-10
        assert run.accuracy == accuracy
        ours, theirs = run.network.state_dict(), expected.state_dict()
        assert list(ours) == list(theirs)
        for key in ours:
            assert torch.allclose(ours[key], theirs[key], rtol=0.0, atol=1e-9 if "bias" in key else 1e-10), key
        assert [weights.requires_grad for weights in run.network.parameters()] == [
            weights.requires_grad for weights in expected.parameters()
        ]
        assert not any(module.training for module in run.network.modules())


def test_each_may_go_without_records_of_its_own():
    network, dataset, recipe = MLP(6, 3, (8,)), table(), Recipe(epochs=2, batch_size=16)
    rng = np.random.default_rng(0)
    rows = {seed: np.sort(rng.choice(len(dataset), 37, replace=False)) for seed in SEEDS}
    for run in together(network, dataset, recipe, rows=rows):
        expected, loss, _ = alone(network, dataset.select(dataset.ids[rows[run.seed]]), recipe, run.seed)
        assert run.loss == pytest.approx(loss, abs=1e-4)
        for name, value in run.network.state_dict().items():
            assert torch.allclose(value, expected.state_dict()[name], atol=1e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_they_begin_with_the_same_weights(name):
    """Exactly, in float32, and the networks given are left as they are."""
    make, dataset = NETWORKS[name]
    networks = [begin(make(), seed) for seed in SEEDS]
    before = [bytes_of(network) for network in networks]
    stack = stacked.Stack(networks, records(dataset, networks[0], CPU), Recipe(lr=1e-3))
    for network, state in zip(networks, stack.fitted(), strict=True):
        for key, value in (*network.named_parameters(), *network.named_buffers()):
            assert torch.equal(state[key], value)
    stack.step(torch.zeros(len(SEEDS), 4, dtype=torch.int64) + torch.arange(4))
    assert [bytes_of(network) for network in networks] == before


def test_they_go_through_the_same_shuffles(monkeypatch):
    """Row by row, the batches are those of training alone."""
    dataset, recipe, seen = table(21), Recipe(epochs=2, batch_size=8), []
    network = MLP(6, 3)
    data = records(dataset, begin(network, 0), CPU)
    monkeypatch.setattr(stacked.Stack, "step", lambda self, rows: seen.append(rows.clone()))
    stack = stacked.Stack([begin(network, seed) for seed in SEEDS], data, recipe)
    stacked.fit(stack, recipe, SEEDS, lambda *news: None)
    assert [rows.shape for rows in seen] == [(3, 8), (3, 8), (3, 5)] * 2
    for number, seed in enumerate(SEEDS):
        asked = []
        spied = copy.copy(data)
        object.__setattr__(spied, "batch", lambda rows, asked=asked: asked.append(rows) or data.batch(rows))
        runs_cpu.fit(begin(network, seed), spied, recipe, seed, threading.Event(), lambda *news: None)
        assert all(torch.equal(theirs[number], ours) for theirs, ours in zip(seen, asked, strict=True))


@pytest.mark.parametrize("count", [1, 2, 8, 9, 16, 17])
def test_any_number_of_records(count):
    network, dataset, recipe = MLP(6, 3, (5,)).double(), table(count), Recipe(epochs=2, batch_size=8)
    for seed, run in zip(SEEDS, together(network, dataset, recipe), strict=True):
        expected, loss, _ = alone(network, dataset, recipe, seed)
        assert abs(run.loss - loss) < 1e-12
        for ours, theirs in zip(run.network.parameters(), expected.parameters(), strict=True):
            assert torch.allclose(ours, theirs, rtol=0.0, atol=1e-12)


def test_networks_do_not_see_each_other():
    """A network's company changes nothing but the order of sums."""
    network, dataset, recipe = MLP(6, 3, (5,)).double(), table(30), Recipe(epochs=2, batch_size=16)
    (one,) = together(network, dataset, recipe, [0])
    for company in ([0, 1], [5, 0, 9, 3]):
        run = next(run for run in together(network, dataset, recipe, company) if run.seed == 0)
        assert abs(run.loss - one.loss) < 1e-12
        for ours, theirs in zip(run.network.parameters(), one.network.parameters(), strict=True):
            assert torch.allclose(ours, theirs, rtol=0.0, atol=1e-12)


def test_where_memory_runs_out_there_are_fewer_at_a_time(monkeypatch):
    network, dataset, recipe = MLP(6, 3, (5,)).double(), table(30), Recipe(epochs=2, batch_size=16)
    expected, fit, tried, calls = together(network, dataset, recipe, range(5)), stacked.fit, [], []

    def scarce(stack, recipe, seeds, seen, rows):
        tried.append(len(seeds))
        if len(seeds) > 2:
            seen(40, 1.0, 0.5)
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return fit(stack, recipe, seeds, seen, rows)

    monkeypatch.setattr(stacked, "fit", scarce)
    runs = together(network, dataset, recipe, range(5), progress=lambda what, done, *others, **more: calls.append(done))
    assert tried == [5, 2, 2, 1]
    assert [run.seed for run in runs] == list(range(5))
    for run, same in zip(runs, expected, strict=True):
        assert abs(run.loss - same.loss) < 1e-12
    assert calls[-1] == 5 * 2 * len(dataset)
    assert calls == sorted(calls)  # progress never goes backwards


def test_divergence_is_named():
    with pytest.raises(ValueError, match="seed 4 diverged"):
        together(MLP(6, 3), table(), Recipe(epochs=3, lr=1e30))


def test_which_networks_draw_numbers():
    data = records(table(), MLP(6, 3), CPU)
    assert training.tried(begin(dropping(), 0), data, 2)[1]
    assert not training.tried(begin(MLP(6, 3), 0), data, 2)[1]
    assert not training.tried(begin(normalised(), 0), data, 2)[1]
    started = begin(dropping(), 0)
    state = torch.get_rng_state()
    training.tried(started, data, 2)
    assert torch.equal(torch.get_rng_state(), state)


class Branching(nn.Module):
    """Looks at its numbers, as vmap cannot."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 3)

    def forward(self, x):
        scores = self.linear(x)
        return scores if scores.sum().item() > 0.0 else 2.0 * scores


def test_which_networks_can_be_stacked():
    for make, dataset in NETWORKS.values():
        network = begin(make(), 0)
        before = bytes_of(network)
        assert training.why_not_stacked(network, records(dataset, network, CPU), Recipe()) is None
        assert bytes_of(network) == before
    network = begin(Branching(), 0)
    reason = training.why_not_stacked(network, records(table(), network, CPU), Recipe())
    assert ".item()" in reason
    assert "\n" not in reason
