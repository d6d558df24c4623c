"""What commands print: drawn with Rich on a terminal, plain text in a pipe or without Rich."""

import re
import sys

import pytest
from tests.cli.terminal import Terminal

from maxrr.cli import show

ROWS = [["cat [grey]", "5"], ["dog", show.Bad("12")]]


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Both stdout and stderr are a terminal."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def words(screen: Terminal) -> list[str]:
    return re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]|[─━╸╺ ]+", " ", screen.getvalue()).split()


def test_a_pipe_gets_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    show.table(["class", "records"], ROWS, numbers=["records"], caption="that is all")
    show.say("17 [records]")
    show.error("no [file]")
    shown, error = capsys.readouterr()
    assert shown.splitlines() == [
        "class       records",
        "----------  -------",
        "cat [grey]        5",
        "dog              12",
        "that is all",
        "17 [records]",
    ]
    assert error == "Error: no [file]\n"


def test_a_terminal_gets_rich_with_brackets_intact(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_a_terminal(monkeypatch)
    show.table(["class", "records"], ROWS, numbers=["records"], caption="that is all")
    show.say("17 [records]")
    show.error("no [file]")
    expected = "class records cat [grey] 5 dog 12 that is all 17 [records] Error: no [file]"
    assert words(screen) == expected.split()
    assert "─" in screen.getvalue()


def test_a_terminal_without_rich_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_a_terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "rich", None)
    show.table(["class"], [["cat"]])
    with show.progress() as report:
        report("training", 1, 2, loss=0.5)
    assert screen.getvalue() == "class\n-----\ncat\n\rtraining: 1/2 (50 %), loss 0.5\n"


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with show.progress() as report:
        report("training [1]", 5, 10, loss=0.51234)
        report("training [1]", 10, 10, loss=0.25, accuracy=0.9)
        report("embedding", 1, 4)
    assert {"training", "[1]", "10/10", "loss", "0.25,", "accuracy", "0.9", "embedding", "1/4"} <= set(words(screen))


def test_progress_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    with show.progress() as report:
        report("training", 2, 2, loss=0.5)
    assert capsys.readouterr() == ("", "training: 2/2 (100 %), loss 0.5, 0:00 in all\n")
