"""A newcomer's walk: every command of the README, as printed, one after the other in an empty folder."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.small_networks import here  # noqa: F401

ROOT = Path(__file__).parents[1]


def commands() -> list[str]:
    """The lines of the README's shell blocks that call us."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line.startswith("maxrr ")]


def in_a_shell(line: str) -> str:
    """What is installed, in a process of its own."""
    installed = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{installed}{os.pathsep}{os.environ['PATH']}", "HOME": str(Path.cwd())}
    done = subprocess.run(line, shell=True, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout


def in_this_process(line: str) -> str:
    """The same words but for a shorter training, without waiting six times for PyTorch."""
    return Shell()(*shlex.split(line.replace("--epochs 60", "--epochs 6"), comments=True)[1:]).out


@pytest.mark.usefixtures("here")  # replays, too: `test_readme.py` has one in a fresh process
@pytest.mark.parametrize("run", [in_this_process, pytest.param(in_a_shell, marks=pytest.mark.long)])
def test_every_command_of_the_readme_runs(
    run: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = commands()
    assert len(lines) >= 6
    said = {line.split()[1]: run(line) for line in lines}
    assert re.search(r"guarantee +exact-", said["unlearn"])  # which, depends on the key that was drawn
    assert "identical" in said["replay"]
    assert (tmp_path / "receipt.json").exists()
