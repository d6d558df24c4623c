"""Many runs are the runs that one would have trained alone."""

import threading
import time

import numpy as np
import pytest
import torch
from torch import nn

from maxrr.nets import MLP, LeNet5, embed, split, train, train_many, training
from maxrr.nets import runs as runs_cpu
from maxrr.parallel.engine import InProcess
from tests.nets.problems import (
    ResNet,
    Tied,
    WithBuffer,
    bytes_of,
    digits,
    dropping,
    normalised,
    pictures,
    reordered,
    same_run,
    table,
)

SEEDS = [5, 0, 3, 1, 4]


def alone(network, dataset, seeds=SEEDS, **options):
    return [train(network, dataset, seed, threads=1, **options) for seed in seeds]


def pool_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("make", [lambda: MLP(6, 3, (300, 100)), normalised])
def test_the_same_bytes_as_alone_in_the_order_of_the_seeds(make, workers, monkeypatch):
    """The first network is large enough for drawing its weights to take a while, beside runs that are under way."""
    network, dataset = make(), table()
    monkeypatch.setattr(training, "cores", lambda: workers)
    runs = list(train_many(network, reordered(dataset), iter(SEEDS), epochs=2, batch_size=8))
    expected = alone(network, dataset, epochs=2, batch_size=8)
    assert [run.seed for run in runs] == SEEDS
    assert all(same_run(*pair) for pair in zip(runs, expected, strict=True))
    assert all(run.environment.threads == 1 for run in runs)


def test_each_run_may_go_without_records_of_its_own():
    dataset = reordered(table())
    left_out = [dataset.ids[:7], dataset.ids[20:27], dataset.ids[43:]]
    runs = list(train_many(MLP(6, 3), dataset, SEEDS[:3], epochs=2, batch_size=8, without=left_out))
    for seed, ids, run in zip(SEEDS, left_out, runs, strict=False):
        assert same_run(run, train(MLP(6, 3), dataset.without(ids), seed, epochs=2, batch_size=8, threads=1))


@pytest.mark.parametrize(
    ("network", "dataset"),
    [(LeNet5((1, 8, 8)), digits(200)), (ResNet(), pictures()), (Tied(), table()), (WithBuffer, table())],
)
def test_other_networks(network, dataset):
    runs = list(train_many(network, dataset, SEEDS[:3], epochs=1, batch_size=16))
    expected = alone(network, dataset, SEEDS[:3], epochs=1, batch_size=16)
    assert all(same_run(*pair) for pair in zip(runs, expected, strict=True))


def test_dropout_goes_one_at_a_time():
    network, dataset = dropping(), table()
    before = torch.get_rng_state()
    under_way = train_many(network, dataset, SEEDS, epochs=3, batch_size=8)
    with pytest.warns(UserWarning, match=r"time.*dropout"):
        runs = [next(under_way)]
    for run in under_way:
        assert torch.equal(torch.get_rng_state(), before)
        torch.rand(3)  # what the caller draws in between is the caller's business
        before = torch.get_rng_state()
        runs.append(run)
    expected = alone(network, dataset, epochs=3, batch_size=8)
    assert all(same_run(*pair) for pair in zip(runs, expected, strict=True))
    assert torch.equal(torch.get_rng_state(), before)


