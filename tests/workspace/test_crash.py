"""A process is killed at touches of the disk: what is there afterwards is the old state or the new, and purged."""

import json
import os
import subprocess
import sys
from pathlib import Path

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SCENARIOS = (
    "create", "fit again", "untouched", "refit", "retrain", "replace", "add", "finish", "each",
    "each free", "retrain in shards", "keep in shards", "untouched unsigned", "refit unsigned",
)  # fmt: skip


def killed_everywhere(place, scenarios, stride=1):
    """How often a process was killed in each scenario; whatever is wrong afterwards ends it with an error."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.workspace.crashing", str(place), str(stride), *scenarios],
        cwd=Path(__file__).parents[2], env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return {line["scenario"]: line for line in map(json.loads, done.stdout.splitlines())}


def test_any_point_of_a_request_leaves_the_old_state_or_the_new(tmp_path):
    """One with all kinds of files, and several that only erase, by one commit. `tests/long` has the others, and does
    not leave out five points of six."""
    check_killed(killed_everywhere(tmp_path / "place", ("refit", "each free"), stride=6))


def check_killed(found):
    for name, line in found.items():
        assert line["killed"] >= line["counted"] > 0, name  # also between the commit and the end of the purge
        assert name == "finish" or line["counted"] < line["killed"], name
