"""The command line as a whole: it starts fast, and works without Typer and Rich."""

import re
import subprocess
import sys

import pytest
from tests.cli.terminal import maxrr

from maxrr.cli import COMMANDS

both_fronts = pytest.mark.parametrize("bare", [False, True], ids=["typer", "bare"])


@both_fronts
def test_python_dash_m_shows_help(bare: bool) -> None:
    done = maxrr("--help", bare=bare)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: maxrr" in done.stdout
    assert all(command in done.stdout for command in COMMANDS.commands)


@both_fronts
def test_version(bare: bool) -> None:
    assert re.fullmatch(r"maxrr \d+\.\d+\.\d+\S*\n", maxrr("--version", bare=bare).stdout)


def test_help_does_not_wait_for_the_numerical_packages() -> None:
    code = "import sys; import maxrr.cli; print(sorted({'numpy', 'scipy', 'sklearn', 'torch'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
