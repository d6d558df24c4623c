"""The shell uses the public API: it touches no private name, and what holds the state only through its front door."""

import ast
from pathlib import Path

import pytest

import maxrr.cli

FILES = sorted(Path(maxrr.cli.__file__).parent.glob("*.py"))
STATE = ("maxrr.unlearning", "maxrr.workspace")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_private_is_touched(path: Path) -> None:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            found.append(f"line {node.lineno} touches {node.attr}")
        if isinstance(node, ast.ImportFrom):
            inside = any((node.module or "").startswith(f"{room}.") for room in STATE)
            private = [alias.name for alias in node.names if alias.name.startswith("_")]
            found += [f"line {node.lineno} imports from {node.module}"] if inside or private else []
    assert found == []
