"""One process at a time works in a folder; several may read; whoever dies lets go."""

import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from maxrr.errors import NotHere
from maxrr.workspace import Workspace, WorkspaceError
from tests.unlearning.problems import fresh
from tests.workspace.problems import HASHED, NEW, contents, copied, history_in, kinds

HOLDER = """
import os, sys, tempfile
from maxrr.workspace import Workspace, WorkspaceError
print("ready", flush=True)
held = None
for line in sys.stdin:
    verb, *words = line.strip().split("|")
    try:
        if verb == "open":
            os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()  # each test has a copy of the same workspace
            held = Workspace.open(words[0], read_only=words[1] == "reading", wait=float(words[2]))
        elif verb == "close":
            held.close()
        elif verb == "unlearn":
            held.model.unlearn([int(words[0])], core_policy="keep-extractor")
        print("done", flush=True)
    except WorkspaceError as error:
        print(error, flush=True)
"""


class Other:
    """Another process, which does as it is told."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def tell(self, *words):
        print(*words, sep="|", file=self.process.stdin, flush=True)

    def answer(self):
        return self.process.stdout.readline().strip()

    def do(self, *words):
        self.tell(*words)
        return self.answer()

    def end(self):
        """Kill it; more than once does no harm."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def other():
    process = Other()
    yield process
    process.end()


def test_the_second_is_refused_at_once(folder, other):
    assert other.do("open", folder, "working", 0) == "done"
    before = contents(folder)
    with pytest.raises(WorkspaceError, match="another process works") as caught:
        Workspace.open(folder)
    assert str(folder) in str(caught.value)
    assert contents(folder) == before
    assert other.do("close") == "done"
    Workspace.open(folder).close()


def test_the_second_waits_as_long_as_it_was_told(folder, other, records):
    with Workspace.open(folder) as workspace:
        assert "works in" in other.do("open", folder, "working", 0.1)
        other.tell("open", folder, "working", 60)
        gone = kinds(workspace.model)[2][:2]
        workspace.model.unlearn(gone[:1], core_policy="keep-extractor")
    assert other.answer() == "done"  # it came in when this one left
    assert other.do("unlearn", gone[1]) == "done"  # and knows what this one did
    assert other.do("close") == "done"
    with Workspace.open(folder) as workspace:
        assert workspace.status().requests == 2


def test_readers_share(folder, other, records):
    assert other.do("open", folder, "reading", 0) == "done"
    before = contents(folder)
    with Workspace.open(folder, read_only=True) as workspace:
        assert workspace.model.predict(records).shape == (len(records),)
        assert workspace.model.plan(records.ids[:1], core_policy="keep-extractor").requested == 1
        for act in (
            lambda: workspace.model.unlearn(records.ids[:1], core_policy="keep-extractor"),
            lambda: workspace.model.replace(records.ids[0].item(), NEW, core_policy="keep-extractor"),
            lambda: workspace.model.fit(records, progress=never),
        ):
            with pytest.raises(WorkspaceError, match="for reading only"):
                act()
    assert contents(folder) == before
    assert other.do("close") == "done"


def test_a_reader_comes_and_reloads_while_another_process_works(folder, other, records):
    """Neither fails, neither waits."""
    free = kinds(Workspace.open(folder, read_only=True).model)[2]
    assert other.do("open", folder, "working", 0) == "done"
    reader = Workspace.open(folder, read_only=True)
    assert not reader.reload()
    for number, gone in enumerate(free[:3], start=1):
        assert other.do("unlearn", gone) == "done"
        assert reader.status().requests == number - 1
        assert reader.reload()
        assert not reader.reload()
        assert (reader.status().requests, len(list(reader.receipts()))) == (number, number)
        assert reader.model.plan(free[5:6]).requested == 1
        with pytest.raises(NotHere):
            reader.model.plan(gone.item(), inputs=NEW)
    assert other.do("close") == "done"
    assert Workspace.open(folder).model.content_hash_ == reader.model.content_hash_


