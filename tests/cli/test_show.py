"""What commands print: plain text, in colours on a terminal."""

import json
import re
import sys
from pathlib import Path

import pytest

from maxrr.cli import show
from tests.cli.terminal import Terminal

ROWS = [["cat [grey]", "5"], ["dog", show.Bad("12")]]


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Both stdout and stderr are a terminal."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def words(screen: Terminal) -> list[str]:
    return re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]| +", " ", screen.getvalue()).split()


def test_a_pipe_gets_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    show.table(["class", "records"], ROWS, numbers=["records"], caption="that is all")
    show.say("17 [records]")
    show.facts([("in", "a [folder]"), ("refused", show.Bad("no"))])
    show.error("no [file]")
    show.warning("old [file]")
    shown, error = capsys.readouterr()
    assert shown.splitlines() == [
        "class       records",
        "----------  -------",
        "cat [grey]        5",
        "dog              12",
        "that is all",
        "17 [records]",
        "in       a [folder]",
        "refused  no",
    ]
    assert error == "Error: no [file]\nWarning: old [file]\n"


def test_paths_are_short_where_they_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert show.near(tmp_path.resolve() / "ws" / "receipts") == str(Path("ws", "receipts"))
    assert show.near(tmp_path.parent) == str(tmp_path.parent)
    assert show.near("ws") == "ws"


def test_a_terminal_gets_the_same_in_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR")
    show.table(["class", "records"], ROWS, numbers=["records"], caption="that is all")
    show.say("17 [records]")
    show.facts([("in", "a [folder]"), ("refused", show.Bad("no"))])
    show.error("no [file]")
    show.warning("old [file]")
    expected = (
        "class records ---------- ------- cat [grey] 5 dog 12 that is all 17 [records] in a [folder] refused no "
        "Error: no [file] Warning: old [file]"
    )
    assert words(screen) == expected.split()
    assert screen.getvalue().count("\x1b[1;31m") == 3  # what is bad, and the word before an error


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with show.progress() as progress:
        progress("training [1]", 5, 10, loss=0.51234)
        progress("training [1]", 10, 10, loss=0.25, accuracy=0.9)
        progress("embedding", 1, 4)
    assert {"training", "[1]:", "10/10", "loss", "0.25,", "accuracy", "0.9,", "embedding:", "1/4"} <= set(words(screen))


def test_progress_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    with show.progress() as progress:
        progress("training", 2, 2, loss=0.5)
    assert capsys.readouterr() == ("", "training: 2/2 (100 %), loss 0.5, 0:00 in all\n")


HOSTILE = "\x1b[31mred\x07 \x9b2J \x7f \u202egnp.exe\u2066 \udc80 a\nb"
TAME = "\\x1b[31mred\\x07 \\x9b2J \\x7f \\u202egnp.exe\\u2066 \\udc80 a\\nb"


def test_no_text_steers_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    show.say(HOSTILE)
    show.facts([(HOSTILE, show.Bad(HOSTILE))])
    show.table(["class"], [[HOSTILE]])
    show.error(HOSTILE)
    show.warning(HOSTILE)
    shown, error = capsys.readouterr()
    assert shown.splitlines() == [TAME, f"{TAME}  {TAME}", "class", "-" * len(TAME), TAME]
    lines = TAME.replace("\\n", "\n")
    assert error == f"Error: {lines}\nWarning: {lines}\n"


def test_no_text_steers_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_a_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "300")
    show.say(HOSTILE)
    show.facts([(HOSTILE, show.Bad(HOSTILE))])
    show.table(["class"], [[HOSTILE]])
    show.error(HOSTILE)
    show.warning(HOSTILE)
    assert not re.search("\x1b\\[31mred|[\x07\x7f-\x9f\u202e\u2066\ud800-\udfff]", screen.getvalue())
    assert screen.getvalue().count("\\x1b[31mred") == 6


def test_a_class_may_have_the_name_of_an_emoji(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_a_terminal(monkeypatch)
    show.say(":bug: is not drawn")
    assert ":bug:" in screen.getvalue()


def test_json_means_the_same_and_steers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    show.json({HOSTILE: [HOSTILE, "é ×"]})
    shown = capsys.readouterr().out
    assert not re.search("[^\n -~é×]", shown)
    assert json.loads(shown) == {HOSTILE: [HOSTILE, "é ×"]}
