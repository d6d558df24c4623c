"""A newcomer's walk: every command of the README, as printed, one after the other in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def commands() -> list[str]:
    """The lines of the README's shell blocks that call us."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line.startswith("maxrr ")]


def test_every_command_of_the_readme_runs(tmp_path: Path) -> None:
    lines = commands()
    assert len(lines) >= 6
    installed = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{installed}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    said = {}
    for line in lines:
        done = subprocess.run(line, shell=True, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
        said[line.split()[1]] = done.stdout
    assert re.search(r"guarantee +exact-", said["unlearn"])  # which, depends on the key that was drawn
    assert "identical" in said["replay"]
    assert (tmp_path / "ws" / "receipts" / "000001.json").exists()
