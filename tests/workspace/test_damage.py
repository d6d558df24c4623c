"""Files that are not as they were written are refused by name, and nothing is done to them."""

import os
import shutil

import numpy as np
import pytest

from maxrr.errors import Damaged, NetworkMissing, WorkspaceVersion
from maxrr.evidence import SigningKey
from maxrr.workspace import Commit, Workspace, WorkspaceError
from tests.unlearning.problems import fresh
from tests.workspace.problems import (
    HASHED,
    cases,
    contents,
    copied,
    facts,
    facts_of,
    history_in,
    kinds,
    reopened,
    rewrite_facts,
    rewrite_frames,
)

STEMS = (
    "history", "extractor", "heads", "secrets", "rows", "log/checkpoint", "log/entries", ".lock",
)  # fmt: skip
HARMLESS = (".lock",)  # empty
KEY = SigningKey.generate()
PRECIOUS = b"precious" * 100_000


@pytest.fixture(scope="session")
def used(template, tmp_path_factory):
    """A workspace with three signed receipts, three forgotten records and one that was replaced."""
    folder = copied(template("hash"), tmp_path_factory.mktemp("used") / "workspace")
    with Workspace.open(folder, signing_key=KEY) as workspace:
        _, influential, free = kinds(workspace.model)
        workspace.model.unlearn([influential[0], free[0]])
        workspace.model.replace(free[1].item(), np.ones(5))
        workspace.model.unlearn(free[2:3])
    return folder


@pytest.fixture(scope="session")
def intact(used, tmp_path_factory):
    """What is in it."""
    return reopened(copied(used, tmp_path_factory.mktemp("intact") / "workspace"), cases()["hash"][0])


def named(folder, stem):
    """The file that a stem stands for."""
    (name,) = [name for name in contents(folder) if name.startswith(stem)]
    return folder / name


def flips(content, rng):
    """One bit changed: in the first byte, in the last, and in some between."""
    for place in sorted({0, len(content) - 1, *rng.integers(0, len(content), 6).tolist()}):
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        yield f"bit of byte {place}", bytes(changed)


def mutations(content, other, rng):
    """What may happen to a file. None: it is gone."""
    if content:
        yield from flips(content, rng)
        for length in {0, 1, len(content) // 2, len(content) - 1}:
            yield f"cut at {length}", content[:length]
    yield "gone", None
    yield "longer", content + b"\x00"
    yield "much longer", content + content + b"garbage"
    yield "zeros", bytes(len(content))
    yield "that of another file", other


def tried(folder, records):
    """What is said against opening it, or what is in it."""
    try:
        return None, reopened(folder, records)
    except WorkspaceError as error:
        return str(error), None


@pytest.mark.parametrize("stem", STEMS)
def test_a_damaged_file_is_refused_by_name_or_without_effect(used, intact, records, tmp_path, stem):
    rng = np.random.default_rng(STEMS.index(stem))
    name = named(used, stem).relative_to(used)
    other = named(used, STEMS[(STEMS.index(stem) + 1) % len(STEMS)]).read_bytes()
    refused = 0
    for what, content in mutations((used / name).read_bytes(), other, rng):
        folder = copied(used, tmp_path / "workspace")
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)
        before = contents(folder)
        complaint, seen = tried(folder, records)
        if complaint is None:
            assert seen == intact, what
            continue
        refused += 1
        assert str(folder / name) in complaint or "secrets-" in f"{stem} {complaint}", what
        made = {".lock": b""}
        assert contents(folder) | made == before | made, f"{what}: touched before it was checked"
    assert (refused > 5) == (stem not in HARMLESS)


@pytest.mark.parametrize("stem", ["rows", "extractor", "heads", "secrets", "history", "log/checkpoint"])
def test_readers_refuse_it_too(used, tmp_path, stem):
    folder = copied(used, tmp_path / "workspace")
    path = named(folder, stem)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(WorkspaceError, match=path.name):
        Workspace.open(folder, read_only=True)


def test_rows_after_the_last_do_not_count(used, intact, records, tmp_path):
    folder = copied(used, tmp_path / "workspace")
    path = named(folder, "rows")
    size = path.stat().st_size
    with open(path, "ab") as file:
        file.write(b"a row that was never committed")
    with Workspace.open(folder, read_only=True) as workspace:
        assert facts(workspace, records) == intact
    assert path.stat().st_size == size  # whoever opens it cleans up
    assert reopened(folder, records) == intact


