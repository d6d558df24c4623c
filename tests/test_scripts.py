"""What is run by hand, or only on other machines, uses names that the library has."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "tools", "tests/long", "tests/cuda")
SCRIPTS = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.py"))


def imported(path: Path) -> list[tuple[str, str]]:
    """Module and name of all that a file imports from the library."""
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    froms = [node for node in found if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("maxrr")]
    return [(str(node.module), alias.name) for node in froms for alias in node.names]


def is_there(module: str, name: str) -> bool:
    try:
        if hasattr(importlib.import_module(module), name):
            return True
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_name_that_it_imports_is_there(path: Path) -> None:
    assert [names for names in imported(path) if not is_there(*names)] == []


def test_names_are_found_in_the_scripts() -> None:
    assert len(SCRIPTS) > 20
    assert sum(len(imported(path)) for path in SCRIPTS) > 50
    assert not is_there("maxrr.svm", "finish")
    assert not is_there("maxrr.experiments", "Lab")
