"""A terminal for tests, and the command in a process of its own."""

import io
import os
import subprocess
import sys


class Terminal(io.StringIO):
    """Somewhere to write that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def maxrr(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    colours = ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS")
    environment = {name: value for name, value in os.environ.items() if name not in colours}
    environment |= {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "maxrr", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment)
