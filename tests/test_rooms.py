"""Imports go one way: a room imports only from rooms above it in ROOMS."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOMS = (
    "version",  # one file
    "lazily",  # one file
    "once",  # one file
    "errors",  # one file
    "plain_text",  # one file
    "files",
    "evidence",
    "progress",  # one file
    "parallel",
    "svm",
    "data",
    "nets",
    "core",
    "unlearning",
    "audit",
    "workspace",
    "serving",
    "report",
    "service",
    "cli",
)
DOORS = ("__init__.py", "__main__.py")  # the only files that stand outside every room
ALONE = {
    "errors.py": "errors",
    "lazily.py": "lazily",
    "once.py": "once",
    "plain_text.py": "plain_text",
    "progress.py": "progress",
    "version.py": "version",
}  # rooms of one file
UNSAFE = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve"}  # a file could run code on load
TERMINAL = {"click", "rich", "typer"}  # the library works without them

PACKAGE = Path(__file__).parents[1] / "src" / "maxrr"


def imported(path: Path, package: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of everything a file imports, inside functions and conditions too.

    `from a import b` counts as `a.b`: b may be a module.
    """
    # Where a relative import starts: the folder, whether the file is its __init__ or not.
    here = (package.name, *path.relative_to(package).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            for alias in node.names:
                yield node.lineno, ".".join((*base, *filter(None, [node.module]), alias.name))


def objection(importer: tuple[str, ...], name: str, package: str) -> str | None:
    """Why the file at this path inside the package may not import this name; None where it may."""
    top, *rest = name.split(".")
    room = importer[0] if len(importer) > 1 else ALONE.get(importer[0])
    if top in UNSAFE:
        return f"imports {top}: files that a user supplies must not be able to run code"
    if top in TERMINAL and room != "cli":
        return f"imports {top}: only cli may, the library works without it"
    if top != package:
        return None
    target = rest[0] if rest else None
    if room is None:
        if importer == ("__init__.py",) and target == "cli":
            return "imports cli: the library works without the command line"
        return None if target in ROOMS else f"imports {name}, which is not in a room"
    if target not in ROOMS:
        return f"imports {name} from the top of the package: name the room it lives in"
    if ROOMS.index(target) > ROOMS.index(room):
        return f"imports {name}: {target} is below {room}"
    return None


def violations(package: Path) -> list[str]:
    """Every import in the package that goes the wrong way, as 'file:line reason'."""
    found = []
    for path in sorted(package.rglob("*.py")):
        importer = path.relative_to(package).parts
        where = "/".join(importer)
        if importer[0] not in (ROOMS if len(importer) > 1 else (*DOORS, *ALONE)):
            found.append(f"{where} is in no room: DESIGN lists them, and so does ROOMS here")
            continue
        for line, name in imported(path, package):
            if reason := objection(importer, name, package.name):
                found.append(f"{where}:{line} {reason}")
    return found


def test_imports_go_one_way() -> None:
    assert (PACKAGE / "__init__.py").is_file()
    assert violations(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("svm/start.py", "import maxrr.data"),
        ("svm/start.py", "import numpy, maxrr.nets.networks as lenet"),
        ("svm/start.py", "from maxrr import data"),
        ("svm/start.py", "from maxrr.unlearning.receipts import Receipt"),
        ("svm/start.py", "from .. import cli"),
        ("svm/start.py", "from ..core import ranking"),
        ("svm/deep/er.py", "from ...core import ranking"),
        ("svm/__init__.py", "from ..core import ranking"),
        ("svm/start.py", "def f():\n    from maxrr.data import load"),
        ("svm/start.py", "if False:\n    import maxrr.data"),
        ("cli/demo.py", "import maxrr"),
        ("cli/demo.py", "from maxrr import LinearSVM"),
        ("cli/demo.py", "from .. import __version__"),
        ("parallel/engine.py", "from maxrr.svm import arrays"),
        ("files/hashes.py", "import pickle"),
        ("cli/demo.py", "from joblib import load"),
        ("svm/start.py", "from rich.table import Table"),
        ("__init__.py", "import typer"),
        ("__init__.py", "from maxrr.cli import app"),
        ("__init__.py", "from .attic import junk"),
        ("attic/junk.py", ""),
        ("errors.py", "from maxrr.files import parse_json"),
        ("junk.py", ""),
    ],
)
def test_the_check_catches(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / "maxrr" / file
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert len(violations(tmp_path / "maxrr")) == 1


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("svm/start.py", "from maxrr.files import hashes\nfrom maxrr.parallel import Threads"),
        ("files/atomic.py", "from maxrr.errors import MaxRRError"),
        ("svm/start.py", "from maxrr.svm.search.newton import solve"),
        ("svm/start.py", "from . import newton"),
        ("svm/start.py", "from .newton import solve"),
        ("svm/start.py", "import numpy as np\nfrom sklearn.base import BaseEstimator"),
        ("cli/demo.py", "import typer\nfrom rich.table import Table\nfrom maxrr.service import api"),
        ("__init__.py", "from maxrr.svm import LinearSVM"),
        ("__main__.py", "from maxrr.cli import app"),
    ],
)
def test_the_check_allows(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / "maxrr" / file
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert violations(tmp_path / "maxrr") == []
