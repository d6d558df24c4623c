"""The plain line: rewritten in place on a terminal, now and then in a log, right about the time left."""

import io
from types import SimpleNamespace

import pytest

from maxrr import progress
from maxrr.progress import Line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands still until it is set."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setenv("COLUMNS", "80")
    return clock


def test_a_log_gets_a_line_now_and_then(clock: SimpleNamespace) -> None:
    log = io.StringIO()
    line = Line(log)
    for second in range(26):
        clock.now = 1000.0 + second
        line("training", second, 25, loss=1 / (1 + second))
    assert log.getvalue().splitlines() == [
        "training: 0/25 (0 %), loss 1",
        "training: 10/25 (40 %), loss 0.09091, 0:15 left",
        "training: 20/25 (80 %), loss 0.04762, 0:05 left",
        "training: 25/25 (100 %), loss 0.03846, 0:25 in all",
    ]


def test_a_terminal_shows_one_line_and_wipes_what_was_longer(clock: SimpleNamespace) -> None:
    terminal = Terminal()
    line = Line(terminal)
    line("reading", 0, 2, bytes=123456)
    clock.now += 0.01
    line("reading", 1, 2)  # too soon
    clock.now += 1.0
    line("reading", 2, 2)
    first, second = "reading: 0/2 (0 %), bytes 1.235e+05", "reading: 2/2 (100 %), 0:01 in all"
    first, second = f"[          ] {first}", f"[==========] {second}"
    assert terminal.getvalue() == f"\r{first}\r{second.ljust(len(first))}\n"


def test_a_line_never_wraps(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    terminal = Terminal()
    Line(terminal)("a very long piece of work", 0, 2)
    assert len(terminal.getvalue()) == len("\r") + 19


def test_what_was_done_before_says_nothing_about_speed(clock: SimpleNamespace) -> None:
    log = io.StringIO()
    line = Line(log)
    line("runs", 90, 100)  # found on disk
    clock.now += 10.0
    line("runs", 91, 100)
    assert log.getvalue().splitlines() == ["runs: 90/100 (90 %)", "runs: 91/100 (91 %), 1:30 left"]


def test_one_thing_after_another_each_on_its_line(clock: SimpleNamespace) -> None:
    terminal = Terminal()
    line = Line(terminal)
    line("training", 1, 2)
    line("embedding", 0, 0)  # the other never finished; of nothing, all is done
    first, second = "[=====     ] training: 1/2 (50 %)", "[==========] embedding: 0/0 (100 %), 0:00 in all"
    assert terminal.getvalue() == f"\r{first}\n\r{second}\n"


def test_closing_ends_an_unfinished_line_once(clock: SimpleNamespace) -> None:
    terminal = Terminal()
    line = Line(terminal)
    line.close()
    line("training", 1, 2)
    line.close()
    line.close()
    assert terminal.getvalue() == "\r[=====     ] training: 1/2 (50 %)\n"


def test_stderr_unless_told(capsys: pytest.CaptureFixture[str]) -> None:
    Line()("training", 1, 1)
    assert capsys.readouterr().err == "training: 1/1 (100 %), 0:00 in all\n"
