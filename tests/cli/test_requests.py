"""Ids from the shell: whatever an editor or a spreadsheet puts around them, the right records or none."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from maxrr.cli.requests import work
from maxrr.unlearning import Action
from tests.cli.shell import Shell, kinds


@pytest.mark.parametrize(
    "written",
    [
        "{0}\n{1}\n",
        "{0}\n{1}",
        "\ufeff{0}\r\n{1}\r\n",
        "\n\n  {0}\t\n\n{1}   \n\n",
        "{0}\n{1}\n{0}\n{1}\n",
    ],
    ids=["lines", "no last newline", "BOM and CRLF", "blanks", "twice"],
)
@pytest.mark.parametrize("how", ["file", "stdin"])
def test_a_file_of_ids(
    shell: Shell, fitted_digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, how: str
) -> None:
    content = written.format(*kinds(fitted_digits)["free"][:2]).encode()
    path = tmp_path / "ids.txt"
    path.write_bytes(content)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    plan = shell("plan", fitted_digits, "--ids-file", path if how == "file" else "-", "--json").json
    assert (plan["requested"], plan["free"]) == (2, 2)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "names no ids"),
        (b"\n \r\n", "names no ids"),
        (b"\x93NUMPY\x01\x00v\x00", "UTF-8"),
    ],
)
def test_files_that_name_no_ids(shell: Shell, fitted_digits: Path, tmp_path: Path, content: bytes, named: str) -> None:
    path = tmp_path / "ids.txt"
    path.write_bytes(content)
    ended = shell("plan", fitted_digits, "--ids-file", path, code=1)
    assert named in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize("name", ["four", "007", "1_000", "3.0", "99999999999999999999", "id"])
def test_files_that_name_no_records(shell: Shell, fitted_digits: Path, tmp_path: Path, name: str) -> None:
    """The ids of the workspace are integers, and no id is guessed."""
    path = tmp_path / "ids.txt"
    path.write_text(f"{name}\n3\n")
    plan = shell("plan", fitted_digits, "--ids-file", path, "--json", code=3).json
    assert (plan["unknown"], repr(name) in plan["refusal"]) == (2, True)


def test_a_file_that_is_missing(shell: Shell, fitted_digits: Path, tmp_path: Path) -> None:
    assert "nowhere.txt" in shell("plan", fitted_digits, "--ids-file", tmp_path / "nowhere.txt", code=1).err
    assert "Error:" in shell("plan", fitted_digits, "--ids-file", tmp_path, code=1).err


@pytest.mark.parametrize(
    "asked",
    [(), ("--ids", "3", "--subject", "p1"), ("--ids", "3", "--ids-file", "x"), ("--ids-file", "x", "--subject", "p1")],
    ids=["nothing", "ids and subject", "ids twice", "file and subject"],
)
@pytest.mark.parametrize("command", ["plan", "unlearn"])
def test_records_are_named_in_one_way(shell: Shell, fitted_digits: Path, command: str, asked: tuple[str, ...]) -> None:
    assert "--ids-file" in shell(command, fitted_digits, *asked, code=2).err


def test_ids_that_are_strings_stay_strings(shell: Shell, fitted_visits: Path) -> None:
    assert shell("plan", fitted_visits, "--ids", "v3,v4", "--policy", "keep-extractor", "--json").json["requested"] == 2
    assert "id '3'" in shell("plan", fitted_visits, "--ids", "3", code=3).out


@pytest.mark.parametrize(
    ("action", "embeds", "said"),
    [
        (Action.erase, 0, "none on the model"),
        (Action.move, 0, "move 2 heads"),
        (Action.move, 1, "embed 1 record and move 2 heads"),
        (Action.technique, 90, "embed 90 records and fit 2 heads"),
    ],
)
def test_the_work_is_that_of_the_action(action: Action, embeds: int, said: str) -> None:
    plan = SimpleNamespace(action=action, trains=0, embeds=embeds, heads=0 if action is Action.erase else 2)
    assert work(plan) == said  # type: ignore[arg-type]