def test_what_is_open_to_work_has_the_last_state(folder):
    with Workspace.open(folder) as workspace, pytest.raises(WorkspaceError, match="last state already"):
        workspace.reload()
    with Workspace.open(folder, read_only=True) as workspace:
        pass
    with pytest.raises(WorkspaceError, match="was closed"):
        workspace.reload()


def test_an_older_copy_is_not_reloaded(folder, tmp_path):
    older = copied(folder, tmp_path / "older")
    with Workspace.open(folder) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
    reader = Workspace.open(folder, read_only=True)
    shutil.rmtree(folder)
    shutil.copytree(older, folder)
    assert (reader.reload(), reader.status().requests) == (False, 1)


def test_nor_another_workspace_in_its_place(folder, records):
    """It was taken if it had committed more often."""
    reader = Workspace.open(folder, read_only=True)
    before = reader.model.model_hash_
    shutil.rmtree(folder)
    Workspace.create(folder, fresh(HASHED, records, C=0.2), records).close()
    for _ in range(2):  # with as many commits, and with more
        with pytest.raises(WorkspaceError, match="another workspace now"):
            reader.reload()
        assert reader.model.model_hash_ == before
        with Workspace.open(folder) as other:
            other.model.unlearn(kinds(other.model)[2][:1])


def never(*_, **__):
    raise AssertionError("it began to work")


def test_who_is_killed_lets_go(folder, other):
    """The last with another process: there is none after this."""
    assert other.do("open", folder, "working", 0) == "done"
    with pytest.raises(WorkspaceError, match="another process"):
        Workspace.open(folder)
    other.end()
    assert other.process.returncode == -signal.SIGKILL
    with Workspace.open(folder) as workspace:
        assert workspace.status().requests == 0


def test_one_process_cannot_open_it_twice_either(folder):
    with Workspace.open(folder) as workspace:
        with pytest.raises(WorkspaceError, match="another process"):
            Workspace.open(folder)
        assert workspace.status().requests == 0  # and the refusal took nothing from the first
        refused = []
        thread = threading.Thread(target=lambda: refused.append(opened(folder)))
        thread.start()
        thread.join()
        assert refused == [False]
    assert opened(folder)


def opened(folder):
    try:
        Workspace.open(folder).close()
    except WorkspaceError:
        return False
    return True


def test_a_closed_workspace_does_nothing(folder, records):
    workspace = Workspace.open(folder)
    ids = kinds(workspace.model)[2]
    workspace.close()
    workspace.close()
    before = contents(folder)
    for act in (
        lambda: workspace.model.predict(records), lambda: workspace.model.predict_proba(records),
        lambda: workspace.model.plan(ids[:1]), lambda: workspace.model.unlearn(ids[:1]),
        lambda: workspace.model.replace(ids[0].item(), np.ones(5)),
        lambda: workspace.model.fit(records, progress=never), lambda: workspace.status(),
        lambda: list(workspace.receipts()), lambda: workspace.model.bundle(), lambda: workspace.model.extractor_,
    ):  # fmt: skip
        with pytest.raises(WorkspaceError, match="closed: open"):
            act()
    assert contents(folder) == before


def test_it_is_closed_when_nobody_has_it_any_more(folder):
    Workspace.open(folder)  # and forgotten at once
    assert opened(folder)


def test_a_failed_opening_lets_go(folder):
    history_in(folder).write_text("{}")
    for _ in range(2):
        with pytest.raises(WorkspaceError, match=r"history-.* is damaged"):
            Workspace.open(folder)


def test_a_relative_folder_stays_the_same(folder, tmp_path, monkeypatch, template):
    """Also when the process goes elsewhere, where there is another workspace of that name."""
    elsewhere = copied(template("hash"), tmp_path / "elsewhere" / folder.name)
    before = contents(elsewhere)
    monkeypatch.chdir(folder.parent)
    with Workspace.open(folder.name) as workspace:
        monkeypatch.chdir(elsewhere.parent)
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
        assert workspace.receipt(1).receipt.number == 1
    assert contents(elsewhere) == before
    with Workspace.open(folder) as workspace:
        assert workspace.status().requests == 1
