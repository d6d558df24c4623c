"""`python -m lab`: from start to end with little installed, interrupted, refused, for programs."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab import __main__ as commands
from lab.names import readable
from lab.parts import PARTS, STUDIES
from lab.profiles import PROFILES
from maxrr.cli import show
from maxrr.progress import Progress
from tests.cli.shell import Shell
from tests.lab.problems import TINY, repeatable, sides
from tests.lab.samples import results as papers_size

NOT_NEEDED = ("matplotlib", "PIL", "safetensors", "onnxruntime", "pandas")
WITH_LITTLE = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {NOT_NEEDED}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
from lab.__main__ import app
app()
"""
INTERRUPTED = "Error: interrupted: what is measured is kept, and the same command goes on from there"


@contextmanager
def small() -> Iterator[None]:
    """The profile smoke is tiny, and no figures are drawn: those have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROFILES, "smoke", replace(TINY, heads="one-vs-one"))  # heads that need no process
        patch.setattr("lab.lab.load", lambda name: sides())
        patch.setattr("lab.figures.draw", lambda results, folder: [])
        yield


@pytest.fixture
def shell() -> Shell:
    return Shell(commands.app)


@pytest.fixture
def tiny() -> Iterator[None]:
    with small():
        yield


def contents(folder: Path) -> dict[str, Any]:
    """The result files, less when they were made."""
    return {path.stem: repeatable(json.loads(path.read_text(encoding="utf-8"))) for path in folder.glob("*.json")}


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_a_part_with_nothing_but_pytorch_numpy_scipy_and_scikit_learn(tmp_path: Path) -> None:
    """As its users run it. All parts are in `tests/long`."""
    check_smoke(tmp_path, "histogram")


def check_smoke(tmp_path: Path, *parts: str) -> None:
    """The profile smoke, in a process without what can be done without."""
    asked = ["reproduce", *parts, "--profile", "smoke", "--out", str(tmp_path / "new")]
    command = [sys.executable, "-c", WITH_LITTLE, *asked]
    environment = os.environ | {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment)
    assert done.returncode == 0, done.stderr
    assert "no figures" in done.stderr
    folder = tmp_path / "new" / "smoke"
    found = contents(folder)
    assert set(found) == set(parts or PARTS)
    for part in found.values():
        assert part["setting"]["profile"]["name"] == "smoke"
        assert part["title"] in done.stdout
        for row, columns in part["cells"].items():
            assert readable(row, part) in done.stdout
            assert all(0.0 <= cell["mean"] <= 1420.0 for cell in columns.values())
    if "table" in found:
        assert found["table"]["cells"]["No"]["top10k"]["mean"] > 0.85  # it learned
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert [part["title"] for part in found.values() if part["title"] not in page] == []
    assert list(folder.glob("*.svg")) == []
    assert list(folder.rglob("run-*")) == []  # networks


# With the tiny profile

COMMANDS = [("reproduce", "sensitivity"), ("study", "ranking-length")]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results that nothing came between. Nobody may change it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with small():
        for command in COMMANDS:
            Shell(commands.app)(*command, "--profile", "smoke", "--out", folder)
    return folder


def interrupting(now: Callable[[int], bool]) -> Callable[[], Any]:
    """Progress that somebody stops when, with so much done, it is time."""

    @contextmanager
    def progress() -> Iterator[Progress]:
        def progress(what: str, done: int, total: int, **numbers: float) -> None:
            if now(done):
                raise KeyboardInterrupt

        yield progress

    return progress


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupted_run_goes_on(
    shell: Shell, undisturbed: Path, tmp_path: Path, command: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, name = tmp_path / "smoke", f"{command[1]}.json"
    for now in (
        lambda done: True,  # before anything is done
        lambda done: done > 0,  # in the first training, or after it
        lambda done: (folder / name).exists(),  # in the second piece
    ):
        with monkeypatch.context() as patch:
            patch.setattr(show, "progress", interrupting(now))
            ended = shell(*command, "--profile", "smoke", "--out", tmp_path, code=130)
        assert (ended.out, ended.err.splitlines()[-1]) == ("", INTERRUPTED)
        assert not (folder / "report.html").exists()
    assert 0 < len(contents(folder)[command[1]]["pieces"]) < len(contents(undisturbed / "smoke")[command[1]]["pieces"])
    shell(*command, "--profile", "smoke", "--out", tmp_path)
    assert contents(folder)[command[1]] == contents(undisturbed / "smoke")[command[1]]
    assert list(folder.rglob("run-*")) == []


@pytest.mark.usefixtures("tiny")
def test_what_is_there_is_shown_and_not_measured(
    shell: Shell, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr("lab.lab.Lab.train", lambda *_, **__: pytest.fail("it was measured"))
    cells = contents(undisturbed / "smoke")["sensitivity"]["cells"]
    before = files(undisturbed)
    shown = shell("reproduce", "sensitivity", "--profile", "smoke", "--out", undisturbed).out
    assert "2 runs" in shown
    for columns in cells.values():
        for cell in columns.values():
            assert f"{cell['mean']:.4f} ± {cell['stderr']:.4f}" in shown
    assert "to compare" in shown
    assert str(undisturbed / "smoke" / "report.html") in shown
    asked = shell("reproduce", "sensitivity", "--profile", "smoke", "--out", undisturbed, "--json").json
    assert asked["sensitivity"]["cells"] == cells
    assert Path(asked["page"]).is_file()
    assert files(undisturbed) == before


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_of_another_seed_is_refused_and_untouched(
    shell: Shell, undisturbed: Path, command: tuple[str, str]
) -> None:  # fmt: skip
    before = files(undisturbed)
    ended = shell(*command, "--profile", "smoke", "--out", undisturbed, "--seed", 1, code=1)
    assert "--out" in ended.err
    assert (ended.out, files(undisturbed)) == ("", before)


@pytest.mark.usefixtures("tiny")
def test_another_seed_gives_other_numbers(shell: Shell, undisturbed: Path, tmp_path: Path) -> None:
    found = shell("reproduce", "sensitivity", "--profile", "smoke", "--out", tmp_path, "--seed", 1, "--json").json
    assert found["sensitivity"]["cells"] != contents(undisturbed / "smoke")["sensitivity"]["cells"]


@pytest.mark.usefixtures("tiny")
def test_without_figures_it_warns_and_writes_the_rest(
    shell: Shell, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(results: object, folder: Path) -> None:
        raise ImportError("drawing figures needs matplotlib")

    there = tmp_path / "smoke"
    there.mkdir()
    (there / "sensitivity.json").write_bytes((undisturbed / "smoke" / "sensitivity.json").read_bytes())
    with monkeypatch.context() as patch:  # undone here: the fixture has patched the same name
        patch.setattr("lab.figures.draw", fail)
        ended = shell("reproduce", "sensitivity", "--profile", "smoke", "--out", tmp_path)
    assert "no figures" in ended.err
    assert "Unlearning" in (there / "report.html").read_text(encoding="utf-8")
    assert sorted(path.name for path in there.iterdir()) == [".lock", "report.html", "sensitivity.json"]


# What can be asked for


@pytest.mark.parametrize(
    ("arguments", "choices"),
    [
        (("reproduce", "tables"), ("all", *PARTS)),
        (("reproduce", "table", "--profile", "huge"), tuple(PROFILES)),
        (("reproduce", "table", "--data", "cifar"), ("fashion-mnist", "mnist", "digits")),
        (("study", "everything"), ("all", *STUDIES)),
        (("study", "--profile", "huge"), tuple(PROFILES)),
    ],
    ids=" ".join,
)
def test_what_is_unknown_is_wrong_usage_and_the_choices_are_said(
    shell: Shell, arguments: tuple[str, ...], choices: tuple[str, ...]
) -> None:
    ended = shell(*arguments, code=2)
    words = ended.err.replace("'", " ").replace(",", " ").replace(")", " ").split()
    assert [choice for choice in choices if choice not in words] == []
    assert ended.out == ""


def wanted(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """The parts that a command would measure."""
    asked: list[Any] = []
    monkeypatch.setattr(commands, "measure", lambda wanted, *rest: asked.append(wanted))
    Shell(commands.app)(*arguments)
    return asked[0]


def test_all_is_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    every = [(name, None) for name in PARTS]
    assert wanted(monkeypatch, "reproduce") == every
    assert wanted(monkeypatch, "reproduce", "all", "--profile", "smoke") == every
    assert wanted(monkeypatch, "reproduce", "--profile", "paper") == [*every, ("table", "mnist")]
    assert wanted(monkeypatch, "reproduce", "table", "--profile", "paper") == [("table", None)]
    assert wanted(monkeypatch, "reproduce", "--data", "mnist") == [(name, "mnist") for name in PARTS]
    assert wanted(monkeypatch, "study", "--profile", "smoke") == [(name, None) for name in STUDIES]
    large = [(name, None) for name in STUDIES if name != "public-weights"]  # which has a profile of its own
    assert wanted(monkeypatch, "study") == wanted(monkeypatch, "study", "--profile", "paper") == large
    assert {size.value for size in commands.Size} == set(PROFILES)


def test_what_a_study_says_in_sentences_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    commands.tell({**papers_size()["members"], "said": ["Chosen: this.", "Against it: nothing."]}, PROFILES["paper"])
    assert capsys.readouterr().out.splitlines()[-2:] == ["Chosen: this.", "Against it: nothing."]


def test_studies_take_other_data(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wanted(monkeypatch, "study", "core-choice", "--data", "mnist") == [("core-choice", "mnist")]
    assert wanted(monkeypatch, "study", "core-choice", "--data", "a/b.npz") == [("core-choice", "a/b.npz")]


@pytest.mark.usefixtures("tiny")
def test_results_on_data_of_any_name_are_on_the_page(undisturbed: Path, tmp_path: Path) -> None:
    found = json.loads((undisturbed / "smoke" / "ranking-length.json").read_text(encoding="utf-8"))
    found["setting"]["profile"]["data"] = "people"
    (tmp_path / "ranking-length-people.json").write_text(json.dumps(found), encoding="utf-8")
    page = commands.write(tmp_path).read_text(encoding="utf-8")
    assert "people" in page


def test_beside_the_papers_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    parts = papers_size()
    commands.tell(parts["table"], PROFILES["paper"])
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "Accuracy after unlearning (fashion-mnist, 100 runs)"
    cells = {(row, column): cell for row, cells in parts["table"]["cells"].items() for column, cell in cells.items()}
    for line, ((row, column), cell) in zip(shown[3:], cells.items(), strict=True):
        *names, ours, paper, _, verdict = re.split(r" {2,}", line.strip())
        assert names == [readable(row, parts["table"]), readable(column, parts["table"])]
        assert (ours, paper) == (f"{cell['mean']:.4f} ± {cell['stderr']:.4f}", f"{cell['paper']:.4f}")
        assert verdict == cell["verdict"]


def test_a_figure_of_somebody_else_is_not_drawn_over(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "smoke").mkdir()
    for name in ("table.svg", "table.png", "table.json"):
        mine = tmp_path / "smoke" / name
        mine.write_text("mine")
        shell("reproduce", "table", "--profile", "smoke", "--out", tmp_path, code=1)
        assert mine.read_text() == "mine"
        mine.unlink()
        mine.symlink_to(tmp_path / "nowhere")
        shell("reproduce", "table", "--profile", "smoke", "--out", tmp_path, code=1)
        assert mine.is_symlink()
        mine.unlink()


def test_a_page_of_somebody_else_is_not_written_over(shell: Shell, tmp_path: Path) -> None:
    mine = tmp_path / "smoke" / "report.html"
    mine.parent.mkdir()
    mine.write_text("mine")
    for command in COMMANDS:
        shell(*command, "--profile", "smoke", "--out", tmp_path, code=1)
    assert mine.read_text() == "mine"


@pytest.mark.usefixtures("tiny")
def test_a_call_without_time_measures_one_piece_and_the_next_goes_on(shell: Shell, tmp_path: Path) -> None:
    for pieces in (1, 2):
        ended = shell("reproduce", "sensitivity", "--profile", "smoke", "--out", tmp_path, "--minutes", 0, code=1)
        assert "no time" in ended.err
        assert len(contents(tmp_path / "smoke")["sensitivity"]["pieces"]) == pieces
