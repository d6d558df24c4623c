"""What a workspace says of itself, with anything else in any field, and hashes to go with it: damaged, or it works."""

import contextlib
import copy
import itertools
import os
import shutil

import numpy as np
import pytest

from maxrr.workspace import Workspace, WorkspaceError
from maxrr.workspace.history import BLOBS, frames_in
from tests.workspace.problems import (
    contents,
    copied,
    facts_of,
    history_in,
    kinds,
    rewrite_facts,
    rewrite_frames,
    table,
)

WRONG = (
    None, True, -1, 0, 0.5, 10**30, float("nan"), float("-inf"), "", "../../precious", "a\0b", "\ud800", "<U9", [], {},
    [None], ["../precious"], {"a": 1}, [[1]], "0" * 64,
)  # fmt: skip


@pytest.fixture(scope="module")
def used(template, tmp_path_factory):
    """A workspace with receipts, and something to erase."""
    folder = copied(template("hash"), tmp_path_factory.mktemp("fuzz") / "outer" / "workspace")
    with Workspace.open(folder) as workspace:
        _, influential, free = kinds(workspace.model)
        workspace.model.unlearn([influential[0], free[0]])
        workspace.model.replace(free[1].item(), np.ones(5))
    (folder.parent / "precious").write_bytes(b"precious")
    return folder


def places(body, path=()):
    """Where something can be changed."""
    if path:
        yield path
    inside = body.items() if isinstance(body, dict) else enumerate(body[:2]) if isinstance(body, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


def changed(body, path, value):
    other = copy.deepcopy(body)
    at = other
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return other


def outside(folder):
    return {name: content for name, content in contents(folder.parent).items() if not name.startswith(folder.name)}


def works(folder):
    """Whether everything can be asked that needs no change; errors of input are answers, too."""
    with Workspace.open(folder) as workspace:
        for act in (
            lambda: workspace.model.predict(table().select(table().ids[:3])),
            lambda: workspace.model.predict_proba(table().select(table().ids[:3])),
            lambda: workspace.model.plan(table().ids[5:6], core_policy="keep-extractor"),
            lambda: workspace.model.plan(table().ids[5:6], core_policy="retrain"),
            workspace.status,
            workspace.model.bundle,
            lambda: list(workspace.receipts()),
            lambda: workspace.model.unlearn(table().ids[5:6], core_policy="keep-extractor"),
        ):
            with contextlib.suppress(ValueError):
                act()
    return True


def body_of(folder):
    """What the last frame and the words beside the heads say."""
    frame = vars(frames_in(history_in(folder))[-1])
    return {"facts": facts_of(folder), "frame": {name: frame[name] for name in frame if name not in (*BLOBS, "start")}}


def tried(folder, body):
    """Write it with hashes that belong to it, and open it."""
    rewrite_frames(folder, lambda frames: frames[-1].update(body["frame"]))
    if body["facts"] != facts_of(folder):
        rewrite_facts(folder, body["facts"])
    before = contents(folder)
    try:
        return works(folder)
    except WorkspaceError:
        assert contents(folder) == before, "touched before it was refused"
        return False


def test_any_field_with_some_other_value(used, tmp_path):
    """Each with one of them, in turn; with all of them in `tests/long`."""
    turns = itertools.cycle(WRONG)
    try_all(used, tmp_path, lambda: [next(turns)])


def test_shards_with_any_other_value(template, tmp_path):
    """How many there are, and which keep something of a forgotten record: never believed, and nothing hangs."""
    used = copied(template("hash in shards"), tmp_path / "used")
    with Workspace.open(used) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[0][:1], core_policy="keep-extractor")
        assert len(workspace.model._fitted.stale) == 1
    body = body_of(used)
    assert (body["facts"]["shards"], len(body["facts"]["stale"])) == (3, 1)
    settings = "facts", "core", "settings", "shards"
    for path in (("facts", "shards"), settings, ("facts", "stale"), ("facts", "untrained")):
        for value in (*WRONG, 2, 4, [3], [0, 0]):
            if path[-1] == "untrained" and value == []:
                continue  # as it is
            folder = copied(used, tmp_path / "workspace")
            assert not tried(folder, changed(body, path, value)), (path, value)


def try_all(used, tmp_path, values):
    """Whatever is put where: it is refused, or works, and nothing around the folder is touched."""
    body = body_of(used)
    (tmp_path / "outer").mkdir()
    folder = copied(used, tmp_path / "outer" / "workspace")
    (tmp_path / "outer" / "precious").write_bytes(b"precious")
    before, cases, refused, wrong = outside(folder), 0, 0, []
    for path in places(body):
        if path == ("frame",):
            continue
        for value in values():
            cases += 1
            try:
                refused += not tried(folder, changed(body, path, value))
            except Exception as error:
                wrong.append(f"{path} = {value!r:.30}: {error!r:.150}")
            assert outside(folder) == before, (path, value)
            folder = copied(used, tmp_path / "outer" / "workspace")
    assert wrong == []
    assert cases > 100
    assert refused > cases / 2


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "link"])
@pytest.mark.parametrize("read_only", [True, False])
def test_what_is_not_a_file_neither_hangs_nor_traces_back(used, tmp_path, kind, read_only):
    import socket

    for name in contents(used):
        if read_only and name == ".lock":
            continue  # who reads locks nothing
        folder = copied(used, tmp_path / "workspace")
        (folder / name).unlink()
        if kind == "pipe":
            os.mkfifo(folder / name)
        elif kind == "folder":
            (folder / name).mkdir()
        elif kind == "link":
            (folder / name).symlink_to(used / name)
        else:
            here = os.getcwd()
            os.chdir((folder / name).parent)  # names of sockets are short
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind((folder / name).name)
            os.chdir(here)
        with pytest.raises(WorkspaceError, match=r"is damaged"):
            Workspace.open(folder, read_only=read_only)
        shutil.rmtree(folder)


def test_records_that_are_no_numbers(used, tmp_path):
    folder = copied(used, tmp_path / "workspace")
    body = body_of(folder)
    assert not tried(folder, changed(body, ("facts", "dtype"), "<U9"))
