"""A ranking in a folder: not repeated, not mixed, killed at any moment, and no network is ever written."""

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
from maxrr.nets import Recipe
from maxrr.nets import runs as runs_cpu
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
    kill_at(tmp_path, ".lock", "votes-*.npz")
    voted = {path: path.stat().st_mtime_ns for path in tmp_path.glob("votes-*.npz")}
    assert voted
    (tmp_path / ".maxrr-0123456789abcdef.tmp").write_bytes(b"what a kill while writing leaves")
    assert same(go(tmp_path), undisturbed)
    assert names(tmp_path) == ALL
    assert all(path.stat().st_mtime_ns == written for path, written in voted.items())  # not repeated
    assert not {f"votes-{seed}.npz" for seed in fitted} & {path.name for path in voted}


def test_runs_with_votes_are_read_and_only_the_others_are_trained(tmp_path, fitted, undisturbed):
    votes = stored.VoteStore(tmp_path, stored.kind_of(begin(network(), 0), records(), RECIPE, C), len(records()))
    for row, seed in list(zip(undisturbed.votes, SEEDS, strict=True))[:-1]:
        votes.add(seed, stored.Votes(row, undisturbed.worst_gap))
    told = []
    found = go(tmp_path, progress=lambda *now, **numbers: told.append((*now, numbers)))
    assert fitted == [SEEDS[-1]]
    assert same(found, undisturbed)
    assert names(tmp_path) == ALL
    each = (RECIPE.epochs + 1) * len(records())
    assert told[0] == ("ranking by 4 runs", 3 * each, 4 * each, {"solved": 3})
    assert told[-1][:3] == ("ranking by 4 runs", 4 * each, 4 * each)

    # In any order; and the folder is for this kind of run only.
    fitted.clear()
    reversed_rows = go(str(tmp_path), SEEDS[::-1])
    assert not fitted
    assert np.array_equal(reversed_rows.votes, undisturbed.votes[::-1])
    for change, differs in [({"C": 0.25}, "C"), ({"recipe": Recipe(epochs=21, batch_size=32, lr=1e-2)}, "recipe")]:
        with pytest.raises(ValueError, match=f"other {differs}:"):
            go(tmp_path, **change)


def test_an_error_keeps_what_was_done_and_stops_the_rest(tmp_path, monkeypatch):
    """A full disk, say. Votes that were written stay."""
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
    assert names(tmp_path) == ["runs.json", f"votes-{SEEDS[0]}.npz"]
    del caught
