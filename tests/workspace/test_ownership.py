"""Nothing is deleted, written over or followed that the workspace did not write; others cannot write to it."""

import json
import os
import stat
from unittest import mock

import pytest
from sklearn.base import clone

from maxrr.core import FrequencyCore
from maxrr.workspace import Workspace, WorkspaceError
from maxrr.workspace.ownership import Marker
from tests.unlearning.problems import fresh
from tests.workspace.problems import HASHED, NEW, cases, contents, copied, kinds, like, reopened

MINE = (
    "notes.txt",
    "receipts/2023.json",
    "ranking-7/thesis.tex",
    "rows-2024.bin",
    "heads-0123456789abcdef.safetensors",
    "tombstones-0123456789abcdef.bin",
    ".lock",
)


@pytest.mark.parametrize("name", MINE)
def test_a_folder_with_anything_in_it_is_refused(tmp_path, records, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(WorkspaceError, match=r"holds other files, such as .* new or empty. Nothing was changed"):
        Workspace.create(tmp_path, fresh(HASHED, records), records)
    assert contents(tmp_path) == {name: b"mine"}


def test_a_lost_root_is_not_fitted_over(folder, records):
    with Workspace.open(folder) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
    (folder / "workspace.json").unlink()
    before = contents(folder)
    for act in (Workspace.open, lambda folder: Workspace.create(folder, fresh(HASHED, records), records)):
        with pytest.raises(WorkspaceError, match=r"workspace\.json is damaged: it is missing, and with"):
            act(folder)
    assert contents(folder) == before


def test_a_marker_that_cannot_be_read_is_not_written_over(tmp_path, records):
    (tmp_path / ".maxrr").write_text("{}")
    with pytest.raises(WorkspaceError, match=r"\.maxrr is damaged"):
        Workspace.create(tmp_path, fresh(HASHED, records), records)
    assert contents(tmp_path) == {".maxrr": b"{}"}


def test_an_interrupted_first_fit_can_be_repeated_with_what_it_left(tmp_path, records):
    """And what it left is not taken for the whole: a stranger's file beside it is refused."""

    def stop(*_, solved=0, **__):
        if solved:
            raise KeyboardInterrupt

    model = fresh(FrequencyCore(40, runs=2), records, epochs=1)
    with pytest.raises(KeyboardInterrupt):
        Workspace.create(tmp_path / "ws", model, records, progress=stop)
    token = json.loads((tmp_path / "ws" / ".maxrr").read_text())["token"]
    for name in (f"heads-{token}-0123456789abcdef.safetensors", ".maxrr-0123456789abcdef.tmp"):
        (tmp_path / "ws" / name).write_text("half")
    (tmp_path / "ws" / "thesis.tex").write_text("mine")
    with pytest.raises(WorkspaceError, match=r"such as thesis\.tex"):
        Workspace.create(tmp_path / "ws", model, records)
    (tmp_path / "ws" / "thesis.tex").unlink()
    with Workspace.create(tmp_path / "ws", model, records) as workspace:
        assert workspace._store.token == token
    assert not [name for name in contents(tmp_path / "ws") if "half" in name or name.startswith("ranking")]
    assert Marker.read(tmp_path / "ws") == Marker(token, committed=True)


def test_a_copy_without_hidden_files_is_a_workspace(folder, records):
    before = reopened(folder, records)
    for name in (".maxrr", ".lock", ".turnstile"):
        (folder / name).unlink()
    assert reopened(folder, records) == before
    assert Marker.read(folder).committed


def test_files_of_another_workspace_stay(template, tmp_path):
    """Put there by hand: they carry another token."""
    folder = copied(template("hash"), tmp_path / "workspace")
    others = {f".other/{name}": content for name, content in contents(template("hash, words")).items()}
    strangers = {name.split("/")[1]: content for name, content in others.items() if "-" in name}
    for name, content in strangers.items():
        (folder / name).write_bytes(content)
    with Workspace.open(folder) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[1][:1])
    assert {name: contents(folder)[name] for name in strangers} == strangers


# Receipts


def test_a_receipt_that_is_there_already_is_not_written_over(workspace, records):
    path = workspace.receipt_path(1)
    path.parent.mkdir()
    path.write_text("mine")
    before = contents(workspace.folder)
    _, influential, free = kinds(workspace.model)
    for act in (lambda: workspace.model.unlearn(influential[:1]), lambda: workspace.model.replace(free[0].item(), NEW)):
        with pytest.raises(WorkspaceError, match=r"(000001\.json is there already|older copy).* Nothing was changed"):
            act()
    assert contents(workspace.folder) == before
    path.unlink()
    workspace.close()
    with Workspace.open(workspace.folder) as workspace:
        assert workspace.model.unlearn(influential[:1]).number == 1


