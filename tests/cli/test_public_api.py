"""The shell touches no private name of the library."""

import ast
from pathlib import Path

import pytest

import maxrr.cli

FILES = sorted(Path(maxrr.cli.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_private_is_touched(path: Path) -> None:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            found.append(f"line {node.lineno} touches {node.attr}")
        if isinstance(node, ast.ImportFrom):
            found += [f"line {node.lineno} imports {each.name}" for each in node.names if each.name.startswith("_")]
    assert found == []
