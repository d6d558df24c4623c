"""docs/reference/shell.md and the help are true: every command and option is there, every example can be typed."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

from maxrr.cli import run
from maxrr.unlearning import Outcome
from tests.cli.shell import Shell
from tests.cli.terminal import maxrr
from tests.cli.tree import COMMANDS, LEAVES, ROOT, parse

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "shell.md").read_text(encoding="utf-8")

each_command = pytest.mark.parametrize("name", LEAVES)


def test_the_page_is_the_one_that_is_written_from_the_commands() -> None:
    """`python tools/cli_page.py` writes it."""
    page = runpy.run_path(str(DOCS.parent / "tools" / "cli_page.py"))["page"]()
    assert page == PAGE


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_help_fits_on_a_screen(name: tuple[str, ...], shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert len(shell(*name, "--help").out.splitlines()) <= (40 if name else 42)


@each_command
def test_everything_a_command_takes_has_help(name: str) -> None:
    assert [each.name for each in LEAVES[name].params if each.name != "help" and len(each.help.split()) < 5] == []


def test_the_page_names_no_command_that_is_not_there() -> None:
    assert set(re.findall(r"^## maxrr (.+)$", PAGE, flags=re.MULTILINE)) == set(LEAVES)
    listed = re.findall(r"^\| \[`([\w-]+)`\]", PAGE, flags=re.MULTILINE)
    assert sorted(listed) == sorted(ROOT.commands)


def test_exit_codes() -> None:
    written = re.findall(r"^\| (\d+) \| (.+) \|$", PAGE, flags=re.MULTILINE)
    assert [int(code) for code, _ in written] == [run.DONE, *run.BY_STATUS, run.INTERRUPTED]
    shown = " ".join(maxrr("--help").stdout.split()).partition("Exit codes: ")[2]
    assert re.findall(r"\d+", shown.partition(" Options:")[0]) == [code for code, _ in written]


@pytest.mark.parametrize("page", ["reference/shell.md", "concepts.md"])
def test_every_outcome_of_a_replay_is_in_the_tables(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    tables = " ".join(line for line in text.splitlines() if line.startswith("| `"))
    assert [outcome for outcome in Outcome if not re.search(rf"`{outcome}( [^`]+)?`", tables)] == []


def examples(text: str) -> list[str]:
    unmarked = text.replace("\b", "")  # which keeps Typer from wrapping them
    return re.findall(r"^(?:\$ |    |.*\| )?(maxrr [a-z].*)$", unmarked, flags=re.MULTILINE)


@pytest.mark.parametrize("line", [line for thing in LEAVES.values() for line in examples(thing.help)])
def test_examples_of_the_help_can_be_typed(line: str) -> None:
    parse(shlex.split(line)[1:])


def test_examples_of_the_page_can_be_typed() -> None:
    lines = [
        line
        for block in re.findall(r"^```(?:console|sh)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
        for line in examples(block)
    ]
    assert len(lines) > len(LEAVES)
    for line in lines:
        parse(shlex.split(line)[1:])


@pytest.mark.parametrize("name", sorted(set(LEAVES) - {"demo"}))
def test_help_keeps_examples_as_they_are(name: str, shell: Shell) -> None:
    lines = examples(LEAVES[name].help)
    shown = [line.strip() for line in shell(*name.split(), "--help").out.splitlines()]
    assert lines
    assert [line for line in lines if len(line) < 70 and not any(text.endswith(line) for text in shown)] == []


def test_words_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_MAXRR_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "maxrr plan ws --policy re")
    monkeypatch.setenv("COMP_CWORD", "4")
    assert maxrr().stdout.split() == ["refuse", "retrain"]
