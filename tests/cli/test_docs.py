"""docs/cli.md and the help are true: every command and option is there, every example can be typed."""

import re
import shlex
from pathlib import Path

import pytest
from tests.cli.shell import Shell
from tests.cli.terminal import maxrr
from tests.cli.test_fronts import walk

from maxrr.cli import COMMANDS, exits, plain
from maxrr.cli.command import Group, parameters, summary

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
LEAVES = {" ".join(path): thing for path, thing in walk(COMMANDS) if not isinstance(thing, Group)}

each_command = pytest.mark.parametrize("name", LEAVES)


def section(name: str) -> str:
    """What the page says about a command."""
    found = re.search(rf"^## maxrr {name}\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert found, f"docs/cli.md has no section 'maxrr {name}'"
    return found[1]


@each_command
def test_the_page_has_every_option_and_no_other(name: str) -> None:
    first_cells = re.findall(r"^\| ((?:`-[^|]*`(?:, )?)+) \|", section(name), flags=re.MULTILINE)
    written = {option for cell in first_cells for option in re.findall(r"`(-[^`]+)`", cell)}
    taken = {option for each in parameters(LEAVES[name]) for option in (*each.names, *each.off)}
    assert written == taken


@each_command
def test_everything_a_command_takes_has_help(name: str) -> None:
    assert [each.name for each in parameters(LEAVES[name]) if len(each.info.help.split()) < 2] == []


def test_the_page_names_no_command_that_is_not_there() -> None:
    assert set(re.findall(r"^## maxrr (.+)$", PAGE, flags=re.MULTILINE)) == set(LEAVES)
    listed = re.findall(r"^\| \[`(\w+)`\]", PAGE, flags=re.MULTILINE)
    assert listed == list(COMMANDS.commands)


def test_exit_codes() -> None:
    written = re.findall(r"^\| (\d+) \| (.+) \|$", PAGE, flags=re.MULTILINE)
    assert {int(code): meaning for code, meaning in written} == exits.MEANING
    shown = " ".join(maxrr("--help").stdout.split())
    assert [meaning for meaning in exits.MEANING.values() if meaning not in shown] == []


def examples(text: str) -> list[str]:
    return re.findall(r"^(?:\$ |    |.*\| )?(maxrr [a-z].*)$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("line", [line for thing in LEAVES.values() for line in examples(summary(thing))])
def test_examples_of_the_help_can_be_typed(line: str) -> None:
    assert plain.build(COMMANDS, "").parse_args(shlex.split(line)[1:])


def test_examples_of_the_page_can_be_typed() -> None:
    lines = [
        line
        for block in re.findall(r"^```(?:console|sh)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
        for line in examples(block)
    ]
    assert len(lines) > len(LEAVES)
    for line in lines:
        assert plain.build(COMMANDS, "").parse_args(shlex.split(line)[1:]), line


@pytest.mark.parametrize("name", sorted(set(LEAVES) - {"demo", "data list", "data get", "data describe"}))
def test_help_keeps_examples_as_they_are(name: str, either: Shell) -> None:
    lines = examples(summary(LEAVES[name]))
    shown = [line.strip() for line in either(*name.split(), "--help").out.splitlines()]
    assert lines
    assert [line for line in lines if len(line) < 70 and not any(text.endswith(line) for text in shown)] == []


def test_words_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_MAXRR_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "maxrr plan ws --policy re")
    monkeypatch.setenv("COMP_CWORD", "4")
    assert maxrr().stdout.split() == ["refuse", "retrain"]
