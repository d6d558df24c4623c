"""A terminal for tests, and a Python without the terminal packages."""

import io
import os
import subprocess
import sys

# Not even their submodules may be imported: what a machine with nothing but PyTorch has.
BARE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"typer", "rich", "click"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from maxrr.cli import app
app()
"""


class Terminal(io.StringIO):
    """Somewhere to write that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def maxrr(*arguments: str, bare: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own: as installed, or without Typer and Rich."""
    how = ["-c", BARE] if bare else ["-m", "maxrr"]
    colours = ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS")
    environment = {name: value for name, value in os.environ.items() if name not in colours}
    environment |= {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    command = [sys.executable, *how, *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment)
