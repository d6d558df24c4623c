"""A backup is one state of the workspace, whatever goes on meanwhile; it knows what it is, and catches up."""

import shutil
import threading
import warnings
from unittest import mock

import pytest

from maxrr.errors import FolderTaken, NotAWorkspace, OlderCopy
from maxrr.workspace import OlderCopyWarning, Workspace, backup, check_receipt_log, overview
from maxrr.workspace.names import UNFINISHED
from maxrr.workspace.rows import Rows
from tests.workspace.outside import differing, facts, forget, known_of, secrets_of
from tests.workspace.problems import contents, forgotten_but_here, found, history_in


@pytest.fixture
def folder(small, key, tmp_path):
    return shutil.copytree(small(key), tmp_path / "workspace")


def quietly(folder, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OlderCopyWarning)
        return Workspace.open(folder, **options)


def state_of(folder):
    with quietly(folder, read_only=True) as workspace:
        return facts(workspace)


def test_it_is_the_same_workspace_and_says_that_it_is_a_copy(folder, key, tmp_path):
    before = state_of(folder)
    with Workspace.open(folder, read_only=True) as workspace:
        workspace.backup(tmp_path / "copy")
    assert differing(state_of(tmp_path / "copy"), before) == []
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "copy", history_in(tmp_path / "copy")))
    if key is not None:
        check_receipt_log(tmp_path / "copy", [key.public])
    for look in (lambda place: Workspace.open(place, signing_key=key).close(), overview):
        with pytest.warns(OlderCopyWarning, match=r"copy is a backup, made on .* catch-up"):
            look(tmp_path / "copy")
    with quietly(tmp_path / "copy", signing_key=key) as workspace:
        for act in (
            forget,
            lambda workspace: workspace._keeper.note_export("onnx", tmp_path / "x.onnx", workspace.model),
        ):
            with pytest.raises(OlderCopy, match="is a backup"):
                act(workspace)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OlderCopyWarning)
        Workspace.open(folder).close()  # which is none


@pytest.mark.parametrize("requests", [0, 3])
def test_it_catches_up_with_what_was_forgotten_since(folder, key, tmp_path, requests):
    backup(folder, tmp_path / "copy")
    with Workspace.open(folder, signing_key=key) as workspace:
        known = known_of(workspace)
        for _ in range(requests):
            forget(workspace)
        secrets = secrets_of(known, known_of(workspace))
    with quietly(tmp_path / "copy", signing_key=key) as workspace:
        assert (workspace.catch_up(folder) is None) == (requests == 0)
        assert forgotten_but_here(workspace) == 0
        forget(workspace)
    assert found(secrets, tmp_path / "copy") == set()
    with warnings.catch_warnings():
        warnings.simplefilter("error", OlderCopyWarning)
        Workspace.open(tmp_path / "copy").close()


