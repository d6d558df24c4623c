"""The notebooks run from top to bottom, and what they store is what they show."""

import ast
import json
import re
import sys
from pathlib import Path

import matplotlib
import pytest

from maxrr.unlearning import replaying

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

LONG = "images", "own_training"  # which audit, and train for long
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def run(path):
    """Every cell as a notebook runs it, without a kernel, which takes seconds to start; what it ends in is shown."""
    names = {}
    for cell in code_cells(path):
        *statements, last = ast.parse("".join(cell["source"])).body
        shown = isinstance(last, ast.Expr)
        exec(compile(ast.Module(statements if shown else [*statements, last], []), path.name, "exec"), names)
        if shown:
            found = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
            if hasattr(found, "_repr_html_"):
                assert found._repr_html_().startswith("<")


@pytest.fixture
def beside(monkeypatch):
    """In the folder of the notebooks, whose modules can be imported, drawing on nothing."""
    monkeypatch.chdir(FOLDER)
    monkeypatch.syspath_prepend(str(FOLDER))
    with matplotlib.rc_context({"backend": "agg"}):
        yield
    sys.modules.pop("team_training", None)


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.long] * (path.stem in LONG)) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_it_runs(path, beside, monkeypatch):
    monkeypatch.setattr(replaying, "call_in_fresh_process", lambda function, *given, **_: function(*given))
    run(path)


@pytest.mark.long
@each_notebook
def test_it_runs_with_replays_in_fresh_processes(path, beside):
    run(path)


@each_notebook
def test_it_has_been_run_and_ends_well(path):
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    shown = "".join("".join(output.get("data", {}).get("text/html", "")) for output in outputs)
    assert re.search(r"outcome +identical", shown)
    assert not [place for place in ("/home/", "/tmp/") if place in path.read_text()]
    assert not [output for output in outputs if output.get("name") == "stderr"]  # lines of progress
    assert path.stat().st_size < 200_000  # what is shown is small


@each_notebook
def test_its_links_lead_somewhere(path):
    words = "".join("".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"])
    linked = [link for link in re.findall(r"\]\(([^)#]+)", words) if "://" not in link]
    assert [link for link in linked if not (FOLDER / link).is_file()] == []


def test_there_are_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["embeddings", "images", "own_training", "table"]
