"""The command line as a whole: it starts fast, works without Typer and Rich, and its demo shows what it claims."""

import dataclasses
import re
import subprocess
import sys

import pytest
from tests.cli.terminal import maxrr

from maxrr.cli import COMMANDS, demo

STEP = demo.Step("1 influential", forget_ms=1.0, fit_ms=9.0, same_bytes=True, worst_gap=1e-13, accuracy=0.97)

both_fronts = pytest.mark.parametrize("bare", [False, True], ids=["typer", "bare"])


@both_fronts
def test_python_dash_m_shows_help(bare: bool) -> None:
    done = maxrr("--help", bare=bare)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: maxrr" in done.stdout
    assert all(command in done.stdout for command in COMMANDS.commands)


@both_fronts
def test_version(bare: bool) -> None:
    assert re.fullmatch(r"maxrr \d+\.\d+\.\d+\S*\n", maxrr("--version", bare=bare).stdout)


def test_help_does_not_wait_for_the_numerical_packages() -> None:
    code = "import sys; import maxrr.cli; print(sorted({'numpy', 'scipy', 'sklearn', 'torch'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


@both_fronts
def test_demo_ends_in_the_same_bytes_after_every_request(bare: bool) -> None:
    done = maxrr("demo", bare=bare)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"\b(yes|no)\b", done.stdout) == ["yes"] * 4
    assert "byte for byte" in done.stdout


def test_demo_does_not_hide_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    steps = [STEP, dataclasses.replace(STEP, same_bytes=False)]
    demo.show_table(steps)
    assert re.findall(r"\b(yes|no)\b", capsys.readouterr().out) == ["yes", "no"]
    assert demo.closing_sentence(steps).startswith("After 1 of 2 requests the weights differ")
