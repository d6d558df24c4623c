"""Every command has help with its options and examples; wrong usage and failures end as they should."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from maxrr.cli import app
from tests.cli.shell import Shell
from tests.cli.tree import COMMANDS, options

every_command = pytest.mark.parametrize("path", COMMANDS, ids=" ".join)


@every_command
def test_everything_has_help(shell: Shell, path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    command = COMMANDS[path]
    shown = shell(*path, "--help").out
    assert " ".join(("Usage: maxrr", *path)) in shown
    assert command.help.split()[0] in shown
    words = [*getattr(command, "commands", ()), *(name for each in options(command) for name in each.opts)]
    assert [word for word in words if word not in shown] == []
    assert all(each.help for each in command.params)


@pytest.mark.parametrize("path", [path for path in COMMANDS if path], ids=" ".join)
def test_help_of_a_command_fits_on_a_screen(shell: Shell, path: tuple[str, ...]) -> None:
    assert len(shell(*path, "--help").out.splitlines()) <= 40


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("nothing", "nothing"),
        ("plan", "WORKSPACE"),
        ("fit digits", "--out"),
        ("fit digits --out ws --epochs many", "--epochs"),
        ("fit digits --out ws --epoch 3", "--epoch"),  # no abbreviations: a later option would make them ambiguous
        ("fit digits --out ws --unknown", "--unknown"),
        ("plan ws --policy forget", "--policy"),
        ("status ws more", "more"),
        ("predict ws", "FILES"),
        ("data nothing", "nothing"),
        ("unlearn ws --ids --policy retrain --yes", "--ids"),  # as of --ids $GONE, where the variable is empty
        ("unlearn ws --ids -y", "--ids"),
        ("fit digits --out --epochs 3", "--out"),
    ],
)
def test_wrong_usage(shell: Shell, arguments: str, named: str) -> None:
    ended = shell(*arguments.split(), code=2)
    assert ended.out == ""
    assert ended.err.startswith("Usage")
    assert named in ended.err


def test_wrong_usage_for_programs(shell: Shell) -> None:
    for arguments in ("plan ws --zzz", "plan ws --policy forget", "fit digits --epochs many --out ws", "plan"):
        found = json.loads(shell(*arguments.split(), "--json", code=2).out)
        assert found["error"] == "usage"
        assert found["message"]


@pytest.mark.parametrize("path", [path for path, found in COMMANDS.items() if hasattr(found, "commands")], ids=" ".join)
def test_a_group_alone_shows_its_help(shell: Shell, path: tuple[str, ...]) -> None:
    ended = shell(*path, code=2)
    assert " ".join(("Usage: maxrr", *path)) in ended.out + ended.err


def test_help_shows_defaults_and_what_is_required(shell: Shell) -> None:
    shown = shell("fit", "--help").out
    assert [word for word in ("[default: 1.0]", "[required]") if word not in shown] == []


def test_words_become_values(shell: Shell, tmp_path: Path) -> None:
    """Options may stand before arguments and have an equals sign; a flag is on where it is named."""
    (tmp_path / "a.csv").write_text("id,class,x\n" + "\n".join(f"{row},{row % 2},{row}" for row in range(40)))
    shell("data", "prepare", "--label=class", tmp_path / "a.csv")
    assert 'label = "class"' in (tmp_path / "a.csv.toml").read_text().splitlines()


@pytest.mark.parametrize("debug", [(), ("--debug",)], ids=["plain", "debug"])
def test_a_fault_shows_where_it_is(debug: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """And an error that a user can put right does so if asked."""

    def fault(name: str, progress: object) -> None:
        raise ValueError("why") if debug else TypeError("ours")

    monkeypatch.setattr("maxrr.data.fetch", fault)
    with pytest.raises(ValueError if debug else TypeError, match=r"why|ours"):
        app([*debug, "data", "get", "digits"])


FAULT = """
import maxrr.data
from maxrr.cli import app

def fault(name, report):
    record = "Anna" + " Meier"
    raise TypeError("ours")

maxrr.data.fetch = fault
app(["data", "get", "digits"])
"""


def test_tracebacks_show_no_local_variables() -> None:
    """They may be the records that somebody asked to have forgotten."""
    done = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, encoding="utf-8")
    assert done.stderr.splitlines()[-1] == "TypeError: ours"
    assert "Anna Meier" not in done.stderr
