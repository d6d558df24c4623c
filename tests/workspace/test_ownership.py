"""Nothing is deleted, written over or followed that the workspace did not write; others cannot write to it."""

import os
import stat

import pytest
from sklearn.base import clone

from maxrr.core import FrequencyCore
from maxrr.workspace import Workspace, WorkspaceError
from tests.unlearning.problems import fresh
from tests.workspace.problems import HASHED, cases, contents, copied, history_in, kinds, like, reopened, token_of

MINE = (
    "notes.txt",
    "history-2024.bin",
    "ranking-7/thesis.tex",
    "rows-2024.bin",
    "heads-0123456789abcdef.safetensors",
    ".lock",
)


@pytest.mark.parametrize("name", MINE)
def test_a_folder_with_anything_in_it_is_refused(tmp_path, records, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(WorkspaceError, match="holds others"):
        Workspace.create(tmp_path, fresh(HASHED, records), records)
    assert contents(tmp_path) == {name: b"mine"}


def test_a_lost_root_is_not_fitted_over(folder, records):
    with Workspace.open(folder) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
    history_in(folder).unlink()
    before = contents(folder)
    with pytest.raises(WorkspaceError, match=r"\.bin is damaged"):
        Workspace.open(folder)
    with pytest.raises(WorkspaceError, match="holds others"):
        Workspace.create(folder, fresh(HASHED, records), records)
    assert contents(folder) == before


@pytest.mark.parametrize("how", ["a bit of its length", "a bit of what is in it", "cut", "zeros"])
def test_a_damaged_first_commit_is_not_fitted_over(folder, records, how):
    path = history_in(folder)
    content = bytearray(path.read_bytes())
    if how.startswith("a bit"):
        content[34 if "length" in how else 500] ^= 4
    path.write_bytes({"cut": content[:-20], "zeros": content[:33] + bytes(300)}.get(how, content))
    before = contents(folder)
    with pytest.raises(WorkspaceError, match=r"history-.* is damaged"):
        Workspace.open(folder)
    with pytest.raises(WorkspaceError, match="is a workspace"):
        Workspace.create(folder, fresh(HASHED, records), records)
    assert contents(folder) == before


def test_a_history_that_cannot_be_read_is_not_written_over(tmp_path, records):
    (tmp_path / "history-0123456789abcdef.bin").write_text("{}")
    with pytest.raises(WorkspaceError, match=r"history-0123456789abcdef\.bin is damaged"):
        Workspace.create(tmp_path, fresh(HASHED, records), records)
    assert contents(tmp_path) == {"history-0123456789abcdef.bin": b"{}"}


def test_an_interrupted_first_fit_can_be_repeated_with_what_it_left(tmp_path, records):
    """And what it left is not taken for the whole: a stranger's file beside it is refused."""

    def stop(*_, solved=0, **__):
        if solved:
            raise KeyboardInterrupt

    model = fresh(FrequencyCore(40, runs=2), records, epochs=1)
    with pytest.raises(KeyboardInterrupt):
        Workspace.create(tmp_path / "ws", model, records, progress=stop)
    token = token_of(tmp_path / "ws")
    for name in (f"heads-{token}-0123456789abcdef.safetensors", ".maxrr-0123456789abcdef.tmp"):
        (tmp_path / "ws" / name).write_text("half")
    (tmp_path / "ws" / "thesis.tex").write_text("mine")
    with pytest.raises(WorkspaceError, match=r"such as thesis\.tex"):
        Workspace.create(tmp_path / "ws", model, records)
    (tmp_path / "ws" / "thesis.tex").unlink()
    with Workspace.create(tmp_path / "ws", model, records) as workspace:
        assert workspace._store.token == token
    assert not [name for name in contents(tmp_path / "ws") if "half" in name or name.startswith("ranking")]


def test_a_copy_without_hidden_files_is_a_workspace(folder, records):
    before = reopened(folder, records)
    (folder / ".lock").unlink()
    assert reopened(folder, records) == before


def test_files_of_another_workspace_stay(template, tmp_path):
    """Put there by hand: they carry another token."""
    folder = copied(template("hash"), tmp_path / "workspace")
    others = {f".other/{name}": content for name, content in contents(template("hash, words")).items()}
    strangers = {
        name.split("/")[1]: content for name, content in others.items() if "-" in name and "history" not in name
    }
    for name, content in strangers.items():
        (folder / name).write_bytes(content)
    with Workspace.open(folder) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[1][:1])
    assert {name: contents(folder)[name] for name in strangers} == strangers


