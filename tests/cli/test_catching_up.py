"""`maxrr workspace catch-up`: a copy from a backup, through the command line."""

import shutil
from pathlib import Path

import pytest
from tests.cli.shell import Shell, kinds

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.workspace.OlderCopyWarning")


def test_a_restored_copy_forgets_what_was_forgotten_since(shell: Shell, digits: Path, tmp_path: Path) -> None:
    backup = Path(shutil.copytree(digits, tmp_path / "backup"))
    gone = kinds(digits)["free"][:2]
    shell("unlearn", digits, "--ids", ",".join(map(str, gone)), "--yes")
    ended = shell("workspace", "catch-up", backup, "--from", digits)
    assert "catches up with receipt 1" in " ".join(ended.out.split())
    assert f"Go on with {backup}, and no longer with {digits}" in " ".join(ended.out.split())
    assert shell("status", backup, "--json").json["requests"] == 2
    assert not set(gone) & {id_ for ids in kinds(backup).values() for id_ in ids}
    assert "is not newer" in shell("workspace", "catch-up", backup, "--from", digits, code=1).err


def test_what_to_say_about_core_records(shell: Shell, digits: Path, tmp_path: Path) -> None:
    backup = Path(shutil.copytree(digits, tmp_path / "backup"))
    shell("unlearn", digits, "--ids", kinds(digits)["core"][0], "--policy", "keep-extractor", "--yes")
    words = " ".join(shell("workspace", "catch-up", backup, "--from", digits, code=3).err.split())
    assert "--policy retrain is exact-retrain" in words
    assert "core_policy" not in words
    shell("workspace", "catch-up", backup, "--from", digits, "--policy", "keep-extractor", "--json")
    assert "is not there" in shell("workspace", "catch-up", backup, "--from", tmp_path / "nowhere", code=1).err
