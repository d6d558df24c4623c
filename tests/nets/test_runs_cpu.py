"""Many runs are the runs that one would have trained alone."""

import threading
import time

import numpy as np
import pytest
import torch
from torch import nn

from maxrr.nets import MLP, LeNet5, embed, split, train, train_many
from maxrr.nets import runs as runs_cpu
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


@pytest.mark.parametrize("workers", [1, 2, 3, None])
@pytest.mark.parametrize("make", [lambda: MLP(6, 3, (300, 100)), normalised])
def test_the_same_bytes_as_alone_in_the_order_of_the_seeds(make, workers):
    """The first network is large enough for drawing its weights to take a while, beside runs that are under way."""
    network, dataset = make(), table()
    runs = list(train_many(network, reordered(dataset), iter(SEEDS), epochs=2, batch_size=8, workers=workers))
    expected = alone(network, dataset, epochs=2, batch_size=8)
    assert [run.seed for run in runs] == SEEDS
    assert all(same_run(*pair) for pair in zip(runs, expected, strict=True))
    assert all(run.environment.threads == 1 for run in runs)


def test_each_run_may_go_without_records_of_its_own(tmp_path):
    dataset = reordered(table())
    left_out = [dataset.ids[:7], dataset.ids[20:27], dataset.ids[43:]]
    runs = list(train_many(MLP(6, 3), dataset, SEEDS[:3], epochs=2, batch_size=8, without=left_out, folder=tmp_path))
    for seed, ids, run in zip(SEEDS, left_out, runs, strict=False):
        assert same_run(run, train(MLP(6, 3), dataset.without(ids), seed, epochs=2, batch_size=8, threads=1))
    with pytest.raises(ValueError, match="other without"):
        train_many(MLP(6, 3), dataset, SEEDS[:3], epochs=2, batch_size=8, without=left_out[::-1], folder=tmp_path)


@pytest.mark.parametrize(
    ("network", "dataset"),
    [(LeNet5((1, 8, 8)), digits(200)), (ResNet(), pictures()), (Tied(), table()), (WithBuffer, table())],
)
def test_other_networks(network, dataset):
    runs = list(train_many(network, dataset, SEEDS[:3], epochs=1, batch_size=16, workers=2))
    expected = alone(network, dataset, SEEDS[:3], epochs=1, batch_size=16)
    assert all(same_run(*pair) for pair in zip(runs, expected, strict=True))


@pytest.mark.parametrize("workers", [1, 2])
def test_dropout_goes_one_at_a_time(workers):
    network, dataset = dropping(), table()
    before = torch.get_rng_state()
    under_way = train_many(network, dataset, SEEDS, epochs=3, batch_size=8, workers=workers)
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


def test_the_caller_may_use_pytorch_meanwhile():
    """Its threads, its random numbers, and embedding the run just finished change nothing."""
    network, dataset = MLP(64, 10, (256,)), digits()
    torch.set_num_threads(2)
    state, runs = torch.get_rng_state(), []
    for run in train_many(network, dataset, range(5), epochs=2, workers=2):
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


def test_no_seeds_no_runs(tmp_path):
    assert list(train_many(MLP(6, 3), table(), [])) == []
    assert list(train_many(MLP(6, 3), table(), [], folder=tmp_path / "runs")) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": [1, 2, 1]}, "asked for twice"),
        ({"seeds": [1, np.int64(1)]}, "asked for twice"),
        ({"seeds": [0, 1, -1]}, "a seed is a whole number from 0 upwards, not -1"),
        ({"seeds": [0.5]}, "a seed is a whole number from 0 upwards, not 0.5"),
        ({"seeds": ["3"]}, "a seed is a whole number from 0 upwards, not '3'"),
        ({"workers": 0}, "one worker or more"),
        ({"epochs": 0}, "one epoch or more"),
        ({"device": "meta"}, "'cpu' or 'cuda'"),
        ({"without": [[1], [2]]}, "one list per seed"),
        ({"without": [[1], [2, 3]], "seeds": [0, 1]}, "as many for each"),
        ({"without": [[1000]]}, "no record has id 1000"),
    ],
)
def test_bad_requests_are_refused_at_once(options, message, tmp_path):
    """Before anything is trained, and before a folder is made."""
    with pytest.raises(ValueError, match=message):
        train_many(MLP(6, 3), table(), **{"seeds": [0], "folder": tmp_path / "runs"} | options)
    assert not (tmp_path / "runs").exists()


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
        list(train_many(MLP(6, 3), table(), range(500), epochs=20, lr=1e30, workers=2))
    assert time.monotonic() - begun < 20.0  # 500 of them take minutes
    assert not pool_threads()


def test_closing_stops_the_workers():
    """A million epochs of what is under way would take far longer than the seconds allowed here."""
    before = torch.get_num_threads()
    network = MLP(64, 10)
    runs = train_many(network, digits(), range(50), epochs=1, workers=2)
    next(runs)
    runs.close()
    assert not pool_threads()
    stopper = iter([0])

    def progress(what, done, total, **numbers):
        if done and next(stopper, None) is None:
            raise RuntimeError("enough")

    endless = train_many(network, digits(), range(50), epochs=10**6, workers=2, progress=progress)
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
    runs = train_many(MLP(6, 3), table(), range(40), epochs=1, workers=2)
    for taken in range(1, 4):
        next(runs)
        time.sleep(0.2)
        assert len(fitted) <= taken + 2 * 2
    runs.close()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_progress(workers, monkeypatch):
    monkeypatch.setattr(runs_cpu, "GLANCE", 0.01)
    calls = []
    runs = list(
        train_many(
            MLP(6, 3), table(70), SEEDS, epochs=4, batch_size=4, workers=workers,
            progress=lambda *position, **numbers: calls.append((*position, numbers)),
        )
    )  # fmt: skip
    done = [call[1] for call in calls]
    assert {(what, total) for what, _, total, _ in calls} == {("training 5 networks", 5 * 4 * 70)}
    assert done == sorted(set(done))
    assert done[-1] == 5 * 4 * 70
    assert calls[-1][3]["loss"] == pytest.approx(np.mean([run.loss for run in runs]))
    assert calls[-1][3]["accuracy"] == pytest.approx(np.mean([run.accuracy for run in runs]))


def test_a_network_of_an_unusual_type():
    run, _ = train_many(nn.Sequential(nn.Linear(6, 3)).bfloat16(), table(), [0, 1], epochs=1)
    assert run.network[0].weight.dtype == torch.bfloat16