def test_the_histories_of_two_workspaces_are_not_told_apart(template, folder):
    other = history_in(template("hash, words"))
    (folder / other.name).write_bytes(other.read_bytes())
    before = contents(folder)
    for read_only in (False, True):
        with pytest.raises(WorkspaceError, match=r"2 workspaces.* Nothing"):
            Workspace.open(folder, read_only=read_only)
    assert contents(folder) == before


# Links


@pytest.mark.parametrize("name", ["log", "ranking"])
def test_links_in_place_of_folders_are_not_followed(folder, tmp_path, records, name):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "000001.json").write_text("mine")
    (folder / (name if name == "log" else f"ranking-{token_of(folder)}-1")).symlink_to(tmp_path / "elsewhere")
    for read_only in (False, True):
        with pytest.raises(WorkspaceError, match="somewhere else"):
            Workspace.open(folder, read_only=read_only)
    assert contents(tmp_path / "elsewhere") == {"000001.json": b"mine"}


def test_a_link_that_comes_while_it_is_open_is_not_followed_either(workspace, tmp_path, records):
    (tmp_path / "elsewhere").mkdir()
    (workspace.folder / workspace._store.ranking().name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorkspaceError, match="somewhere else"):
        like(workspace, fresh(FrequencyCore(40, runs=2), records, epochs=1)).fit(records)
    assert contents(tmp_path / "elsewhere") == {}


def test_an_old_ranking_that_is_a_link_is_only_unlinked(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.tex").write_text("mine")
    (folder / f"ranking-{token_of(folder)}-0").symlink_to(tmp_path / "elsewhere")
    (folder / f"heads-{token_of(folder)}-0123456789abcdef.safetensors").symlink_to(
        tmp_path / "elsewhere" / "thesis.tex"
    )
    Workspace.open(folder).close()
    assert contents(tmp_path / "elsewhere") == {"thesis.tex": b"mine"}
    assert not [path for path in folder.iterdir() if path.is_symlink()]


# Who may write to it


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o720])
def test_a_folder_that_others_can_write_to_is_refused(folder, mode):
    before = contents(folder)
    folder.chmod(mode)
    for read_only in (False, True):
        with pytest.raises(WorkspaceError, match="chmod go-w"):
            Workspace.open(folder, read_only=read_only)
    assert contents(folder) == before
    folder.chmod(0o755)
    Workspace.open(folder).close()


def test_an_empty_folder_that_is_taken_over_is_made_private(tmp_path, records):
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws").chmod(0o777)
    Workspace.create(tmp_path / "ws", fresh(HASHED, records, epochs=1), records).close()
    assert stat.S_IMODE((tmp_path / "ws").stat().st_mode) == 0o700


def test_another_owner_is_warned_about(folder, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.warns(UserWarning, match="another user"):
        Workspace.open(folder).close()


def test_the_cases_have_tokens_of_their_own(template):
    assert len({token_of(template(case)) for case in list(cases())[:2]}) == 2


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"lr": float("nan")}, {"C": -1.0}, {"threads": 0}, {"core": 0.3}])
def test_a_model_that_cannot_be_fitted_leaves_no_folder(wrong, tmp_path):
    records, model = cases()["hash"]
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Workspace.create(tmp_path / "ws", clone(model).set_params(**wrong), records)
    assert not (tmp_path / "ws").exists()