def test_a_history_of_another_workspace_costs_no_file(template, used, tmp_path):
    """As after a copy into the wrong folder: what is there must still be there."""
    folder = copied(used, tmp_path / "workspace")
    shutil.copy(history_in(template("hash, words")), history_in(folder))
    before = contents(folder)
    with pytest.raises(WorkspaceError, match="is damaged"):
        Workspace.open(folder)
    assert contents(folder) == before


def test_an_older_history_costs_no_file(template, used, tmp_path):
    folder = copied(used, tmp_path / "workspace")
    shutil.copy(history_in(template("hash")), history_in(folder))
    before = contents(folder)
    with pytest.raises(WorkspaceError, match="is damaged"):
        Workspace.open(folder)
    assert contents(folder) == before


def in_files(change):
    """Change what the last frame says that names files."""
    return lambda frames: change([frame["files"] for frame in frames if frame["files"] is not None][-1])


def in_last(**changes):
    return lambda frames: frames[-1].update(changes)


FRAMES = {
    "another form": in_files(lambda files: files.update(form=1)),
    "a form in words": in_files(lambda files: files.update(form="2")),
    "no form": in_files(lambda files: files.pop("form")),
    "rows elsewhere": in_files(lambda files: files.update(rows="../precious")),
    "rows at the root": in_files(lambda files: files.update(rows="/precious")),
    "one more file": in_files(lambda files: files["hashes"].update({"../precious": "0"})),
    "no files": in_files(lambda files: files.update(hashes={})),
    "files as a list": in_files(lambda files: files.update(hashes=[])),
    "no rows": in_files(lambda files: files.pop("rows")),
    "something more": in_files(lambda files: files.update(more=1)),
    "rows that are not there": in_last(erased=[10**6]),
    "rows before the first": in_last(erased=[-1]),
    "half a row": in_last(erased=[0.5]),
    "too many rows": in_last(rows=10**12),
    "fewer rows than none": in_last(rows=-1),
    "other blocks": in_last(blocks={"0": "0" * 64}),
    "blocks that are not there": in_last(blocks={"7": "0" * 64}),
    "objects": in_files(lambda files: files["layout"].update(ids="O")),
    "another type of ids": in_files(lambda files: files["layout"].update(ids="<i4")),
    "nonsense for a type": in_files(lambda files: files["layout"].update(ids="ids")),
    "negative width": in_files(lambda files: files["layout"].update(width=-3)),
    "more in the log": in_last(logged=9),
    "another key": in_files(lambda files: files.update(keys=["0" * 64])),
    "no key": in_files(lambda files: files.update(keys=["../precious"])),
}
ELSEWHERE = ("other blocks", "another key")  # sound by themselves, and not what rows and log say
WORDS = {
    "empty facts": lambda facts: facts.clear(),
    "another model": lambda facts: facts.update(model_hash="0" * 64),
    "no records": lambda facts: facts.pop("dtype"),
    "no classes": lambda facts: facts.pop("class_names"),
    "another core": lambda facts: facts["core"].update(kind="Popen"),
}


@pytest.mark.parametrize("change", [*FRAMES, *WORDS])
def test_what_says_something_else_is_refused(used, tmp_path, change):
    """Under the key, with hashes that belong to it."""
    folder = copied(used, tmp_path / "workspace")
    (tmp_path / "precious").write_bytes(PRECIOUS)
    if change in FRAMES:
        rewrite_frames(folder, FRAMES[change])
    else:
        said = facts_of(folder)
        WORDS[change](said)
        rewrite_facts(folder, said)
    before = contents(folder)
    with pytest.raises(Damaged if change in ELSEWHERE else WorkspaceVersion):
        Workspace.open(folder)
    assert contents(folder) == before
    assert (tmp_path / "precious").read_bytes() == PRECIOUS