def test_it_goes_on_where_the_workspace_is_lost(folder, key, tmp_path, monkeypatch):
    backup(folder, tmp_path / "copy")
    shutil.rmtree(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    with quietly(tmp_path / "copy", signing_key=key) as workspace:
        receipt = workspace.declare_gone("the disk is broken")
        (loss,) = receipt.losses  # nobody here knows whether there were others
        assert loss.kept == loss.entries == receipt.number - 1
        forget(workspace)
    with Workspace.open(tmp_path / "copy", signing_key=key) as workspace:
        forget(workspace)


@pytest.mark.parametrize("later", [0, 1])
def test_where_the_workspace_was_at_work_here_only_what_was_seen_later_is_lost(folder, key, tmp_path, later):
    """A backup of the last state goes on with the same log."""
    with Workspace.open(folder, signing_key=key) as workspace:
        forget(workspace)
        backup(folder, tmp_path / "copy")
        for _ in range(later):
            forget(workspace)
    shutil.rmtree(folder)
    quietly(tmp_path / "copy", read_only=True).close()  # that it was looked at shows nothing
    with quietly(tmp_path / "copy", signing_key=key) as workspace:
        receipt = workspace.declare_gone("the disk is broken")
        lost = [loss.entries - loss.kept for loss in receipt.losses or ()]
        assert lost == ([later] if later else [])
        forget(workspace)
    if key is not None:
        assert check_receipt_log(tmp_path / "copy", [key.public]).checkpoint.size == receipt.number + 1


@pytest.mark.parametrize("key", ["signed"], indirect=True)
def test_what_another_machine_signed_is_not_known_here(folder, key, tmp_path, monkeypatch):
    """Somebody who only looked at the workspace cannot tell that nothing came after it."""
    with Workspace.open(folder, signing_key=key) as workspace:
        forget(workspace)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    Workspace.open(folder, read_only=True).close()
    backup(folder, tmp_path / "copy")
    with quietly(tmp_path / "copy", signing_key=key) as workspace:
        assert len(workspace.declare_gone("the disk is broken").losses) == 1


def test_it_is_made_while_requests_are_carried_out(folder, key, tmp_path):
    """Each copy is one of the states that there were, and holds nothing that it has forgotten."""
    states, stop = [], threading.Event()
    with Workspace.open(folder, signing_key=key) as workspace:
        states.append(facts(workspace))
        known = known_of(workspace)

        def work():
            while not stop.is_set() and len(states) < 25:
                forget(workspace)
                states.append(facts(workspace))

        thread = threading.Thread(target=work)
        thread.start()
        copies = []
        while thread.is_alive() and len(copies) < 8:
            copies.append(tmp_path / f"copy {len(copies)}")
            backup(folder, copies[-1])
        stop.set()
        thread.join()
    assert len(copies) > 1
    for copy in copies:
        assert state_of(copy) in states
        with quietly(copy, read_only=True) as reader:
            gone = secrets_of(known, known_of(reader))
        assert found(gone, copy) == set()


def test_a_row_that_is_erased_while_it_is_copied_is_not_in_the_copy(folder, key, tmp_path):
    real = Rows.content
    with Workspace.open(folder, signing_key=key) as workspace:
        known = known_of(workspace)

        def busy(rows, *args, **options):
            content = real(rows, *args, **options)
            forget(workspace)
            return content

        with mock.patch.object(Rows, "content", busy):
            backup(folder, tmp_path / "copy")
        secrets = secrets_of(known, known_of(workspace))
        assert state_of(tmp_path / "copy") == facts(workspace)
    assert secrets
    assert found(secrets, tmp_path / "copy") == set()


def test_it_is_not_made_over_anything(folder, tmp_path):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "thesis.tex").write_text("mine")
    for place in (tmp_path / "copy", folder):
        before = contents(place)
        with pytest.raises(FolderTaken):
            backup(folder, place)
        assert contents(place) == before
    with pytest.raises(NotAWorkspace):
        backup(tmp_path / "copy", tmp_path / "another")
    assert not (tmp_path / "another").exists()


def test_it_is_made_of_a_copy_and_not_of_a_map(folder, tmp_path):
    """What others erase in the file after it was checked would be erased in a map of it, too."""
    real, mapped = Rows.content, []

    def noted(rows, place, *, may_map=True):
        mapped.append(may_map)
        return real(rows, place, may_map=may_map)

    with mock.patch.object(Rows, "content", noted):
        backup(folder, tmp_path / "copy")
    assert mapped == [False]


def test_one_whose_end_is_missing_is_a_backup_all_the_same(folder, key, tmp_path):
    """Its first line says so, not its last frame, which may have been cut off."""
    with Workspace.open(folder, signing_key=key) as workspace:
        workspace._keeper.note_export("onnx", tmp_path / "x.onnx", workspace.model)  # whose loss nothing else tells
    backup(folder, tmp_path / "copy")
    path = history_in(tmp_path / "copy")
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.warns(OlderCopyWarning, match="is a backup"):
        workspace = Workspace.open(tmp_path / "copy", signing_key=key)
    with workspace, pytest.raises(OlderCopy, match="is a backup"):
        forget(workspace)


def test_one_that_was_killed_says_so_and_is_finished_by_another(folder, key, tmp_path):
    with (
        mock.patch("maxrr.workspace.copies.flush_folder", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        backup(folder, tmp_path / "copy")
    with pytest.raises(NotAWorkspace):
        Workspace.open(tmp_path / "copy")
    with Workspace.open(folder, signing_key=key) as workspace:
        forget(workspace)
        now = facts(workspace)
    backup(folder, tmp_path / "copy")
    assert differing(state_of(tmp_path / "copy"), now) == []
    assert contents(tmp_path / "copy").keys() - {".lock"} == contents(folder).keys() - {".lock"}
    with pytest.raises(FolderTaken):
        backup(folder, tmp_path / "copy")
    (tmp_path / "copy" / UNFINISHED).touch()  # killed just before its end: it is whole, and may have been worked in
    with pytest.raises(FolderTaken):
        backup(folder, tmp_path / "copy")
