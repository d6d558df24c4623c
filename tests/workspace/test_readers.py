"""Readers beside one who appends: at every touch of the disk they find a committed state, and try once."""

from unittest import mock

import pytest

from maxrr.evidence import SigningKey
from maxrr.workspace import Commit, Workspace, overview, states
from maxrr.workspace.folder import Folder
from maxrr.workspace.rows import Rows
from tests.workspace.faults import Points
from tests.workspace.problems import facts, kinds, together

KEY = SigningKey.generate()
ACTS = {
    "one": lambda workspace, free: workspace.model.unlearn(free[2:3]),
    "each": lambda workspace, free: together(workspace, [free[2:3], free[3:5]]),
}


@pytest.mark.parametrize("act", ACTS)
def test_at_every_touch_of_the_disk_there_is_one_of_two_states(folder, records, act):
    seen, looking = [], False

    def look(_):
        nonlocal looking
        if looking:
            return
        looking = True
        with Workspace.open(folder, read_only=True) as reader:
            seen.append(facts(reader, records))
            assert overview(folder).status.requests == Commit.last(folder).requests == reader.status().requests
        looking = False

    with Workspace.open(folder, signing_key=KEY) as workspace:
        free = kinds(workspace.model)[2]
        workspace.model.unlearn(free[:1])
        old = facts(workspace, records)
        with Points(1, look, lasting=True).patched(), mock.patch("maxrr.workspace.folder.TRIES", 1):
            ACTS[act](workspace, free)
        new = facts(workspace, records)
    states = [each == new for each in seen]
    assert all(each in (old, new) for each in seen)
    assert states == sorted(states)
    assert {True, False} == set(states)


def test_what_is_committed_while_the_rows_are_read_does_no_harm(folder, records):
    """The history is read again after them, and says which of them may have been erased meanwhile."""
    with Workspace.open(folder, signing_key=KEY) as workspace:
        free = kinds(workspace.model)[2]
        workspace.model.unlearn(free[:1])
        real = Rows.content

        def busy(rows, *args, **options):
            """Half of the rows as they were before two requests, half as they are after."""
            before = real(rows, *args, **options)
            workspace.model.unlearn(free[1:2])
            together(workspace, free[2:6])
            after = real(rows, *args, **options)
            return before[: len(before) // 2] + after[len(before) // 2 :]

        with mock.patch.object(Rows, "content", busy), mock.patch("maxrr.workspace.folder.TRIES", 1):
            reader = Workspace.open(folder, read_only=True)
        assert reader.status().requests == 6
        assert facts(reader, records) == facts(workspace, records)


def test_a_snapshot_stays_and_reloads(folder, records):
    with Workspace.open(folder) as workspace:
        free = kinds(workspace.model)[2]
        reader = Workspace.open(folder, read_only=True)
        before = facts(reader, records)
        assert not reader.reload()
        for each in range(3):
            workspace.model.unlearn(free[each : each + 1])
        assert (facts(reader, records), list(reader.receipts())) == (before, [])
        assert reader.reload()
        assert facts(reader, records) == facts(workspace, records)
        assert reader._store.stored.last.state == workspace._store.stored.last.state == 4
        assert not reader.reload()


def test_nobody_asks_for_the_lock_beside_one_who_works(folder):
    with Workspace.open(folder, signing_key=KEY) as workspace:
        free = kinds(workspace.model)[2]
        for each in range(3):
            workspace.model.unlearn(free[each : each + 1])
            with mock.patch.object(Folder, "enter", side_effect=AssertionError):
                Workspace.open(folder, read_only=True).close()


def test_the_last_commit_is_read_again_where_another_has_replaced_its_files(folder):
    with Workspace.open(folder) as workspace:
        influential, read = kinds(workspace.model)[1], states.frames_in

        def commits_meanwhile(path):
            frames = read(path)
            if workspace.status().requests == 0:
                workspace.model.unlearn(influential[:1])
            return frames

        with mock.patch.object(states, "frames_in", commits_meanwhile):
            assert Commit.last(folder).requests == 1
