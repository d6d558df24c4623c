"""Runs in a folder: not repeated, not mixed, not half there."""

import dataclasses
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from maxrr import files
from maxrr.nets import MLP, LeNet5, train_many
from maxrr.nets import run_store as stored
from maxrr.nets import runs as runs_cpu
from tests.nets.problems import Tied, WithBuffer, dropping, normalised, pictures, reordered, same_run, table


@pytest.fixture
def fitted(monkeypatch):
    """The seeds that were trained, rather than read."""
    seeds, fit = [], runs_cpu.fit

    def counting(network, records, recipe, seed, *others):
        seeds.append(seed)
        return fit(network, records, recipe, seed, *others)

    monkeypatch.setattr(runs_cpu, "fit", counting)
    return seeds


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def go(folder, seeds, network=None, dataset=None, epochs=1, **options):
    network, dataset = MLP(6, 3) if network is None else network, table() if dataset is None else dataset
    return list(train_many(network, dataset, seeds, epochs=epochs, folder=folder, **options))


def test_runs_on_the_disk_are_not_repeated(tmp_path, fitted):
    folder = tmp_path / "new" / "runs"
    first = go(folder, [3, 1])
    assert names(folder) == ["run-1.npz", "run-3.npz", "runs.json"]
    fitted.clear()
    runs = go(folder, [0, 1, 2, 3, 4], dataset=reordered(table()))
    assert sorted(fitted) == [0, 2, 4]
    assert [run.seed for run in runs] == [0, 1, 2, 3, 4]
    assert same_run(runs[3], first[0])
    assert same_run(runs[1], first[1])
    assert runs[1].environment == first[1].environment
    fitted.clear()
    again = go(str(folder), [4, 3, 2, 1, 0])
    assert not fitted
    assert all(same_run(*pair) for pair in zip(again, reversed(runs), strict=True))
    fresh = list(train_many(MLP(6, 3), table(), [0, 1, 2, 3, 4], epochs=1))
    assert all(same_run(*pair) for pair in zip(runs, fresh, strict=True))


@pytest.mark.parametrize(
    ("make", "dataset"),
    [
        (lambda: LeNet5((1, 8, 8), 3), pictures()), (normalised, table()), (Tied, table()), (WithBuffer, table()),
        (lambda: MLP(6, 3).double(), table()), (lambda: MLP(6, 3).bfloat16(), table()),
        (lambda: nn.Linear(6, 3), table()),
    ],
)  # fmt: skip
def test_what_is_read_is_what_was_trained(tmp_path, fitted, make, dataset):
    network = make()
    trained = go(tmp_path, [0, 1], network, dataset)
    read = go(tmp_path, [0, 1], network, dataset)
    assert sorted(fitted) == [0, 1]
    for one, other in zip(trained, read, strict=True):
        assert one.environment == other.environment
        assert (one.seed, one.loss, one.accuracy) == (other.seed, other.loss, other.accuracy)
        assert not any(module.training for module in other.network.modules())
        for ours, theirs in zip(one.network.state_dict().items(), other.network.state_dict().items(), strict=True):
            assert ours[0] == theirs[0]
            assert ours[1].dtype == theirs[1].dtype
            assert torch.equal(ours[1], theirs[1])


class Named(nn.Module):
    """Weights with names that mean something elsewhere, too."""

    def __init__(self):
        super().__init__()
        self.file, self.about = nn.Parameter(torch.empty(6, 3)), nn.Parameter(torch.empty(3))
        self.allow_pickle = nn.Parameter(torch.empty(3))
        self.reset_parameters()

    def reset_parameters(self):
        for weights in self.parameters():
            nn.init.normal_(weights)

    def forward(self, x):
        return x @ self.file + self.about + self.allow_pickle


def test_weights_may_have_any_names(tmp_path, fitted):
    assert same_run(*go(tmp_path, [0], Named()), *go(tmp_path, [0], Named()))
    assert fitted == [0]


def test_dropout_and_a_folder(tmp_path, fitted):
    with pytest.warns(UserWarning, match="one at a"):
        runs = go(tmp_path, [0, 1, 2], dropping())
    assert all(same_run(*pair) for pair in zip(go(tmp_path, [0, 1, 2], dropping()), runs, strict=True))
    assert fitted == [0, 1, 2]


