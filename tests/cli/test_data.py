"""`maxrr data`: what it says is what the library found, for people and for programs."""

import pytest

from maxrr.cli import data
from maxrr.data import available
from tests.cli.shell import Shell
from tests.cli.terminal import maxrr


def test_list_names_every_data_set_and_where_it_is(shell: Shell) -> None:
    shown = shell("data", "get").out
    for name, place in available():
        assert [line for line in shown.splitlines() if line.split()[0] == name and (place or f"get {name}") in line]
    assert {name for name, _ in available()} == set(data.ABOUT)


def test_list_for_programs(shell: Shell) -> None:
    rows = shell("data", "get", "--json").json
    assert [(row["name"], row["place"]) for row in rows] == available()


def test_get_says_where_it_lies(shell: Shell) -> None:
    assert shell("data", "get", "digits", "--json").json[0]["place"] == "scikit-learn"


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (("prepare", "nowhere.npz"), 1, "nowhere.npz"),
        (("get", "imagenet"), 1, "imagenet"),
        (("prepare", "digits", "--lable", "x"), 2, "--lable"),
    ],
)
def test_errors_are_short(arguments: tuple[str, ...], code: int, named: str, shell: Shell) -> None:
    done = shell("data", *arguments, code=code)
    assert done.out == ""
    assert named in done.err
    assert code == 2 or len(done.err.splitlines()) == 1


def test_debug_shows_where() -> None:
    done = maxrr("--debug", "data", "prepare", "nowhere.npz")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "maxrr/data/" in done.stderr.replace("\\", "/")
