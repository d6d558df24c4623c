"""Kill a process at random while it answers a file of 40 tickets, until one comes to its end. Run as a program: it
forks, which needs a process without threads.

    python -m tests.cli.killed_tickets FOLDER
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
import torch

from maxrr.cli import app
from maxrr.workspace import Commit, Workspace
from tests.cases import THOROUGH
from tests.cli.shell import Shell, kinds, model_of
from tests.cli.test_tickets import results_in

TICKETS = 40
KILLS = 20 if THOROUGH else 3


def table(path: Path, rows: list[int]) -> Path:
    """A table with these rows, prepared."""
    numbers = np.random.default_rng(0).normal(size=(160, 4)) + np.arange(160)[:, None] % 3
    lines = [",".join([str(row), f"kind {row % 3}", *(f"{number:.6f}" for number in numbers[row])]) for row in rows]
    path.write_text("\n".join(["id,kind,a,b,c,d", *lines]))
    Shell()("data", "prepare", path, "--label", "kind", "--id", "id", "--split-by", "id")
    return path


def fitted(place: Path, name: str, rows: list[int]) -> Path:
    """A workspace on such a table."""
    (place / "key").write_text("house")
    source, folder = table(place / f"{name}.csv", rows), place / name
    Shell()("fit", source, "--core", f"hash:0.5:{place / 'key'}", "--epochs", 2, "--out", folder)
    return folder


def started(folder: Path, file: Path) -> int:
    """Answer the tickets in another process, and return its number."""
    child = os.fork()
    if child == 0:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        try:
            app(["unlearn", str(folder), "--requests", str(file), "--policy", "retrain", "--yes"])
        except SystemExit as ended:
            os._exit(int(ended.code or 0))
        os._exit(1)
    return child


def ended(child: int) -> int:
    """The exit code of a process, or the signal that ended it, below zero."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(place: Path) -> None:
    torch.set_num_threads(1)
    begun = time.monotonic()
    folder = fitted(place, "ws", [*range(160)])
    takes, drawn, killed = time.monotonic() - begun, random.Random(0), 0  # to fit is no quicker than to fit again
    of = kinds(folder)
    ids = [*of["core"][:20], *of["influential"], *of["free"], *of["core"][20:]][:TICKETS]
    file = place / "requests.csv"
    file.write_text("\n".join(["ticket,id", *(f"ticket {number},{id_}" for number, id_ in enumerate(ids))]))
    last = Commit.last(folder)
    assert last is not None
    for turn in range(KILLS):
        child, until = started(folder, file), time.monotonic() + drawn.uniform(0.0, 0.6) * takes
        while time.monotonic() < until or (turn == KILLS - 1 and Commit.last(folder) == last):
            time.sleep(0.001)  # the last one is killed as soon as it has committed
        os.kill(child, signal.SIGKILL)
        killed += ended(child) == -signal.SIGKILL
    assert ended(started(folder, file)) == 0
    results = results_in(place / "requests.results.csv")
    assert {each["outcome"] for each in results} == {"already-done"}
    assert sorted(int(each["receipt"]) for each in results) == list(range(1, TICKETS + 1))
    with Workspace.open(folder) as workspace:
        assert workspace.status().requests == TICKETS
        assert not np.isin(ids, workspace.model.ids_of()).any()
    assert model_of(folder) == model_of(fitted(place, "fresh", [row for row in range(160) if row not in ids]))
    print(json.dumps({"killed": killed}))


if __name__ == "__main__":
    os.environ["XDG_STATE_HOME"] = sys.argv[1] + "/state"
    main(Path(sys.argv[1]))
