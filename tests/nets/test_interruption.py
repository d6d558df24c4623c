"""Interrupted: training ends at once, whatever the caller is doing."""

import signal
import subprocess
import sys
import time

import pytest

from maxrr.nets import MLP, train_many
from tests.nets.problems import same_run, table

# Trains, and says so. In a caller's place, the first run is a short one, and the caller is busy with it for long.
TRAINING = """
import dataclasses, sys, time
from tests.nets.problems import table
from maxrr.nets import MLP, train_many
from maxrr.nets import runs as runs_cpu

busy, fit = sys.argv[1] == "busy", runs_cpu.fit

def first_is_short(network, records, recipe, seed, *others):
    return fit(network, records, recipe if seed else dataclasses.replace(recipe, epochs=1), seed, *others)

if busy:
    runs_cpu.fit = first_is_short
runs = train_many(MLP(6, 3), table(400), range(4), epochs=10**6)
print("ready", flush=True)
for run in runs:
    print("run", run.seed, flush=True)
    if busy:
        time.sleep(600)
"""


@pytest.mark.long
@pytest.mark.parametrize("manner", ["busy", "idle"])
def test_ctrl_c_ends_at_once(manner):
    """Whether the caller waits for a run, or is busy with another; what is under way would go on for hours."""
    # A pytest in the background of a shell ignores Ctrl-C, and so would what it starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", TRAINING, manner], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    signal.signal(signal.SIGINT, before)
    try:
        assert process.stdout.readline() == "ready\n"
        if manner == "busy":
            assert process.stdout.readline() == "run 0\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)  # threads stop before their next step, not hours later
        assert error.rstrip().endswith("KeyboardInterrupt")
        assert "Exception ignored" not in error
        assert process.returncode != 0
    finally:
        process.kill()
        process.communicate()


def test_it_goes_on_after_ctrl_c():
    """In the same process, as in a notebook."""
    calls = iter(range(3))

    def progress(what, done, total, **numbers):
        if next(calls, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(train_many(MLP(6, 3), table(400), range(2), epochs=30, progress=progress))
    one, other = (list(train_many(MLP(6, 3), table(400), range(2), epochs=1)) for _ in range(2))
    assert all(same_run(*pair) for pair in zip(one, other, strict=True))