def test_nothing_uncommitted_is_among_the_receipts(workspace):
    path = workspace.receipt_path(1)
    _, influential, _ = kinds(workspace.model)
    with (
        mock.patch("maxrr.workspace.commits.Root.write", side_effect=OSError(5, "broken")),
        pytest.raises(OSError, match="broken"),
    ):
        workspace.model.unlearn(influential[:1])
    assert not path.exists()
    assert not list(workspace.folder.glob("receipt-*"))


def test_a_receipt_that_was_not_handed_out_is_when_the_folder_is_next_opened(folder, records):
    with Workspace.open(folder) as workspace:
        broken = mock.patch("maxrr.workspace.receipt_copies.write", side_effect=OSError(5, "broken"))
        with broken, pytest.warns(UserWarning, match="failed"):
            receipt = workspace.model.unlearn(kinds(workspace.model)[2][:1])
        assert workspace.unfinished
        assert [each.to_json() for each in workspace.receipts()] == [receipt.to_json()]
        path = folder / "receipts" / "000001.json"
        assert not path.exists()
    with Workspace.open(folder, read_only=True) as workspace:
        assert [each.to_json() for each in workspace.receipts()] == [receipt.to_json()]
        assert not path.exists()
    with Workspace.open(folder) as workspace:
        assert path.read_text() == receipt.to_json()
        assert workspace.unfinished == ""


@pytest.mark.parametrize("name", ["receipts", "ranking"])
def test_links_in_place_of_folders_are_not_followed(folder, tmp_path, records, name):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "000001.json").write_text("mine")
    token = Marker.read(folder).token
    (folder / (name if name == "receipts" else f"ranking-{token}-1")).symlink_to(tmp_path / "elsewhere")
    for read_only in (False, True):
        with pytest.raises(WorkspaceError, match="is damaged: it is a link to somewhere else"):
            Workspace.open(folder, read_only=read_only)
    assert contents(tmp_path / "elsewhere") == {"000001.json": b"mine"}


@pytest.mark.parametrize("name", ["receipts", "ranking"])
def test_links_that_come_while_it_is_open_are_not_followed_either(workspace, tmp_path, records, name):
    (tmp_path / "elsewhere").mkdir()
    (workspace.folder / (name if name == "receipts" else workspace._store.ranking().name)).symlink_to(
        tmp_path / "elsewhere"
    )
    free = kinds(workspace.model)[2]
    ranked = fresh(FrequencyCore(40, runs=2), records, epochs=1)
    act = {
        "receipts": lambda: workspace.model.unlearn(free[:1]),
        "ranking": lambda: like(workspace, ranked).fit(records),
    }[name]
    with pytest.raises(WorkspaceError, match="it is a link to somewhere else"):
        act()
    assert contents(tmp_path / "elsewhere") == {}


def test_an_old_ranking_that_is_a_link_is_only_unlinked(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.tex").write_text("mine")
    (folder / f"ranking-{Marker.read(folder).token}-0").symlink_to(tmp_path / "elsewhere")
    (folder / f"heads-{Marker.read(folder).token}-0123456789abcdef.safetensors").symlink_to(
        tmp_path / "elsewhere" / "thesis.tex"
    )
    Workspace.open(folder).close()
    assert contents(tmp_path / "elsewhere") == {"thesis.tex": b"mine"}
    assert not [path for path in folder.iterdir() if path.is_symlink()]


# Who may write to it


@pytest.mark.skipif(os.name == "nt", reason="has no such modes")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o720])
def test_a_folder_that_others_can_write_to_is_refused(folder, mode):
    before = contents(folder)
    folder.chmod(mode)
    for read_only in (False, True):
        with pytest.raises(WorkspaceError, match=r"others can write to .* chmod go-w"):
            Workspace.open(folder, read_only=read_only)
    assert contents(folder) == before
    folder.chmod(0o755)
    Workspace.open(folder).close()


@pytest.mark.skipif(os.name == "nt", reason="has no such modes")
def test_an_empty_folder_that_is_taken_over_is_made_private(tmp_path, records):
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws").chmod(0o777)
    Workspace.create(tmp_path / "ws", fresh(HASHED, records, epochs=1), records).close()
    assert stat.S_IMODE((tmp_path / "ws").stat().st_mode) == 0o700


@pytest.mark.skipif(os.name == "nt", reason="has no such owners")
def test_another_owner_is_warned_about(folder, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.warns(UserWarning, match="belongs to another user"):
        Workspace.open(folder).close()


def test_the_cases_have_tokens_of_their_own(template):
    assert len({Marker.read(template(case)).token for case in list(cases())[:2]}) == 2


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"lr": float("nan")}, {"C": -1.0}, {"threads": 0}, {"core": 0.3}])
def test_a_model_that_cannot_be_fitted_leaves_no_folder(wrong, tmp_path):
    records, model = cases()["hash"]
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Workspace.create(tmp_path / "ws", clone(model).set_params(**wrong), records)
    assert not (tmp_path / "ws").exists()
