"""Killed, interrupted, started again: every run is whole or absent, and none is lost that was finished."""

import signal
import subprocess
import sys
import time

import pytest

from maxrr.nets import MLP, train_many
from tests.nets.problems import same_run, table

SEEDS, EPOCHS = range(4), 30
ALL = [*(f"run-{seed}.npz" for seed in SEEDS), "runs.json"]

# Trains, and says so. In a caller's place, the first run is a short one, and the caller is busy with it for long.
TRAINING = """
import dataclasses, sys, time
from tests.nets.problems import table
from maxrr.nets import MLP, train_many
from maxrr.nets import runs as runs_cpu

folder, epochs, busy = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "busy"
fit = runs_cpu.fit

def first_is_short(network, records, recipe, seed, *others):
    return fit(network, records, recipe if seed else dataclasses.replace(recipe, epochs=1), seed, *others)

if busy:
    runs_cpu.fit = first_is_short
runs = train_many(MLP(6, 3), table(400), range(4), epochs=epochs, workers=2, folder=folder)
print("ready", flush=True)
for run in runs:
    print("run", run.seed, flush=True)
    if busy:
        time.sleep(600)
"""


@pytest.fixture
def start(tmp_path):
    """Starts a process that trains into a folder; what is left of it at the end of the test is killed."""
    processes = []

    def begin(epochs, manner):
        command = [sys.executable, "-W", "error", "-c", TRAINING, str(tmp_path), str(epochs), manner]
        # A pytest in the background of a shell ignores Ctrl-C, and so would what it starts.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        signal.signal(signal.SIGINT, before)
        processes.append(process)
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def go_on(folder, epochs=EPOCHS):
    """The runs, from where they stopped; they must be those that were never disturbed."""
    runs = list(train_many(MLP(6, 3), table(400), SEEDS, epochs=epochs, folder=folder))
    undisturbed = list(train_many(MLP(6, 3), table(400), SEEDS, epochs=epochs))
    assert names(folder) == ALL
    assert all(same_run(*pair) for pair in zip(runs, undisturbed, strict=True))


@pytest.mark.long
def test_kill_9_loses_at_most_the_runs_under_way(tmp_path, start):
    process = start(EPOCHS, "idle")
    end = time.monotonic() + 60.0
    while not any(tmp_path.glob("run-*.npz")) and time.monotonic() < end:
        time.sleep(0.002)
    process.kill()
    process.wait()
    there = {path: path.stat().st_mtime_ns for path in tmp_path.glob("run-*.npz")}
    assert there
    (tmp_path / ".maxrr-0123456789abcdef.tmp").write_bytes(b"what a kill while writing leaves")
    go_on(tmp_path)
    assert all(path.stat().st_mtime_ns == written for path, written in there.items())  # not repeated


@pytest.mark.long
@pytest.mark.parametrize("manner", ["busy", "idle"])
def test_ctrl_c_ends_at_once(tmp_path, start, manner):
    """Whether the caller waits for a run, or is busy with another; what is under way would go on for hours."""
    process = start(10**6, manner)
    if manner == "busy":
        assert process.stdout.readline() == "run 0\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=120)  # threads stop before their next step, not hours later
    assert error.rstrip().endswith("KeyboardInterrupt")
    assert "Exception ignored" not in error
    assert process.returncode != 0
    assert names(tmp_path) == (["run-0.npz", "runs.json"] if manner == "busy" else ["runs.json"])


def test_it_goes_on_after_ctrl_c(tmp_path):
    """In the same process, as in a notebook."""
    calls = iter(range(3))

    def progress(what, done, total, **numbers):
        if next(calls, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(train_many(MLP(6, 3), table(400), SEEDS, epochs=EPOCHS, folder=tmp_path, progress=progress, workers=1))
    assert set(names(tmp_path)) < set(ALL)
    go_on(tmp_path)
