"""The table of parts and studies: everything that is measured, shown and drawn reads it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lab.parts import TABLE, kind_of, part_of

ROOT = Path(__file__).parents[2]
STORED = [path for path in sorted((ROOT / "results").glob("*/*.json")) if '"cells"' in path.read_text("utf-8")]
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(("torch", "sklearn", "scipy", "matplotlib")))  # None there: not to be imported
import json, pathlib
from lab.page import reproduction_page
from tools import fill_reproduction
content = json.loads(pathlib.Path("results/paper/table.json").read_text(encoding="utf-8"))
assert "Accuracy" in reproduction_page({"table": content}, {})
page = fill_reproduction.PAGE.read_text(encoding="utf-8")
assert fill_reproduction.fill(page) == page
"""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name == "core-choice")) for name in TABLE]
)
def test_cells_say_the_kind_that_the_table_declares(measured, name):
    content = measured[name]
    assert part_of(content) is TABLE[name]
    for row in content["cells"].values():
        for column, cell in row.items():
            assert cell["kind"] == kind_of({}, column, content)


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_stored_cells_are_of_the_kind_that_is_declared(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    for row in content["cells"].values():
        for column, cell in row.items():
            values = [value for value in (cell["mean"], cell["paper"]) if value is not None]
            is_count = kind_of(cell, column, content) == "count"
            assert all((value >= 2.0) == is_count for value in values)  # none of them counts fewer than two records


def test_a_cell_knows_better_than_the_table():
    assert kind_of({"kind": "count"}, "accuracy", {"part": "table"}) == "count"


def test_every_part_has_a_row_in_the_documentation():
    lines = (ROOT / "lab" / "README.md").read_text(encoding="utf-8").splitlines()
    assert [name for name in TABLE if not any(line.startswith(f"| `{name}` | ") for line in lines)] == []


def test_stored_results_are_shown_without_pytorch():
    subprocess.run([sys.executable, "-c", WITHOUT], cwd=ROOT, check=True)
