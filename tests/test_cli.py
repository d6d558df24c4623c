"""The command line as a whole: it starts, says which version it is, and does not wait for what it does not need."""

import re
import subprocess
import sys

from tests.cli.terminal import maxrr
from tests.cli.tree import COMMANDS


def test_python_dash_m_shows_help() -> None:
    done = maxrr("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: maxrr" in done.stdout
    assert all(path[0] in done.stdout for path in COMMANDS if path)


def test_version() -> None:
    assert re.fullmatch(r"maxrr \d+\.\d+\.\d+\S*\n", maxrr("--version").stdout)


def test_help_does_not_wait_for_the_numerical_packages() -> None:
    code = "import sys; import maxrr.cli; print(sorted({'numpy', 'scipy', 'sklearn', 'torch'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
