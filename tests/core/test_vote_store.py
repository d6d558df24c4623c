"""Votes in a folder: not mixed, not half there, not believed where they are damaged. Nothing is trained here."""

import dataclasses
import errno
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from maxrr.core import ranking
from maxrr.core.ranking import Votes, VoteStore, kind_of
from maxrr.files import arrays
from maxrr.nets import MLP, Recipe
from maxrr.nets.seeding import begin
from tests.nets.problems import normalised, table

KIND = {"layers": "some", "frozen": "", "recipe": {"epochs": 1}, "records": "0", "C": 1.0}
ONCE = Recipe(1)
VOTES = Votes(np.array([5, 128], dtype=np.uint8), 1e-15)


def store(folder, kind=KIND, count=9):
    return VoteStore(folder, kind, count)


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_votes_come_back(tmp_path):
    store(tmp_path / "new" / "folder").add(2**63, VOTES)
    again = store(tmp_path / "new" / "folder")
    assert (2**63 in again, 3 in again) == (True, False)
    assert again.get(2**63).packed.tobytes() == VOTES.packed.tobytes()
    assert again.get(2**63).gap == VOTES.gap
    assert names(again.folder) == ["runs.json", f"votes-{2**63}.npz"]
    assert json.loads((again.folder / "runs.json").read_text()) == KIND


@pytest.mark.parametrize("other", KIND)
def test_kinds_are_not_mixed(tmp_path, other):
    store(tmp_path).add(0, VOTES)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=f"other {other}:"):
        store(tmp_path, {**KIND, other: "another"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"recipe": 3}', b"\xff\xfe", b'{"C": 1.0, "C": 1.0}'])
def test_a_damaged_description(tmp_path, content):
    store(tmp_path)
    (tmp_path / "runs.json").write_bytes(content)
    with pytest.raises(ValueError, match=str(tmp_path)):
        store(tmp_path)


def test_damaged_votes_are_named(tmp_path):
    """Cut off anywhere, with any byte changed, of another seed or something else: named, or what they were."""
    held = store(tmp_path)
    held.add(3, VOTES)
    path = held.path(3)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    contents = [whole[:length] for length in (0, 1, 4, 30, len(whole) // 2, len(whole) - 30, len(whole) - 1)]
    for position in rng.integers(0, len(whole), 300).tolist():
        changed = bytearray(whole)
        changed[position] ^= int(rng.integers(1, 256))
        contents.append(bytes(changed))
    for content in [*contents, b"not an archive", whole + b"x"]:
        path.write_bytes(content)
        try:
            read = held.get(3)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017 - either is right
        else:
            assert (read.packed.tobytes(), read.gap) == (VOTES.packed.tobytes(), VOTES.gap)
    np.save(single := io.BytesIO(), np.zeros(3))
    alone = single.getvalue()
    for make in (lambda: path.write_bytes(alone), lambda: np.savez(path, a=np.zeros(3)),
                 lambda: np.savez(path, packed=np.zeros(3, dtype=np.uint8), gap=0.0, seed="3"),
                 lambda: path.write_bytes(whole) and os.replace(path, held.path(4))):  # fmt: skip
        make()
        with pytest.raises(ValueError, match="is damaged"):
            held.get(3 if path.exists() else 4)


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    store(tmp_path)
    (tmp_path / ".maxrr-0123456789abcdef.tmp").write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")
    store(tmp_path)
    assert names(tmp_path) == ["notes.txt", "runs.json"]


def test_a_full_disk(tmp_path, monkeypatch):
    """Nothing half-written is kept."""
    held, write = store(tmp_path), arrays.write_atomically

    def short_of_room(path, data, **options):
        def fill(file):
            file.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        write(path, fill, **options)

    monkeypatch.setattr(arrays, "write_atomically", short_of_room)
    with pytest.raises(OSError, match=r"votes-1\.npz") as caught:
        held.add(1, VOTES)
    assert caught.value.errno == errno.ENOSPC
    assert names(tmp_path) == ["runs.json"]
    monkeypatch.setattr(ranking, "write_atomically", short_of_room)
    with pytest.raises(OSError, match=r"runs\.json"):
        store(tmp_path / "another")
    assert names(tmp_path / "another") == []
    with pytest.raises(OSError, match="runs"):
        store(tmp_path / "runs.json")


def frozen(value):
    network = MLP(6, 3)
    network[1].requires_grad_(False)
    with torch.no_grad():
        network[1].weight.fill_(value), network[1].bias.fill_(value)
    return network


def with_statistics(value):
    torch.manual_seed(0)
    network = normalised()
    network[:2].requires_grad_(False)
    network[1].running_mean.fill_(value)
    return network


def kind(network=None, dataset=None, recipe=ONCE, C=1.0):
    return kind_of(begin(MLP(6, 3) if network is None else network, 0), table() if dataset is None else dataset,
                   recipe, C)  # fmt: skip


def test_what_makes_a_kind():
    """Weights that a seed draws do not, and what stays as it is given does."""
    changed = table()
    changed.inputs[3, 2] += 1e-6
    assert kind() == kind()
    assert kind(frozen(1.0)) == kind(frozen(1.0))
    assert kind(with_statistics(0.0)) == kind(with_statistics(0.0))
    others = [
        (kind(), kind(recipe=Recipe(2)), "recipe"), (kind(), kind(recipe=Recipe(1, lr=0.01)), "recipe"),
        (kind(), kind(MLP(6, 3, (7,))), "layers"), (kind(), kind(MLP(6, 3).double()), "layers"),
        (kind(), kind(torch.nn.Sequential(*MLP(6, 3))), "layers"), (kind(), kind(dataset=changed), "records"),
        (kind(), kind(dataset=table().without([3])), "records"), (kind(), kind(C=2.0), "C"),
        (kind(), kind(dataset=dataclasses.replace(table(), class_names=("a", "b", "c"))), "records"),
        (kind(frozen(1.0)), kind(frozen(2.0)), "frozen"),
        (kind(with_statistics(0.0)), kind(with_statistics(3.0)), "frozen"),
    ]  # fmt: skip
    for one, other, differs in others:
        assert [name for name in one if one[name] != other[name]] == [differs]


def test_another_process_is_kept_out(tmp_path):
    """The lock is what both have in common; whoever has it alone need not import PyTorch."""
    code = (
        "import sys; from maxrr.files import Lock\n"
        "held = Lock(sys.argv[1], of_process=True); print('in', flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "in\n"
        with pytest.raises(ValueError, match="another process"):
            store(tmp_path)
        other.communicate("\n")
    ours = store(tmp_path)
    refused = subprocess.run(command, input="\n", capture_output=True, text=True)
    assert (refused.stdout, "BlockingIOError" in refused.stderr) == ("", True)
    store(tmp_path)  # the same process may, say after an interrupted loop in a notebook
    del ours
