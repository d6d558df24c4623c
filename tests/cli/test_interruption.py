"""Ctrl-C in the middle: said in a line, nothing lost, and the next command goes on."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from maxrr.core import ranking
from maxrr.nets import Run
from maxrr.nets.runs import Task
from maxrr.workspace.store import Store
from tests.cli.shell import Shell, kinds, model_of
from tests.workspace.problems import receipts_in


def interrupted(arguments: list[object], ready: Callable[[str], bool], log: Path) -> str:
    """Run a command, press Ctrl-C once it is ready, and return what it wrote on stderr."""
    command = [sys.executable, "-m", "maxrr", *map(str, arguments)]
    environment = os.environ | {"NO_COLOR": "1", "PYTHONUTF8": "1"}
    with open(log, "w") as file:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=file, stdin=subprocess.DEVNULL, env=environment,
            start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip  # a shell's background job would not listen to Ctrl-C, nor would what it starts
    try:
        while process.poll() is None and not ready(log.read_text(encoding="utf-8")):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the processes below it, too
        assert process.wait(timeout=60) == 130, log.read_text(encoding="utf-8")
    finally:
        process.kill()
    return log.read_text(encoding="utf-8")


@pytest.mark.long
def test_in_the_middle_of_a_ranking(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, runs = tmp_path / "ws", 8
    command: list[object] = ["fit", "digits", "--core", f"300:{runs}", "--epochs", 1, "--out", folder]
    said = interrupted(command, lambda _: any(folder.glob("ranking-*/*.npz")), tmp_path / "log")
    assert said.splitlines()[-1].startswith("Error: interrupted: nothing was fitted yet")
    assert "Traceback" not in said
    assert shell("status", folder, code=1).error == "not-a-workspace"

    kept = len(list(folder.glob("ranking-*/*.npz")))  # runs that are trained, or marked already
    trained: list[int] = []
    train = ranking.run_all

    def counted(task: Task, seeds: list[int], *rest: Any) -> Iterator[Run]:
        trained.extend(seeds)
        return train(task, seeds, *rest)

    monkeypatch.setattr(ranking, "run_all", counted)
    assert shell(*command, "--json").json["core"] == 300
    assert (kept > 0, len(trained)) == (True, runs - kept)


@pytest.mark.long
def test_in_the_middle_of_training_again(shell: Shell, digits: Path, tmp_path: Path) -> None:
    core, before = kinds(digits)["core"][:2], model_of(digits)
    asked = ["--ids", ",".join(map(str, core)), "--policy", "retrain", "--yes"]
    said = interrupted(["unlearn", digits, *asked], lambda log: "training" in log, tmp_path / "log")
    assert said.splitlines()[-1] == "Error: interrupted: nothing was changed, and no record forgotten"
    assert "Traceback" not in said
    assert (model_of(digits), receipts_in(digits)) == (before, [])
    assert kinds(digits)["core"][:2] == core
    assert shell("unlearn", digits, *asked, "--json").json["guarantee"] == "exact-retrain"


def test_after_the_commit_it_says_that_it_is_done(
    shell: Shell, digits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    def interrupt(store: Store) -> None:
        if store.rows_to_erase:
            raise KeyboardInterrupt

    one = kinds(digits)["free"][0]
    with monkeypatch.context() as patch:
        patch.setattr("maxrr.workspace.store.Store.erase_rows", interrupt)
        ended = shell("unlearn", digits, "--ids", one, "--yes", code=6)
    assert ended.error == "done-but"
    assert shell("status", digits, "--json").json["requests"] == 1
    assert one not in kinds(digits)["free"]
