"""What was done is not called a failure: exit code 6, and a line that says so and names the receipt."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from maxrr.workspace import Workspace
from maxrr.workspace.history import Frame, History
from tests.cases import some
from tests.cli.shell import Shell, kinds
from tests.workspace.problems import history_in

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")


def command(*arguments: object) -> str:
    return " ".join(map(str, [sys.executable, "-m", "maxrr", *arguments]))


def requests(folder: Path) -> int:
    with Workspace.open(folder, read_only=True) as workspace:
        return workspace.status().requests


@pytest.mark.long
@needs_full
@pytest.mark.parametrize("how", some(1, ["--json", ""]))
def test_an_answer_that_cannot_be_written(digits: Path, how: str) -> None:
    one = kinds(digits)["free"][0]
    done = subprocess.run(
        command("unlearn", digits, "--ids", one, "--yes", how) + f" > {FULL}",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 6
    (line,) = done.stderr.splitlines()
    assert f"{digits} 1" in line
    assert line.endswith("[done-but]")
    assert requests(digits) == 1


@pytest.mark.long
@pytest.mark.parametrize("how", some(1, ["", "--json"]))
def test_an_output_that_is_closed(digits: Path, how: str) -> None:
    one = kinds(digits)["free"][0]
    asked = command("unlearn", digits, "--ids", one, "--yes", how)
    done = subprocess.run(f"{asked} >&- <&-", shell=True, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr, requests(digits)) == (0, "", 1)
    assert subprocess.run(command("unlearn", digits, "--ids", one) + " >&- 2>&- <&-", shell=True).returncode == 2


@pytest.mark.long
@needs_full
def test_nor_can_the_error(digits: Path) -> None:
    one = kinds(digits)["free"][0]
    done = subprocess.run(command("unlearn", digits, "--ids", one, "--yes") + f" > {FULL} 2>&1", shell=True)
    assert (done.returncode, requests(digits)) == (6, 1)


@needs_full
def test_what_changes_nothing_fails_with_its_own_code(digits: Path) -> None:
    done = subprocess.run(command("status", digits) + f" > {FULL}", shell=True, capture_output=True, text=True)
    assert (done.returncode, "No space left" in done.stderr) == (1, True)


@pytest.mark.long
def test_a_pipe_that_nobody_reads(digits: Path) -> None:
    one = kinds(digits)["free"][0]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command("unlearn", digits, "--ids", one, "--yes"), shell=True, stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert (done.returncode, "the request was carried out" in done.stderr) == (6, True)
    assert requests(digits) == 1


def broken(*_: object) -> int:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("verb", ["unlearn", "replace", "fit"])
def test_old_bytes_that_could_not_be_erased(
    shell: Shell, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    one = kinds(digits)["influential"][0]
    np.save(tmp_path / "new.npy", np.zeros((1, 8, 8)))
    words = {
        "unlearn": ("unlearn", digits, "--ids", one, "--yes"),
        "replace": ("replace", digits, one, tmp_path / "new.npy", "--yes"),
        "fit": ("fit", "digits", "--core", "full", "--epochs", 1, "--out", digits),
    }[verb]
    with monkeypatch.context() as patch:
        patch.setattr("maxrr.workspace.folder.overwrite", broken)
        ended = shell(*words, code=6)
    assert ended.error == "done-but"
    assert ended.out, "the answer is given all the same"
    said = "the model was fitted" if verb == "fit" else "the request was carried out"
    assert said in ended.err
    before = len(list(digits.glob("heads-*")))
    shell("status", digits)
    assert (before, len(list(digits.glob("heads-*")))) == (2, 1)


def test_an_interruption_of_the_answer(shell: Shell, digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    one = kinds(digits)["free"][0]
    with monkeypatch.context() as patch:
        patch.setattr("maxrr.cli.outcome.tell", interrupt)
        ended = shell("unlearn", digits, "--ids", one, "--yes", code=6)
    assert "carried out" in ended.err
    assert ended.error == "done-but"
    assert requests(digits) == 1


@pytest.mark.parametrize("kind", ["free", "influential"])
def test_a_flush_that_fails_after_the_commit(
    shell: Shell, digits: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:  # fmt: skip
    """The state counts, though what came right after it raised."""
    one, append = kinds(digits)[kind][0], History.append

    def append_fails(history: History, frame: Frame) -> None:
        append(history, frame)
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(history.path))

    with monkeypatch.context() as patch:
        patch.setattr(History, "append", append_fails)
        ended = shell("unlearn", digits, "--ids", one, "--yes", code=6)
    assert ended.error == "done-but"
    assert requests(digits) == 1


def test_a_fit_whose_answer_is_interrupted(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("maxrr.unlearning.MaxRR.score", interrupt)
        ended = shell("fit", "digits", "--core", "full", "--epochs", 1, "--out", tmp_path / "ws", code=6)
    assert ended.error == "done-but"
    assert requests(tmp_path / "ws") == 0


@pytest.mark.parametrize("kind", ["free", "influential"])
def test_what_fails_before_is_still_a_failure(
    shell: Shell, digits: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    one = kinds(digits)[kind][0]
    with monkeypatch.context() as patch:
        patch.setattr("maxrr.workspace.history.History.append", broken)
        ended = shell("unlearn", digits, "--ids", one, "--yes", code=1)
    assert "carried out" not in ended.err
    assert requests(digits) == 0


def test_a_folder_of_the_users_own_is_left_alone(shell: Shell, tmp_path: Path) -> None:
    for name in ("log/2023.json", "ranking-7/thesis.tex", "rows-2024.bin"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    ended = shell("fit", "digits", "--core", "full", "--epochs", 1, "--out", tmp_path, code=1)
    assert ended.error == "folder-taken"
    assert sorted(path.read_text() for path in tmp_path.rglob("*") if path.is_file()) == ["mine"] * 3


def test_a_workspace_without_its_root_is_not_fitted_over(shell: Shell, digits: Path) -> None:
    shell("unlearn", digits, "--ids", kinds(digits)["free"][0], "--yes")
    history_in(digits).unlink()
    before = sorted(digits.rglob("*"))
    assert shell("fit", "digits", "--epochs", 1, "--out", digits, code=1).error == "folder-taken"
    assert shell("status", digits, code=1).error == "damaged"
    assert sorted(digits.rglob("*")) == before


@pytest.mark.filterwarnings("default")
def test_an_older_copy_is_warned_about(shell: Shell, digits: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(digits, tmp_path / "copy")
    shell("unlearn", digits, "--ids", kinds(digits)["free"][0], "--yes")
    for _ in range(2):
        assert "1 request was" in shell("status", tmp_path / "copy").err
