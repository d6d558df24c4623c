"""An older copy in the place of a workspace is said to be one, on every opening, until it has caught up.

What it refuses until then: test_older_copies.py.
"""

import json
import os
import shutil
import stat
import warnings

import pytest

from maxrr.workspace import OlderCopyWarning, Workspace, older_copies
from tests.workspace.problems import copied, kinds, lacking
from tests.workspace.test_threads import Load


@pytest.fixture
def restored(folder, tmp_path):
    """A workspace with three requests, replaced by a copy from after the first."""
    with Workspace.open(folder) as workspace:
        free = kinds(workspace.model)[2]
        workspace.model.unlearn(free[:1])
        copied(folder, tmp_path / "copy")
        for each in (1, 2):
            workspace.model.unlearn(free[each : each + 1])
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "copy", folder)
    return folder


def said(folder, **options):
    """What is said on opening it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()  # as in a program that set no filters
        warnings.simplefilter("always", OlderCopyWarning, append=True)
        with Workspace.open(folder, **options) as workspace:
            older = lacking(workspace)
    return older, [str(each.message) for each in caught if each.category is OlderCopyWarning]


@pytest.mark.parametrize("read_only", [True, False])
def test_an_older_copy_is_said_to_be_one_every_time(restored, read_only):
    for _ in range(3):
        older, (words,) = said(restored, read_only=read_only)
        assert older == 2
        assert "2 requests" in words
        assert "may be back" in words
        assert "number 2" in words


def test_a_fit_that_is_undone_is_told(folder, tmp_path, records):
    shutil.copytree(folder, tmp_path / "copy")
    with Workspace.open(folder) as workspace:
        workspace.model.fit(records)
    older, (words,) = said(tmp_path / "copy")
    assert (older, "was fitted again after it was made" in words) == (0, True)


def test_who_follows_in_order_hears_nothing(folder):
    for _ in range(3):
        assert said(folder) == (0, [])
        with Workspace.open(folder) as workspace:
            workspace.model.unlearn(kinds(workspace.model)[2][:1])


def test_what_is_kept_names_nobody_and_is_private(folder):
    with Workspace.open(folder) as workspace:
        receipt = workspace.model.unlearn(kinds(workspace.model)[2][:1])
        token = workspace._store.token
    path, lock = sorted(older_copies.place().iterdir())
    assert (path.name, lock.name, lock.read_bytes()) == (f"{token}.json", f"{token}.lock", b"")
    assert json.loads(path.read_text()) == {
        "last_loss": "",
        "receipts": 1,
        "state": 2,
        "root": "",
        "last": receipt.digest,
    }
    if os.name != "nt":
        assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"state": "9", "receipts": 4}',
        b'{"receipts": 4, "last_loss": 9}',
        b'{"receipts": 4, "last_loss": "yesterday"}',
        b"[" * 900,
        b"1" * 5000,
    ],
)
def test_what_cannot_be_read_is_as_nothing(folder, content):
    with Workspace.open(folder) as workspace:
        path = older_copies.place() / f"{workspace._store.token}.json"
    path.write_bytes(content)
    assert said(folder) == (0, [])
    assert json.loads(path.read_text()) == {"last_loss": "", "receipts": 0, "state": 1, "root": "", "last": ""}


@pytest.mark.parametrize("where", ["file", "pipe", "relative", "nul"])
def test_where_nothing_can_be_kept_nothing_fails(folder, tmp_path, monkeypatch, where):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    place = {"file": tmp_path / "file", "pipe": tmp_path / "pipes", "relative": "here", "nul": "/dev/null"}[where]
    monkeypatch.setenv("XDG_STATE_HOME", str(place))
    if where == "pipe":
        older_copies.place().mkdir(parents=True)
        with Workspace.open(folder) as workspace:
            path = older_copies.place() / f"{workspace._store.token}.json"
        path.unlink()
        os.mkfifo(path)
    with Workspace.open(folder) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
        assert lacking(workspace) == 0
    if where == "relative":
        assert (tmp_path / "home" / ".local" / "state" / "maxrr" / "seen").is_dir()


def test_readers_beside_somebody_who_goes_on_are_not_told_so(folder):
    """What they have read is older than what the other does next, and no older copy."""

    def read():
        with Workspace.open(folder, read_only=True, wait=60.0) as workspace:
            return lacking(workspace)

    with Load(read, read, read) as load:
        for _ in range(12):
            with Workspace.open(folder, wait=60.0) as workspace:
                workspace.model.unlearn(kinds(workspace.model)[2][:1])
    assert (load.wrong, set(load.seen)) == ([], {0})