def test_numbers_of_numpy_are_numbers(tmp_path, fitted):
    go(tmp_path, np.arange(2), epochs=np.int64(1), batch_size=np.int32(8), lr=np.float32(0.5))
    go(tmp_path, [0, 1], batch_size=8, lr=0.5)
    assert sorted(fitted) == [0, 1]


def test_a_run_is_on_the_disk_when_it_is_yielded(tmp_path):
    for run in train_many(MLP(6, 3), table(), [0, 1, 2], epochs=1, folder=tmp_path):
        assert f"run-{run.seed}.npz" in names(tmp_path)


def frozen(value):
    network = MLP(6, 3)
    network[1].requires_grad_(False)
    with torch.no_grad():
        network[1].weight.fill_(value), network[1].bias.fill_(value)
    return network


def test_frozen_weights_belong_to_the_kind(tmp_path, fitted):
    go(tmp_path, [0], frozen(1.0))
    go(tmp_path, [1, 0], frozen(1.0))
    assert sorted(fitted) == [0, 1]
    with pytest.raises(ValueError, match=r"other .*frozen"):
        go(tmp_path, [0], frozen(2.0))
    with pytest.raises(ValueError, match=r"other .*frozen"):
        go(tmp_path, [0], MLP(6, 3))


def test_running_statistics_of_frozen_layers_belong_to_the_kind(tmp_path):
    network = normalised()
    network[:2].requires_grad_(False)
    go(tmp_path, [0], network)
    network[1].running_mean.fill_(3.0)
    with pytest.raises(ValueError, match="holds runs"):
        go(tmp_path, [0], network)


changed = table()
changed.inputs[3, 2] += 1e-6


@pytest.mark.parametrize(
    ("others", "differs"),
    [
        ({"epochs": 2}, "recipe"),
        ({"lr": 0.01}, "recipe"),
        ({"batch_size": 8}, "recipe"),
        ({"network": MLP(6, 3, (7,))}, "layers"),
        ({"network": MLP(6, 4)}, "layers"),
        ({"network": MLP(6, 3).double()}, "layers"),
        ({"network": nn.Sequential(*MLP(6, 3))}, "layers"),
        ({"dataset": table().without([3])}, "records"),
        ({"dataset": changed}, "records"),
        ({"dataset": dataclasses.replace(table(), class_names=("a", "b", "c"))}, "records"),
    ],
)
def test_kinds_are_not_mixed(tmp_path, fitted, others, differs):
    go(tmp_path, [0])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=f"{tmp_path} holds runs"):
        go(tmp_path, [0, 1], **others)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert fitted == [0]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"recipe": 3}', b"\xff\xfe"])
def test_a_damaged_description(tmp_path, content):
    go(tmp_path, [0])
    (tmp_path / "runs.json").write_bytes(content)
    with pytest.raises(ValueError, match=str(tmp_path)):
        go(tmp_path, [0])


