"""What forgetting costs on the disk: a fixed number of fsyncs, and the bytes of the forgotten rows."""

import os

import numpy as np
import pytest

from maxrr.core import Frozen
from maxrr.data import Dataset
from maxrr.workspace import Workspace
from tests.unlearning.problems import fresh
from tests.workspace.problems import contents, kinds, together, wide

FSYNCS = 2  # the history; the rows


def apart(count):
    """A table whose classes hardly overlap."""
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 2
    features = rng.normal(size=(count, 5)) + 6.0 * labels[:, None]
    return Dataset(features.astype(np.float32), labels, ("no", "yes"), np.arange(count) + 700_000_000)


@pytest.mark.parametrize("count", [100, 1_000, 10_000])
def test_an_untouched_request_costs_the_same_however_many_records(tmp_path, monkeypatch, count):
    records = apart(count)
    with Workspace.create(tmp_path / "workspace", fresh(Frozen(), records, wide), records) as workspace:
        free = kinds(workspace.model)[2]
        workspace.model.unlearn(free[:1])
        fsyncs, written = [], []
        for name, calls in (("fsync", fsyncs), ("replace", written)):
            real = getattr(os, name)
            monkeypatch.setattr(os, name, lambda *args, real=real, calls=calls: (calls.append(args), real(*args))[1])
        (rows,) = workspace.folder.glob("rows-*.bin")
        before, inode = contents(workspace.folder), rows.stat().st_ino
        gone = free[[3, 5, 6]]
        places = workspace.model._fitted.records.rows(gone).tolist()
        assert workspace.model.unlearn(gone, core_policy="keep-extractor").guarantee == "exact-untouched"
        after = contents(workspace.folder)
    assert len(fsyncs) == FSYNCS
    assert len([to for _, to in written if to.is_relative_to(tmp_path)]) == 0
    assert rows.stat().st_ino == inode
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert {name.split("-")[0] for name in changed} == {"history", "rows"}
    assert all(after[name].startswith(before[name]) for name in changed if name.startswith("history"))
    assert len(before[rows.name]) == len(after[rows.name])
    size = len(after[rows.name]) // count
    differ = np.flatnonzero(np.frombuffer(before[rows.name], np.uint8) != np.frombuffer(after[rows.name], np.uint8))
    assert set((differ // size).tolist()) == set(places)
    for row in places:
        assert after[rows.name][row * size : (row + 1) * size] == bytes(size)


def test_a_part_that_did_not_change_is_not_written_again(workspace, records):
    before = contents(workspace.folder)
    workspace.model.unlearn(kinds(workspace.model)[1][:1])  # influential: the head changes
    after = contents(workspace.folder)
    gone = {name.split("-")[0] for name in before.keys() - after.keys()}
    assert gone == {"heads"}


def test_replacing_adds_one_row_to_the_file(workspace, records):
    (rows,) = workspace.folder.glob("rows-*.bin")
    inode, size = rows.stat().st_ino, rows.stat().st_size
    workspace.model.replace(kinds(workspace.model)[2][0].item(), np.ones(5))
    assert rows.stat().st_ino == inode
    assert rows.stat().st_size == size + size // len(records)


def test_moving_the_heads_costs_four_flushes_more(workspace, monkeypatch):
    """The new heads and their name; zeros over the old heads, and the folder that they are deleted from."""
    _, influential, free = kinds(workspace.model)
    workspace.model.unlearn(free[:1])
    fsyncs, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (fsyncs.append(descriptor), fsync(descriptor)))
    assert workspace.model.unlearn(influential[:1]).guarantee == "exact-refit"
    assert len(fsyncs) == FSYNCS + 4


@pytest.mark.parametrize(("kind", "act"), [(2, "unlearn"), (2, "batch"), (1, "unlearn"), (1, "batch")])
def test_an_extractor_of_any_size_costs_a_request_nothing(workspace, monkeypatch, kind, act):
    """Its weights are not even asked for, neither to be hashed nor to be written; nor are those of heads that stay."""

    def never(*_, **__):
        raise AssertionError("asked for the weights")

    _, _, free = groups = kinds(workspace.model)
    workspace.model.unlearn(free[-1:])
    monkeypatch.setattr(type(workspace.model._fitted.extractor), "state_dict", never)
    if kind == 2:
        monkeypatch.setattr("maxrr.workspace.codec.heads_bytes", never)
        monkeypatch.setattr("maxrr.workspace.store.facts_of", never)
    workspace.model.unlearn(groups[kind][:1]) if act == "unlearn" else together(workspace, groups[kind][:1])
    assert workspace.status().requests == 2
