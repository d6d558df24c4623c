"""Several who use one workspace: a second one who would work, readers beside one who works or where nobody may write,
forked processes. None needs to know how the workspace is kept."""

import os
import shutil
import warnings

import pytest

from maxrr.workspace import Workspace, WorkspaceError
from tests.cases import stride
from tests.workspace.disk import CHANGES, READ_ONLY, Disk, fails, files_below, put
from tests.workspace.outside import (
    ACTS,
    RECORDS,
    facts,
    forget,
    known_of,
    looked,
    none_of,
    secrets_of,
    several,
)
from tests.workspace.problems import found, holds
from tests.workspace.test_threads import forked

pytestmark = pytest.mark.usefixtures("no_waiting")


@pytest.fixture
def folder(small, tmp_path):
    return shutil.copytree(small(None), tmp_path / "workspace")


def contents(folder):
    return {path: path.read_bytes() for path in files_below(folder)}


def snapshot(folder):
    """What a reader sees."""
    with Workspace.open(folder, read_only=True) as workspace:
        return facts(workspace)


def test_a_second_writer_is_refused_and_takes_nothing_from_the_first(folder):
    with Workspace.open(folder) as workspace:
        before = contents(folder)
        for _ in range(2):
            with pytest.raises(WorkspaceError):
                Workspace.open(folder)
        assert contents(folder) == before
        forget(workspace)
        after = facts(workspace)
    with Workspace.open(folder) as workspace:
        assert facts(workspace) == after


@pytest.mark.parametrize("act", ["several", "shape"])
def test_readers_beside_one_who_works_find_the_state_before_or_after(folder, act):
    """At each touch of the disk."""
    seen, count = [], 0

    def look(_):
        nonlocal count
        count += 1
        if count % stride(3) == 0:
            seen.append(snapshot(folder))

    with Workspace.open(folder) as workspace:
        old = facts(workspace)
        with Disk(folder, look).watched():
            ACTS[act](workspace)
        new = facts(workspace)
    assert all(each in (old, new) for each in seen)
    states = [each == new for each in seen]
    assert states == sorted(states)
    assert {True, False} == set(states)


def test_a_reader_needs_no_leave_to_write(folder):
    with Workspace.open(folder) as workspace:
        several(workspace)
        after = facts(workspace)
    before = contents(folder)
    with Disk(folder, fails(READ_ONLY, CHANGES, 1, lasting=True)).watched():
        assert snapshot(folder) == after
    assert contents(folder) == before


@pytest.mark.parametrize("act", ["forget", "shape"])
def test_a_reader_who_may_not_write_beside_what_was_interrupted(folder, tmp_path, monkeypatch, act):
    """It finds one of the two states, or is told that somebody else must open it; what was forgotten is not there
    without a word."""
    left, wrong = [], []
    with Workspace.open(folder) as workspace:
        old, known = facts(workspace), known_of(workspace)
        disk = Disk(folder, lambda _: left.append(disk.cached()))
        with disk.watched():
            ACTS[act](workspace)
        new, secrets = facts(workspace), secrets_of(known, known_of(workspace))
    monkeypatch.setenv("XDG_STATE_HOME", os.devnull)  # nobody remembers more than the folder does
    for at, killed in enumerate(left):
        trial = put(killed, folder, tmp_path / "trial")
        before = contents(trial)
        with (
            Disk(trial, fails(READ_ONLY, CHANGES, 1, lasting=True)).watched(),
            warnings.catch_warnings(record=True) as words,
        ):
            warnings.simplefilter("always")
            seen = looked(lambda trial=trial: snapshot(trial))
        told = seen.told or any("still on the disk" in str(each.message) for each in words)
        if contents(trial) != before:
            wrong.append(f"touch {at}: it has written")
        if not seen.told and seen.facts not in (old, new):
            wrong.append(f"touch {at}: neither state")
        if not told and seen.facts == new and found(secrets, trial):
            wrong.append(f"touch {at}: still there, without a word: {found(secrets, trial)}")
    none_of(wrong)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_sees_the_state_and_changes_nothing(folder):
    with Workspace.open(folder) as workspace:
        before, model = contents(folder), workspace.model.model_hash_

        def work():
            said = 0
            for act in (forget, several):
                try:
                    act(workspace)
                except WorkspaceError:
                    said += 1
            return said, workspace.model.model_hash_, holds(workspace, RECORDS.ids).tolist()

        assert forked(work) == (2, model, holds(workspace, RECORDS.ids).tolist())
        assert contents(folder) == before
        forget(workspace)  # the parent holds what it held
        with pytest.raises(WorkspaceError):
            Workspace.open(folder)
    assert snapshot(folder)["requests"] == 2
