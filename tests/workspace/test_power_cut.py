"""A process is killed, or the power cut, before a request is acknowledged: whoever opens the workspace next finds the
state before it or after it, is told of no damage, and goes on.

One run of a request shows all that may be left: at each touch of the disk, what a killed process leaves (all that was
written) and what a power cut may (some of what was not flushed, in any order, or nothing of it).
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from maxrr.workspace import Workspace
from tests.cases import some, stride, thinned
from tests.workspace.disk import Disk, put
from tests.workspace.outside import (
    ACTS,
    KEY,
    differing,
    facts,
    forget,
    known_of,
    none_of,
    places,
    secrets_of,
    working,
)
from tests.workspace.problems import found
from tests.workspace.test_crash import ONE_THREAD

pytestmark = pytest.mark.usefixtures("no_waiting")


class Run:
    """What a request leaves behind at each touch of the disk."""

    def __init__(self, start, place, key, act):
        self.folder, self.key, self.trial = shutil.copytree(start, place / "workspace"), key, place / "trial"
        self.killed, self.lost, self.torn = [], [], []  # what is left, each with when
        disk = Disk(self.folder, lambda kind: self.touched(disk, kind))
        with Workspace.open(self.folder, signing_key=key) as workspace:
            known, self.old = known_of(workspace), facts(workspace)
            with disk.watched():
                act(workspace)
            self.acknowledged = disk.device()
            self.new, self.secrets = facts(workspace), secrets_of(known, known_of(workspace))

    def touched(self, disk, kind):
        when = f"at touch {len(self.killed)} ({kind})"
        self.killed.append((when, disk.cached()))
        self.lost.append((when, disk.device()))
        if kind == "flush":
            self.torn += [(f"{when}: {what}", left) for what, left in disk.torn(places)]

    def wrong(self, left, allowed=("old", "new")):
        """What is wrong with what was left, at one moment or another."""
        wrong, tried = [], []
        for when, contents in left:
            if contents in tried:
                continue
            tried.append(contents)
            seen = working(put(contents, self.folder, self.trial), self.key)
            states = {name for name in ("old", "new") if seen.facts == getattr(self, name)}
            if seen.told:
                wrong.append(f"{when}: {seen.told}")
            elif not states & {*allowed}:
                wrong.append(f"{when}: neither state, other {', '.join(differing(seen.facts, self.new))}")
            elif "new" in states and found(self.secrets, self.trial):
                wrong.append(f"{when}: still there: {found(self.secrets, self.trial)}")
            elif len(tried) % stride(8) == 0:
                wrong += [f"{when}: {why}" for why in self.going_on(seen.facts)]
        return wrong

    def going_on(self, before):
        with Workspace.open(self.trial, signing_key=self.key) as workspace:
            forget(workspace)
            after = facts(workspace)
        seen = working(self.trial, self.key)
        if seen.facts != after or after["requests"] != before["requests"] + 1:
            yield f"it does not go on: {seen.told}"


@pytest.fixture
def run(small, tmp_path, monkeypatch):
    def of(act, signed):
        key = KEY if signed else None
        made = Run(small(key), tmp_path, key, ACTS[act])
        monkeypatch.setenv("XDG_STATE_HOME", os.devnull)  # nobody remembers more than the folder does
        return made

    return of


CASES = some(3, [
    ("forget", True), ("shape", False), ("add", False),
    ("several", False), ("rectify", False), ("forget", False), ("shape", True), ("add", True), ("several", True),
])  # fmt: skip


@pytest.mark.parametrize(("act", "signed"), CASES)
def test_a_process_that_is_killed(run, act, signed):
    made = run(act, signed)
    assert len(made.killed) > 10
    none_of(made.wrong(thinned(4, made.killed)))


@pytest.mark.long
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, which makes the kernel kill it")
def test_a_process_that_is_killed_by_the_system(tmp_path):
    """As a check of the above: killed at any system call, and what it leaves is taken from the disk."""
    names = some(1, ["forget", "shape", "add"])
    done = subprocess.run(
        [sys.executable, "-m", "tests.workspace.killing", str(tmp_path / "place"), str(stride(6)), *names],
        cwd=Path(__file__).parents[2], env={**os.environ, **ONE_THREAD, "XDG_STATE_HOME": os.devnull},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for line in map(json.loads, done.stdout.splitlines()):
        none_of(line["wrong"])
        assert line["killed"] > line["counted"] > 0, line


@pytest.mark.parametrize(("act", "signed"), CASES)
def test_a_power_cut_that_loses_all_that_was_not_flushed(run, act, signed):
    """And none of what was acknowledged."""
    made = run(act, signed)
    none_of(made.wrong(thinned(4, made.lost)))
    none_of(made.wrong([("when it was acknowledged", made.acknowledged)], allowed=["new"]))


@pytest.mark.parametrize(("act", "signed"), CASES)
def test_a_power_cut_in_the_middle_of_a_write(run, act, signed):
    made = run(act, signed)
    assert made.torn
    none_of(made.wrong(thinned(2, made.torn)))
