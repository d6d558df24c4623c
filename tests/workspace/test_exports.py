"""What was exported is noted, and known to be out of date once the model or its records are others."""

import copy
import os
import shutil
import threading

import pytest

from maxrr import MaxRR
from maxrr.errors import OlderCopy
from maxrr.serving import export
from maxrr.workspace import Workspace, WorkspaceError, overview
from tests.unlearning.problems import table, table_model
from tests.workspace.problems import found, given, history_in, kinds, needles


def flags(exports):
    return [(each.out_of_date, each.revoked, each.replaced) for each in exports]


@pytest.fixture
def workspace(folder):
    with Workspace.open(folder) as opened:
        yield opened


def test_an_export_is_noted_with_when_what_and_where(workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = workspace._keeper.note_export("onnx", "model.onnx", workspace.model)
    (noted,) = workspace.exports()
    assert (noted.id, noted.kind, noted.path, noted.requests) == (name, "onnx", str(tmp_path / "model.onnx"), 0)
    assert noted.time.endswith("+00:00")
    assert flags([noted]) == [(False, False, False)]
    assert overview(workspace.folder).status.exports == [noted]
    assert workspace.status().exports == [noted]


@pytest.mark.parametrize("whose", [1, 2], ids=["influential", "free"])
def test_forgetting_revokes_what_was_exported_before(workspace, whose):
    """A free record, too: the probabilities were fitted on it."""
    workspace._keeper.note_export("serving", "a", workspace.model)
    old = copy.deepcopy(workspace.model)
    workspace.model.unlearn(kinds(workspace.model)[whose][:1])
    workspace._keeper.note_export("serving", "b", workspace.model)
    workspace._keeper.note_export("serving", "c", old)  # made of a state that had passed by then
    by_path = {os.path.basename(each.path): each for each in workspace.exports()}
    assert flags(by_path[name] for name in "abc") == [(True, True, False), (False, False, False), (True, True, False)]
    assert sorted(map(str, overview(workspace.folder).status.exports)) == sorted(map(str, workspace.exports()))


def test_another_fit_puts_it_out_of_date_and_revokes_nothing(workspace, records):
    workspace._keeper.note_export("serving", "a", workspace.model)
    workspace.model.fit(records.select(records.ids[:70]))
    assert flags(workspace.exports()) == [(True, False, False)]


def test_a_request_for_what_was_forgotten_before_revokes_nothing(workspace):
    gone = kinds(workspace.model)[2][:1]
    workspace.model.unlearn(gone)
    workspace._keeper.note_export("serving", "a", workspace.model)
    workspace.model.unlearn(gone)
    assert flags(workspace.exports()) == [(False, False, False)]


def test_training_again_without_a_record_that_the_extractor_had_kept_revokes(workspace, records):
    gone = kinds(workspace.model)[0][:1]
    workspace.model.unlearn(gone, core_policy="keep-extractor")
    workspace._keeper.note_export("serving", "a", workspace.model)
    receipt = given(workspace, records).model.unlearn(gone, core_policy="retrain")
    assert (receipt.guarantee, receipt.tombstones) == ("exact-retrain", [])
    workspace._keeper.note_export("serving", "b", workspace.model)
    assert flags(workspace.exports()) == [(True, True, False), (False, False, False)]
    assert overview(workspace.folder).status.exports == workspace.exports()


def test_nothing_is_noted_in_a_folder_that_was_put_in_place_of_this_one(workspace, tmp_path):
    shutil.copytree(workspace.folder, tmp_path / "copy")
    shutil.rmtree(workspace.folder)
    shutil.copytree(tmp_path / "copy", workspace.folder)
    with pytest.raises(OlderCopy, match="was replaced while somebody worked in it"):
        workspace._keeper.note_export("onnx", "model.onnx", workspace.model)
    assert history_in(workspace.folder).read_bytes() == history_in(tmp_path / "copy").read_bytes()


def test_the_last_export_to_a_place_replaces_the_one_before(workspace):
    first = workspace._keeper.note_export("serving", "a", workspace.model)
    workspace._keeper.note_export("onnx", "a", workspace.model)
    workspace._keeper.note_export("serving", "a", workspace.model)
    assert [each.id for each in workspace.exports() if each.replaced] == [first]


def test_a_snapshot_notes_an_export_once_nobody_works_there(workspace, monkeypatch):
    """Only one at a time writes to the history."""
    monkeypatch.setattr("maxrr.workspace.folder.PATIENCE", 0.0)
    with Workspace.open(workspace.folder, read_only=True) as reader:
        with pytest.raises(WorkspaceError, match="another process works"):
            reader._keeper.note_export("onnx", "model.onnx", reader.model)
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
        workspace.close()
        name = reader._keeper.note_export("onnx", "model.onnx", reader.model)
        assert [(each.id, each.requests) for each in reader.exports()] == [(name, 0)]
    with Workspace.open(workspace.folder) as again:
        assert flags(again.exports()) == [(True, True, False)]
        again.model.unlearn(kinds(again.model)[2][:1])  # which goes on from the note


def test_a_snapshot_notes_nothing_behind_an_end_that_is_not_whole(workspace, monkeypatch):
    """It may be damage, of which a note would leave nothing but the loss."""
    monkeypatch.setenv("XDG_STATE_HOME", os.devnull)  # where nobody remembers
    with Workspace.open(workspace.folder, read_only=True) as reader:
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
        workspace.close()
        path = history_in(workspace.folder)
        written = path.read_bytes()
        for content in (written[:-1], written[:-1] + bytes([written[-1] ^ 1])):
            path.write_bytes(content)
            with pytest.raises(WorkspaceError, match=r"history-.* (is not whole|is damaged).* Nothing was changed"):
                reader._keeper.note_export("onnx", "model.onnx", reader.model)
            assert path.read_bytes() == content


def test_a_note_that_was_changed_is_damage(workspace):
    """It changes no row and no file, by which a request that is missing is noticed."""
    workspace._keeper.note_export("onnx", "model.onnx", workspace.model)
    workspace.close()
    path = history_in(workspace.folder)
    content = path.read_bytes()
    for place in (-1, -33, -60):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(WorkspaceError, match=r"history-.* is damaged"):
            Workspace.open(workspace.folder)


def test_a_snapshot_waits_for_one_who_works(workspace):
    with Workspace.open(workspace.folder, read_only=True) as reader:
        threading.Timer(0.5, workspace.close).start()
        name = reader._keeper.note_export("onnx", "model.onnx", reader.model)
    assert [each.id for each in overview(workspace.folder).status.exports] == [name]


def test_a_note_tells_nothing_about_what_is_forgotten(workspace, records):
    id_ = kinds(workspace.model)[1][0].item()
    wanted = needles(workspace.model, records, id_)
    plain = workspace.model.model_hash_, workspace.model.content_hash_
    workspace._keeper.note_export("onnx", "model.onnx", workspace.model)
    workspace.model.unlearn([id_])
    assert found(wanted, workspace.folder) == set()
    history = history_in(workspace.folder).read_bytes()
    assert not any(each.encode() in history for each in plain)


def test_the_place_of_an_export_is_not_in_clear(workspace, tmp_path):
    workspace._keeper.note_export("onnx", tmp_path / "miller.onnx", workspace.model)
    assert found({"path": b"miller"}, workspace.folder) == set()
    assert workspace.exports()[0].path == str(tmp_path / "miller.onnx")


def test_a_snapshot_learns_of_exports_that_others_noted(workspace):
    workspace.close()
    with (
        Workspace.open(workspace.folder, read_only=True) as one,
        Workspace.open(workspace.folder, read_only=True) as other,
    ):
        name = other._keeper.note_export("onnx", "model.onnx", other.model)
        assert one.exports() == []
        assert one.reload()
        assert [each.id for each in one.exports()] == [name]


@pytest.mark.parametrize("of", ["workspace", "model"])
def test_an_export_of_the_live_model_is_noted_like_one_of_the_workspace(tmp_path, of):
    with Workspace.create(tmp_path / "ws", MaxRR.on_features(), table()) as workspace:
        made = export(workspace if of == "workspace" else workspace.model, tmp_path / "served")
        assert [each.id for each in workspace.exports()] == [made.export]


def test_a_model_from_elsewhere_is_refused(workspace):
    with pytest.raises(ValueError, match="of this workspace"):
        workspace._keeper.note_export("onnx", "model.onnx", table_model())
    assert workspace.exports() == []


def test_a_place_is_the_same_however_it_is_written(workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    paths = ["real/model", "link/model", "real/../real/model", "./real/model/", str(tmp_path / "link" / "model")]
    for path in paths:
        workspace._keeper.note_export("serving", path, workspace.model)
    found = workspace.exports()
    assert {each.path for each in found} == {str(tmp_path / "real" / "model")}
    assert [each.replaced for each in found] == [True] * (len(paths) - 1) + [False]


def test_a_link_that_is_exported_to_is_a_place_of_its_own(workspace, tmp_path):
    """It is replaced, and not the file that it leads to."""
    (tmp_path / "link.onnx").symlink_to("model.onnx")
    for name in ("model.onnx", "link.onnx"):
        workspace._keeper.note_export("onnx", tmp_path / name, workspace.model)
    assert [each.replaced for each in workspace.exports()] == [False, False]
