"""The scripts of the page in Node.js, which Playwright brings along."""

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import maxrr

SCRIPTS = Path(maxrr.__file__).parent / "report" / "scripts"
HARNESS = Path(__file__).with_name("in_node.js")
WITHOUT_PAGE = ("check_dossier.js", "find_record.js")


def node() -> str:
    """The program: Playwright's, or the machine's."""
    found = importlib.util.find_spec("playwright")
    own = Path(found.origin).parent / "driver" / "node" if found and found.origin else Path()
    program = str(own) if own.is_file() else shutil.which("node")
    assert program, "there is no Node.js: install the development environment, which has Playwright"
    return program


def answers(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the scripts answer to calls: {"answer": …}, or {"wrong": why they refuse}."""
    command = [node(), str(HARNESS), *(str(SCRIPTS / name) for name in WITHOUT_PAGE)]
    done = subprocess.run(command, input=json.dumps(calls), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def answer(call: str, **given: Any) -> Any:
    """What the scripts answer to one call that they do not refuse."""
    (found,) = answers([{"call": call} | given])
    return found["answer"]
