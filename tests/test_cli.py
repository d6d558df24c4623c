"""The command line: every command says what it does, and the demo shows what it claims."""

import dataclasses
import io
import re
import subprocess
import sys

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from maxrr.cli import app, demo

COMMANDS = typer.main.get_command(app).commands


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns and no colours, whatever the terminal or CI that runs the tests asks for."""
    for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")


def test_python_dash_m_shows_help() -> None:
    shown = subprocess.run([sys.executable, "-m", "maxrr", "--help"], capture_output=True, text=True, check=True).stdout
    assert "Usage: maxrr" in shown
    assert all(command in shown for command in COMMANDS)


def test_help_does_not_wait_for_the_numerical_packages() -> None:
    code = "import sys; import maxrr.cli; print(sorted({'numpy', 'scipy', 'sklearn', 'torch'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert [option.name for option in command.params if not getattr(option, "help", None)] == []
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert command.help.split()[0] in result.output


def test_demo_ends_in_the_same_bytes_after_every_request() -> None:
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 0, result.output
    assert re.findall(r"\b(yes|no)\b", result.output) == ["yes"] * 4
    assert "byte for byte" in " ".join(result.output.split())


def test_demo_does_not_hide_a_difference() -> None:
    same = demo.Step("1 influential", forget_ms=1.0, fit_ms=9.0, same_bytes=True, worst_gap=1e-13, accuracy=0.97)
    steps = [same, dataclasses.replace(same, same_bytes=False)]
    shown = io.StringIO()
    Console(file=shown, width=80).print(demo.table(steps))
    assert re.findall(r"\b(yes|no)\b", shown.getvalue()) == ["yes", "no"]
    assert demo.closing_sentence(steps).startswith("After 1 of 2 requests the weights differ")