class DropsLater(nn.Module):
    """A network that drops units from its third step on."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 40), nn.Linear(40, 3)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, inputs):
        self.steps += self.training
        hidden = self.first(inputs).relu()
        return self.last(nn.functional.dropout(hidden, 0.5, self.training and int(self.steps) > 2))


def test_networks_that_begin_to_draw_later_are_the_same_as_alone():
    runs = list(train_many(DropsLater, table(), SEEDS, device="cpu"))
    assert [run.seed for run in runs] == SEEDS
    for run, other in zip(runs, alone(DropsLater, table()), strict=True):
        same_run(run, other)


def test_the_caller_may_use_pytorch_meanwhile():
    """Its threads, its random numbers, and embedding the run just finished change nothing."""
    network, dataset = MLP(64, 10, (256,)), digits()
    torch.set_num_threads(2)
    state, runs = torch.get_rng_state(), []
    for run in train_many(network, dataset, range(5), epochs=2):
        runs.append(run)
        embed(split(run.network)[0], dataset)
        train(network, dataset, 9, epochs=1, threads=2)
        torch.set_num_threads(2)
        torch.manual_seed(run.seed)
        torch.rand(100)
    torch.set_rng_state(state)
    assert torch.get_num_threads() == 2
    expected = alone(network, dataset, range(5), epochs=2)
    assert all(same_run(*pair) for pair in zip(runs, expected, strict=True))


def test_runs_share_nothing():
    network = MLP(6, 3)
    one, other = train_many(network, table(), [0, 1], epochs=1)
    kept = bytes_of(other.network)
    with torch.no_grad():
        for value in (*one.network.parameters(), *network.parameters()):
            value.fill_(7)
    assert bytes_of(other.network) == kept


def test_no_seeds_no_runs():
    assert list(train_many(MLP(6, 3), table(), [])) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": [1, 2, 1]}, "asked for twice"),
        ({"seeds": [1, np.int64(1)]}, "asked for twice"),
        ({"seeds": [0, 1, -1]}, "not -1"),
        ({"seeds": [0.5]}, "not 0.5"),
        ({"seeds": ["3"]}, "not '3'"),
        ({"epochs": 0}, "one epoch or more"),
        ({"device": "meta"}, "'cpu' or 'cuda'"),
        ({"without": [[1], [2]]}, "argument 2"),
        ({"without": [[1], [2, 3]], "seeds": [0, 1]}, "as many for each"),
        ({"without": [[1000]]}, "no record has id 1000"),
    ],
)
def test_bad_requests_are_refused_at_once(options, message):
    """Before anything is trained."""
    with pytest.raises(ValueError, match=message):
        train_many(MLP(6, 3), table(), **{"seeds": [0]} | options)


def test_cuda_where_there_is_none(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="CUDA device here"):
        train_many(MLP(6, 3), table(), [0], device="cuda")


def test_a_network_that_does_not_fit():
    with pytest.raises(ValueError, match=r"shape \(6,\)"):
        list(train_many(MLP(5, 3), table(), [0, 1]))
    assert not pool_threads()


def test_a_run_that_diverges_is_named_and_stops_the_others():
    begun = time.monotonic()
    with pytest.raises(ValueError, match="seed 0 diverged"):
        list(train_many(MLP(6, 3), table(), range(500), epochs=20, lr=1e30))
    assert time.monotonic() - begun < 20.0  # 500 of them take minutes
    assert not pool_threads()


def test_closing_stops_the_workers():
    """A million epochs of what is under way would take far longer than the seconds allowed here."""
    before = torch.get_num_threads()
    network = MLP(64, 10)
    runs = train_many(network, digits(), range(50), epochs=1)
    next(runs)
    runs.close()
    assert not pool_threads()
    stopper = iter([0])

    def progress(what, done, total, **numbers):
        if done and next(stopper, None) is None:
            raise RuntimeError("enough")

    endless = train_many(network, digits(), range(50), epochs=10**6, progress=progress)
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match="enough"):
        next(endless)
    assert time.monotonic() - begun < 10.0
    assert not pool_threads()
    assert torch.get_num_threads() == before


def test_results_do_not_pile_up(monkeypatch):
    """However slow the caller is, only a few runs are ahead of it."""
    fitted, fit = [], runs_cpu.fit

    def counting(*arguments, **options):
        fitted.append(arguments)
        return fit(*arguments, **options)

    monkeypatch.setattr(runs_cpu, "fit", counting)
    monkeypatch.setattr(training, "cores", lambda: 2)
    runs = train_many(MLP(6, 3), table(), range(40), epochs=1)
    for taken in range(1, 4):
        next(runs)
        time.sleep(0.2)
        assert len(fitted) <= taken + 2 * 2
    runs.close()


@pytest.mark.parametrize("workers", [1, 3])
def test_progress(workers, monkeypatch):
    monkeypatch.setattr(runs_cpu, "GLANCE", 0.01)
    monkeypatch.setattr(training, "cores", lambda: workers)
    calls = []
    runs = list(
        train_many(
            MLP(6, 3), table(70), SEEDS, epochs=4, batch_size=4,
            progress=lambda *position, **numbers: calls.append((*position, numbers)),
        )
    )  # fmt: skip
    done = [call[1] for call in calls]
    assert {(what, total) for what, _, total, _ in calls} == {("training 5 networks", 5 * 4 * 70)}
    assert done == sorted(set(done))
    assert done[-1] == 5 * 4 * 70
    assert calls[-1][3]["loss"] == pytest.approx(np.mean([run.loss for run in runs]))
    assert calls[-1][3]["accuracy"] == pytest.approx(np.mean([run.accuracy for run in runs]))


class Named(nn.Module):
    """Weights with names that mean something elsewhere, too."""

    def __init__(self):
        super().__init__()
        self.file, self.allow_pickle = nn.Parameter(torch.empty(6, 3)), nn.Parameter(torch.empty(3))
        self.reset_parameters()

    def reset_parameters(self):
        for weights in self.parameters():
            nn.init.normal_(weights)

    def forward(self, x):
        return x @ self.file + self.allow_pickle


@pytest.mark.parametrize(
    ("network", "dataset"),
    [
        (LeNet5((1, 8, 8), 3), pictures()), (normalised(), table()), (Tied(), table()), (WithBuffer, table()),
        (MLP(6, 3).double(), table()), (nn.Sequential(nn.Linear(6, 3)).bfloat16(), table()), (Named(), table()),
    ],
)  # fmt: skip
def test_what_a_worker_sends_is_what_was_trained(network, dataset):
    """Whatever the type of a network, and however its weights are named."""
    here, there = (list(train_many(network, dataset, [0, 1], epochs=1, engine=one)) for one in (None, InProcess()))
    for one, other in zip(here, there, strict=True):
        assert same_run(one, other)
        assert (one.environment, one.loss, one.accuracy) == (other.environment, other.loss, other.accuracy)
        assert not any(module.training for module in other.network.modules())
        kinds = ([value.dtype for value in run.network.state_dict().values()] for run in (one, other))
        assert next(kinds) == next(kinds)
