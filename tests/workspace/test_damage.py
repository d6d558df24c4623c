"""Files that are not as they were written are refused by name, and nothing is done to them."""

import json
import os
import shutil

import numpy as np
import pytest

from maxrr.evidence import SigningKey
from maxrr.workspace import Workspace, WorkspaceError, commits
from maxrr.workspace.journal import split
from tests.unlearning.problems import fresh
from tests.workspace.problems import HASHED, cases, contents, copied, facts, kinds, reopened, write_root

STEMS = (
    "workspace", "extractor", "heads", "secrets", "rows", "journal", "receipts-", "tombstones", "proofs",
    "log/checkpoint", "log/tile/0/000.p/3", "log/tile/entries/000.p/3", "receipts/000001", "receipts/000003",
    ".lock", ".turnstile", ".maxrr",
)  # fmt: skip
HARMLESS = ("receipts/000001", "receipts/000003", ".lock", ".turnstile")  # made again, or empty
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
        assert workspace._store.journal.length > 100
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
        assert str(folder / name) in complaint or (stem == "workspace" and content is None), what
        made = {".lock": b"", ".turnstile": b""}
        assert contents(folder) | made == before | made, f"{what}: touched before it was checked"
    assert (refused > 5) == (stem not in HARMLESS)


@pytest.mark.parametrize(
    "stem", ["rows", "extractor", "heads", "secrets", "tombstones", "journal", "receipts-", "proofs", "log/checkpoint"]
)
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


def test_a_root_of_another_workspace_costs_no_file(template, used, tmp_path):
    """As after a copy into the wrong folder: what is there must still be there."""
    folder = copied(used, tmp_path / "workspace")
    shutil.copy(template("hash, words") / commits.NAME, folder / commits.NAME)
    before = contents(folder)
    with pytest.raises(WorkspaceError, match="is damaged"):
        Workspace.open(folder)
    assert contents(folder) == before


def test_an_older_root_costs_no_file(template, used, tmp_path):
    folder = copied(used, tmp_path / "workspace")
    shutil.copy(template("hash") / commits.NAME, folder / commits.NAME)
    before = contents(folder)
    with pytest.raises(WorkspaceError, match="is damaged"):
        Workspace.open(folder)
    assert contents(folder) == before


def rewritten(folder, change):
    """Say something else in workspace.json, with hash and seal that belong to it, as somebody could who has the key."""
    body = json.loads((folder / commits.NAME).read_text())
    change(body)
    write_root(folder, body)