def test_damaged_runs_are_named(tmp_path):
    """Cut off anywhere, or with any byte changed: the run is named, or it is what it was."""
    (run,) = go(tmp_path, [3], MLP(6, 3, (2,)))
    path = tmp_path / "run-3.npz"
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    cut = [whole[:length] for length in (0, 1, 4, 30, len(whole) // 2, len(whole) - 30, len(whole) - 1)]
    other = []
    for position in rng.integers(0, len(whole), 300).tolist():
        other.append(bytearray(whole))
        other[-1][position] ^= int(rng.integers(1, 256))
    for content in [*cut, b"not an archive", whole + b"x", *map(bytes, other)]:
        path.write_bytes(content)
        try:
            (read,) = go(tmp_path, [3], MLP(6, 3, (2,)))
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017 - either is right
            assert "is repeated" in str(error)  # noqa: PT017
        else:
            assert same_run(read, run)


@pytest.mark.parametrize("make", [lambda file: np.save(file, np.zeros(3)), lambda file: np.savez(file, a=np.zeros(3))])
def test_files_that_are_no_runs(tmp_path, make):
    go(tmp_path, [3])
    with open(tmp_path / "run-3.npz", "wb") as file:
        make(file)
    with pytest.raises(ValueError, match=r"run-3.npz is damaged.*delete"):
        go(tmp_path, [3])


def test_a_run_of_another_seed(tmp_path):
    go(tmp_path, [0])
    os.replace(tmp_path / "run-0.npz", tmp_path / "run-1.npz")
    with pytest.raises(ValueError, match=r"run-1.npz is damaged.*seed"):
        go(tmp_path, [1])


def test_deleting_a_damaged_run_repeats_it(tmp_path):
    runs = go(tmp_path, [0, 1])
    (tmp_path / "run-1.npz").write_bytes(b"")
    with pytest.raises(ValueError, match="delete it"):
        go(tmp_path, [0, 1])
    (tmp_path / "run-1.npz").unlink()
    assert all(same_run(*pair) for pair in zip(go(tmp_path, [0, 1]), runs, strict=True))


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    go(tmp_path, [0])
    (tmp_path / ".maxrr-0123456789abcdef.tmp").write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")
    go(tmp_path, [0])
    assert names(tmp_path) == ["notes.txt", "run-0.npz", "runs.json"]


def test_a_full_disk(tmp_path, monkeypatch, fitted):
    """Nothing half-written is kept, whole runs are, and it goes on once there is room."""
    whole = go(tmp_path / "undisturbed", [0, 1, 2, 3])
    folder, write, count = tmp_path / "runs", files.write_atomically, iter(range(100))

    def short_of_room(path, data):
        if path.name.startswith("run-") and next(count) >= 2:

            def fill(file):
                file.write(data[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            return write(path, fill)
        return write(path, data)

    monkeypatch.setattr(stored, "write_atomically", short_of_room)
    with pytest.raises(OSError, match="No space left") as caught:
        go(folder, [0, 1, 2, 3], workers=1)
    assert caught.value.errno == errno.ENOSPC
    assert "run-2.npz" in str(caught.value)
    assert names(folder) == ["run-0.npz", "run-1.npz", "runs.json"]
    monkeypatch.setattr(stored, "write_atomically", write)
    fitted.clear()
    assert all(same_run(*pair) for pair in zip(go(folder, [0, 1, 2, 3]), whole, strict=True))
    assert sorted(fitted) == [2, 3]


def test_no_room_for_the_description(tmp_path, monkeypatch):
    def full(path, data):
        raise OSError(errno.ENOSPC, "No space left on the disk", str(path))

    monkeypatch.setattr(stored, "write_atomically", full)
    with pytest.raises(OSError, match=r"runs\.json"):
        go(tmp_path / "runs", [0])
    assert names(tmp_path / "runs") == []


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(OSError, match="runs"):
        go(tmp_path / "runs", [0])


def test_the_description_is_readable(tmp_path):
    go(tmp_path, [0], batch_size=8)
    described = json.loads((tmp_path / "runs.json").read_text())
    assert described["recipe"] == {"epochs": 1, "batch_size": 8, "lr": 0.001}
    assert described["records"] == table().content_hash()


def test_progress_counts_what_was_there(tmp_path):
    go(tmp_path, [0, 1])
    calls = []
    go(tmp_path, [0, 1, 2], progress=lambda what, done, total, **numbers: calls.append((done, total)))
    assert calls[0] == (100, 150)
    assert calls[-1] == (150, 150)
    calls.clear()
    go(tmp_path, [0, 1, 2], progress=lambda what, done, total, **numbers: calls.append((done, total)))
    assert calls == [(150, 150)]


def test_another_process_is_kept_out(tmp_path: Path) -> None:
    """The lock is what both have in common; whoever has it alone need not import PyTorch."""
    code = (
        "import sys; from maxrr.files import Lock\n"
        "held = Lock(sys.argv[1], of_process=True); print('in', flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / ".lock")]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == "in\n"
        with pytest.raises(ValueError, match="process is training"):
            stored.RunStore(tmp_path, {})
        other.communicate("\n")
    ours = stored.RunStore(tmp_path, {})
    refused = subprocess.run(command, input="\n", capture_output=True, text=True)
    assert (refused.stdout, "BlockingIOError" in refused.stderr) == ("", True)
    stored.RunStore(tmp_path, {})  # the same process may, say after an interrupted loop in a notebook
    del ours
