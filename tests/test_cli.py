"""The command line as a whole: it starts, and says which version it is."""

import re

from tests.cli.terminal import maxrr
from tests.cli.tree import COMMANDS


def test_python_dash_m_shows_help() -> None:
    done = maxrr("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage" in done.stdout
    assert all(path[0] in done.stdout for path in COMMANDS if path)


def test_version() -> None:
    assert re.fullmatch(r"maxrr \d+\.\d+\.\d+\S*\n", maxrr("--version").stdout)