OTHERS = {
    "version": (lambda body: body.update(version=7), "is of version 7, and this program knows version 8"),
    "no version": (lambda body: body.pop("version"), "is of version None"),
    "another form": (lambda body: body.update(form=1), "canonical form 1, and this program makes form 2"),
    "a form in words": (lambda body: body.update(form="2"), "canonical form '2', and this program makes form 2"),
    "no form": (lambda body: body.pop("form"), "canonical form None"),
    "format": (lambda body: body.update(format="something else"), "does not describe a workspace"),
    "rows elsewhere": (lambda body: body["rows"].update(file="../precious"), "workspace.json is damaged"),
    "rows at the root": (lambda body: body["rows"].update(file="/precious"), "workspace.json is damaged"),
    "one more file": (lambda body: body["files"].update({"../precious": "0"}), "workspace.json is damaged"),
    "no files": (lambda body: body.update(files={}), "workspace.json is damaged"),
    "files as a list": (lambda body: body.update(files=[]), "workspace.json is damaged"),
    "no rows": (lambda body: body.pop("rows"), "workspace.json is damaged"),
    "no facts": (lambda body: body.pop("facts"), "workspace.json is damaged"),
    "empty facts": (lambda body: body.update(facts={}), "workspace.json is damaged"),
    "something more": (lambda body: body.update(more=1), "workspace.json is damaged"),
    "rows that are not there": (lambda body: body["rows"].update(erased=[10**6]), "workspace.json is damaged"),
    "rows before the first": (lambda body: body["rows"].update(erased=[-1]), "workspace.json is damaged"),
    "half a row": (lambda body: body["rows"].update(erased=[0.5]), "workspace.json is damaged"),
    "too many rows": (lambda body: body["rows"].update(count=10**12), "is damaged"),
    "fewer rows than none": (lambda body: body["rows"].update(count=-1), "is damaged"),
    "no blocks": (lambda body: body["rows"].update(blocks=[]), "is damaged"),
    "objects": (lambda body: body["rows"]["layout"].update(ids="O"), "is damaged"),
    "another type of ids": (lambda body: body["rows"]["layout"].update(ids="<i4"), "is damaged"),
    "nonsense for a type": (lambda body: body["rows"]["layout"].update(ids="ids"), "is damaged"),
    "negative width": (lambda body: body["rows"]["layout"].update(width=-3), "is damaged"),
    "another model": (lambda body: body["facts"].update(model_hash="0" * 64), "is damaged"),
    "no records": (lambda body: body["facts"].pop("commitment"), "is damaged"),
    "another core": (lambda body: body["facts"]["core"].update(kind="Popen"), "is damaged"),
    "files elsewhere": (lambda body: body.update(grown={"../precious": {"length": 0, "sha256": "0"}}), "is damaged"),
    "more in the log": (lambda body: body.update(logged=9), "is damaged"),
    "another key": (lambda body: body.update(keys=["0" * 64]), "is damaged"),
    "no key": (lambda body: body.update(keys=["../precious"]), "is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("change", OTHERS)
def test_a_root_that_says_something_else_is_refused(used, tmp_path, change):
    folder = copied(used, tmp_path / "workspace")
    (tmp_path / "precious").write_bytes(PRECIOUS)
    how, words = OTHERS[change]
    rewritten(folder, how)
    before = contents(folder)
    with pytest.raises(WorkspaceError, match=words):
        Workspace.open(folder)
    assert contents(folder) == before
    assert (tmp_path / "precious").read_bytes() == PRECIOUS


def test_a_commitment_to_other_records_is_found_by_the_next_request(used, tmp_path):
    """The rows have hashes of their own: the tree over them is built when it is needed."""
    folder = copied(used, tmp_path / "workspace")
    (journal,) = folder.glob("journal-*.bin")
    frame = split(journal, journal.read_bytes()).__next__()[0].decode()
    said = json.loads(frame)["commitment"]
    journal.write_bytes(journal.read_bytes().replace(said.encode(), b"0" * 64))
    rewritten(folder, lambda body: None)
    before = contents(folder)
    with Workspace.open(folder, signing_key=KEY) as workspace:
        with pytest.raises(ValueError, match="the records are not those that the commitment was made of"):
            workspace.model.unlearn(kinds(workspace.model)[2][:1])
        assert workspace.status().requests == 3
    assert contents(folder) == before


@pytest.mark.parametrize("change", ["version", "another form", "no form"])
def test_what_another_version_wrote_is_refused_with_what_to_do(used, tmp_path, change):
    """For those who only read, too; `create` does not write over it."""
    folder = copied(used, tmp_path / "workspace")
    rewritten(folder, OTHERS[change][0])
    for read_only in (False, True):
        with pytest.raises(WorkspaceError, match=r"fit again into another folder.* Nothing was changed or deleted"):
            Workspace.open(folder, read_only=read_only)
    with pytest.raises(WorkspaceError, match="there is a workspace"):
        Workspace.create(folder, fresh(HASHED, cases()["hash"][0]), cases()["hash"][0])


@pytest.mark.parametrize("maker", ["os:mkdir", "maxrr.nets:train", "os.path:join", "builtins:exec", "", "os"])
def test_opening_runs_nobodys_code(used, tmp_path, maker):
    folder = copied(used, tmp_path / "workspace")
    network = {"maker": maker, "arguments": [str(tmp_path / "made")]}
    rewritten(folder, lambda body: body["facts"].update(network=network))
    with Workspace.open(folder) as workspace, pytest.raises(ValueError, match=r"Workspace\.open\(folder, network=…\)"):
        workspace.model.predict(np.zeros((1, 5), dtype=np.float32))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("stem", ["rows", "heads", "workspace"])
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
        with pytest.raises(WorkspaceError, match="is not a workspace"):
            Workspace.open(tmp_path / name)
    assert os.listdir(tmp_path / "empty") == []
    assert os.listdir(tmp_path / "notes") == ["a.txt"]
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "1", '"maxrr workspace"', "\udcff", "[" * 100_000, "{}"])
def test_a_root_that_is_not_one(tmp_path, content):
    (tmp_path / commits.NAME).write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(WorkspaceError, match=commits.NAME):
        Workspace.open(tmp_path)


@pytest.mark.parametrize("change", [lambda path: path.write_bytes(b"{}"), lambda path: path.unlink()])
def test_the_copy_of_a_receipt_is_made_again(used, tmp_path, change):
    folder = copied(used, tmp_path / "workspace")
    path = folder / "receipts" / "000002.json"
    before = path.read_bytes()
    change(path)
    Workspace.open(folder, read_only=True).close()  # who reads does without
    Workspace.open(folder).close()
    assert path.read_bytes() == before


def test_a_damaged_workspace_can_be_made_anew_in_another_folder(used, tmp_path, records):
    folder = copied(used, tmp_path / "workspace")
    named(folder, "heads").unlink()
    with pytest.raises(WorkspaceError, match=r"Fit again into another folder, .* brings back what was forgotten since"):
        Workspace.open(folder)
    with Workspace.create(tmp_path / "anew", fresh(HASHED, records), records) as workspace:
        assert workspace.status().records == len(records)