def test_a_commitment_to_other_records_is_found_by_the_next_request(used, tmp_path):
    """The rows have hashes of their own: the tree over them is built when it is needed."""
    folder = copied(used, tmp_path / "workspace")
    rewrite_frames(folder, in_last(commitment="0" * 64))
    before = contents(folder)
    with Workspace.open(folder, signing_key=KEY) as workspace:
        with pytest.raises(ValueError, match="commitment was made"):
            workspace.model.unlearn(kinds(workspace.model)[2][:1])
        assert workspace.status().requests == 3
    assert contents(folder) == before


@pytest.mark.parametrize("change", ["version", "another form", "no form", "another field", "a field less"])
def test_what_another_version_wrote_is_refused_as_such_and_not_as_damage(used, tmp_path, change):
    """For those who only read, too, and who read without a key; `create` does not write over it."""
    folder = copied(used, tmp_path / "workspace")
    if change == "version":
        path = history_in(folder)
        path.write_bytes(path.read_bytes().replace(b"history 1", b"history 2", 1))
    elif "field" in change:
        said = facts_of(folder)
        kept = said.pop("in_extractor")
        rewrite_facts(folder, said | {"left": kept} if change == "another field" else said)
        with pytest.raises(WorkspaceVersion):
            Commit.last(folder)
    else:
        rewrite_frames(folder, FRAMES[change])
    before = contents(folder)
    for read_only in (False, True):
        with pytest.raises(WorkspaceVersion):
            Workspace.open(folder, read_only=read_only)
    with pytest.raises(WorkspaceError):
        Workspace.create(folder, fresh(HASHED, cases()["hash"][0]), cases()["hash"][0])
    assert contents(folder) == before


@pytest.mark.parametrize("maker", ["os:mkdir", "maxrr.nets:train", "os.path:join", "builtins:exec", "", "os"])
def test_opening_runs_nobodys_code(used, tmp_path, maker):
    folder = copied(used, tmp_path / "workspace")
    network = {"maker": maker, "arguments": [str(tmp_path / "made")]}
    rewrite_facts(folder, facts_of(folder) | {"network": network})
    with Workspace.open(folder) as workspace, pytest.raises(NetworkMissing):
        workspace.model.predict(np.zeros((1, 5), dtype=np.float32))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("stem", ["rows", "heads", "history"])
def test_links_to_files_outside_are_not_written_to(used, tmp_path, stem):
    folder = copied(used, tmp_path / "workspace")
    path = named(folder, stem)
    (tmp_path / "precious").write_bytes(PRECIOUS)
    path.unlink()
    path.symlink_to(tmp_path / "precious")
    with pytest.raises(WorkspaceError, match=path.name):
        Workspace.open(folder)
    assert (tmp_path / "precious").read_bytes() == PRECIOUS


def test_a_link_to_the_right_rows_is_not_erased_through(used, tmp_path, records):
    """The content is right, so the hashes are: still the file behind it is not the workspace's."""
    folder = copied(used, tmp_path / "workspace")
    path = named(folder, "rows")
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    with pytest.raises((WorkspaceError, OSError), match="rows"), Workspace.open(folder) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
    assert (tmp_path / "elsewhere").read_bytes() == before


def test_what_is_not_a_workspace(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("{}")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    for name in ("empty", "file", "notes", "missing"):
        with pytest.raises(WorkspaceError, match="not a workspace"):
            Workspace.open(tmp_path / name)
    assert os.listdir(tmp_path / "empty") == []
    assert os.listdir(tmp_path / "notes") == ["a.txt"]
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"maxrr history", b"maxrr history 1\n", b"\0" * 100, b"[" * 100_000])
def test_a_history_that_is_not_one(tmp_path, content):
    (tmp_path / "history-0123456789abcdef.bin").write_bytes(content)
    with pytest.raises(WorkspaceError, match=r"history-0123456789abcdef\.bin|secrets-0123456789abcdef-"):
        Workspace.open(tmp_path)


def test_a_damaged_workspace_can_be_made_anew_in_another_folder(used, tmp_path, records):
    folder = copied(used, tmp_path / "workspace")
    named(folder, "heads").unlink()
    with pytest.raises(WorkspaceError, match="brings back"):
        Workspace.open(folder)
    with Workspace.create(tmp_path / "anew", fresh(HASHED, records), records) as workspace:
        assert workspace.status().records == len(records)
