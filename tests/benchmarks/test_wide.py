"""The rows of `benchmarks/svm.py --only wide` are measured, saved and shown, with few packages installed."""

import dataclasses
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.long  # processes that import much

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ABSENT = ("clarabel", "matplotlib", "rich", "typer")  # on machines with a graphics processor
ROWS = ("cpu-20000x768x10-C1-noisy", "cuda-1281167x768x1000-C1-noisy")


def run(script: str, *options: str, without: Path) -> str:
    """What a script prints in a process that finds none of the packages in `ABSENT`."""
    for name in ABSENT:
        (without / f"{name}.py").write_text(f"raise ModuleNotFoundError('{name}')")
    path = os.pathsep.join([str(without), *sys.path])
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *options], capture_output=True, encoding="utf-8",
        env={**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of two rows, at a size that takes no time."""
    folder = tmp_path_factory.mktemp("wide")
    run("svm.py", "--only", "wide", "--quick", "--rows", *ROWS, "--out", str(folder / "found.json"), without=folder)
    return folder


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Modules of the folder by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def test_each_row_has_every_field(here: Path) -> None:
    rows = json.loads((here / "found.json").read_text("utf-8"))["wide"]
    assert len(rows) == len(ROWS)
    for row in rows.values():
        assert row["complete"]
        assert {"date", "processor", "cores", "load", "versions"} <= row["circumstances"].keys()
        assert row["fit"]["decided"]
        assert row["fit"]["seconds"] > row["fit"]["floor_seconds"] > row["pass_floor_seconds"] > 0.0
        assert row["fit"]["influential"] > 0
        assert [r["kind"] for r in row["requests"]] == ["forget"] * len(row["case"]["forget"]) + ["insert"]
        assert all(r["decided"] and r["count"] > 0 and r["seconds"] > 0.0 for r in row["requests"])
        assert [peer["solver"] for peer in row["peers"]] == row["case"]["peers"]
        assert all(peer["finished"] and peer["distance"] > -1e-9 for peer in row["peers"])


def test_the_tables_of_the_docs_come_from_the_results(here: Path) -> None:
    printed = run("tables.py", str(here / "found.json"), without=here)
    lines = [line for line in printed.splitlines() if line.startswith("| 400 × 60 × 4 ")]
    assert len(lines) == 3  # fit, requests, and where the time goes
    assert "LinearSVC" in printed


def test_rows_that_are_complete_can_be_left_out(here: Path) -> None:
    out = str(here / "found.json")
    options = ("--only", "wide", "--quick", "--missing", "--rows", *ROWS, "--out", out)
    assert run("svm.py", *options, without=here) == ""


def test_a_peer_that_was_stopped_has_no_distance(benchmarks: Callable[[str], ModuleType]) -> None:
    wide, tables = benchmarks("wide"), benchmarks("tables")
    stopped = wide.PeerFit("LinearSVC", 300.0, finished=False, content=False)
    assert tables.peer_cells(dataclasses.asdict(stopped), 10.0) == ["stopped after 300 s (> 30 ×)", ""]
    ended = wide.PeerFit("LinearSVC", 20.0, finished=True, content=False, distance=2e-5, bias=1e-4)
    assert tables.peer_cells(dataclasses.asdict(ended), 10.0) == [
        "20 s (2.0 ×), not converged", "2e-05 (bias ≤ 1e-04)",
    ]  # fmt: skip
