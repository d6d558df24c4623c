"""A ranking in a folder: not repeated, not mixed, killed at any moment, and no network is left behind."""

import contextlib
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from maxrr.core import rank, ranking
from maxrr.core import ranking as stored
from maxrr.nets import MLP, Recipe, train
from maxrr.nets import runs as runs_cpu
from maxrr.nets.run_store import RunStore, kind_of
from maxrr.nets.seeding import begin
from maxrr.svm import Certificate
from maxrr.svm.influence import Influence
from tests.core.problems import RECIPE, SEEDS, C, network, records, same

ALL = sorted([*(f"votes-{seed}.npz" for seed in SEEDS), "runs.json"])

# Ranks into a folder in one process after another, each killed as soon as there is a file of the kind it is given. They
# are forked, to import PyTorch once, with what its optimisers import when they are first used.
KILLED = """
import os, signal, sys, time
from pathlib import Path
import torch._dynamo
from tests.core.problems import C, RECIPE, SEEDS, network, records
from maxrr.core import rank, ranking

records()
for pattern in sys.argv[2:]:
    child = os.fork()
    if child == 0:
        rank(network(), records(), SEEDS, C=C, recipe=RECIPE, device="cpu", folder=sys.argv[1])
        os._exit(0)
    while not any(Path(sys.argv[1]).glob(pattern)) and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


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


def go(folder, seeds=SEEDS, **change):
    arguments = {"network": network(), "dataset": records(), "C": C, "recipe": RECIPE, "device": "cpu", **change}
    return rank(arguments.pop("network"), arguments.pop("dataset"), seeds, folder=folder, **arguments)


def finished(folder, seeds):
    """Trained, and killed before anything was marked."""
    runs = RunStore(folder, {**kind_of(begin(network(), 0), records(), RECIPE), "C": C})
    for seed in seeds:
        runs.add(train(network(), records(), seed, device="cpu", **RECIPE.facts))


def kill_at(folder, *patterns):
    """Kill -9 whoever is ranking, when there is such a file; and at the end what they had started."""
    command = [sys.executable, "-W", "error", "-c", KILLED, str(folder), *patterns]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        assert process.wait(timeout=120) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.long
def test_kill_9_again_and_again_gives_the_same_ranking(tmp_path, fitted, undisturbed):
    kill_at(tmp_path, ".lock", "run-*.npz", "votes-*.npz")
    voted = {path: path.stat().st_mtime_ns for path in tmp_path.glob("votes-*.npz")}
    trained = {path.name for path in tmp_path.glob("run-*.npz")}
    (tmp_path / ".maxrr-0123456789abcdef.tmp").write_bytes(b"what a kill while writing leaves")
    assert same(go(tmp_path), undisturbed)
    assert names(tmp_path) == ALL
    assert all(path.stat().st_mtime_ns == written for path, written in voted.items())  # not repeated
    assert not {f"votes-{seed}.npz" for seed in fitted} & {path.name for path in voted}
    assert not {f"run-{seed}.npz" for seed in fitted} & trained


@pytest.mark.long
def test_networks_on_the_disk_are_used_and_deleted_with_their_votes_written_first(
    tmp_path, fitted, undisturbed, monkeypatch
):  # fmt: skip
    finished(tmp_path, [*SEEDS[:2], 77])  # the last one for nobody
    fitted.clear()
    add = stored.VoteStore.add

    def watched(voted, seed, votes):
        assert (tmp_path / f"run-{seed}.npz").exists()
        add(voted, seed, votes)
        assert (tmp_path / f"votes-{seed}.npz").exists()
        assert not (tmp_path / f"run-{seed}.npz").exists()

    monkeypatch.setattr(stored.VoteStore, "add", watched)
    assert same(go(tmp_path, SEEDS), undisturbed)
    assert sorted(fitted) == sorted(SEEDS[2:])
    assert names(tmp_path) == ALL
    fitted.clear()

    # Runs with votes are read, in any order and for any of them; a network that a kill left beside its votes goes.
    (tmp_path / f"run-{SEEDS[0]}.npz").write_bytes(b"killed before it was deleted")
    seen = []
    reversed_rows = go(str(tmp_path), SEEDS[::-1], progress=lambda *now, **numbers: seen.append((*now, numbers)))
    assert not fitted
    assert names(tmp_path) == ALL
    assert np.array_equal(reversed_rows.votes, undisturbed.votes[::-1])
    assert reversed_rows.worst_gap == undisturbed.worst_gap
    units = len(SEEDS) * (RECIPE.epochs + 1) * len(records())
    assert seen == [("ranking by 4 runs", units, units, {"solved": 4})]

    # The folder is for this kind of run only.
    other = records().without(records().ids[:1])
    for change, message in [
        ({"C": 0.25}, "other C:"), ({"recipe": Recipe(epochs=21, batch_size=32, lr=1e-2)}, "other recipe:"),
        ({"network": MLP(64, 10, hidden=(17,))}, "other weights and layers:"), ({"dataset": other}, "other records:"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            go(tmp_path, **change)
    assert names(tmp_path) == ALL

    # What is damaged is not believed.
    path, another = (tmp_path / f"votes-{seed}.npz" for seed in SEEDS[:2])
    whole = path.read_bytes()
    for content in (whole[:-30], b"", whole.replace(bytes([whole[100]]), b"\xff", 1), another.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{path.name} is damaged"):
            go(tmp_path)
    np.savez(path, packed=np.zeros(3, dtype=np.uint8), gap=0.0, seed=np.str_(SEEDS[0]))
    with pytest.raises(ValueError, match="those of 200"):
        go(tmp_path)


def test_an_error_keeps_what_was_done_and_stops_the_rest(tmp_path, monkeypatch):
    """A full disk, say. Votes that were written stay, and so does the network of those that were not."""
    add, ended = stored.VoteStore.add, []

    def full(voted, seed, votes):
        if seed == SEEDS[1]:
            raise OSError("disk full")
        add(voted, seed, votes)

    def solved(runs, y, **options):
        try:
            for _ in runs:
                yield Influence(
                    np.ones(len(y), dtype=bool),
                    (Certificate(True, 0.0, 0.0, 0.0, 0.0, 1.0, 1, 1),),
                    np.zeros((1, 1)),
                    np.zeros(1),
                )
        finally:
            ended.append(True)

    monkeypatch.setattr(stored.VoteStore, "add", full)
    monkeypatch.setattr(ranking, "influential_in", solved)
    with pytest.raises(OSError, match="disk full") as caught:  # holds on to whatever was going on
        go(tmp_path)
    assert ended
    assert not any(thread.name.startswith("ThreadPoolExecutor") for thread in threading.enumerate())
    assert {f"votes-{SEEDS[0]}.npz", f"run-{SEEDS[1]}.npz"} <= set(names(tmp_path))
    del caught
