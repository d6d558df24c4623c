"""`maxrr data`: what it says is what the library found, for people and for programs."""

from pathlib import Path

import pytest

from maxrr.cli import data
from maxrr.data import available
from tests.cli.shell import Shell
from tests.cli.terminal import maxrr


@pytest.fixture
def twins(tmp_path: Path) -> Path:
    """A CSV file with names of its own, and equal records under both labels."""
    path = tmp_path / "twins.csv"
    lines = [f"r{row},p{row // 2},{'yes' if row % 3 else 'no'},{row // 20}" for row in range(40)]
    path.write_text("\n".join(["record,person,ill,age", *lines]))
    return path


def test_list_names_every_data_set_and_where_it_is(shell: Shell) -> None:
    shown = shell("data", "get").out
    for name, place in available():
        assert [line for line in shown.splitlines() if line.split()[0] == name and (place or f"get {name}") in line]
    assert {name for name, _ in available()} == set(data.ABOUT)


def test_list_for_programs(shell: Shell) -> None:
    rows = shell("data", "get", "--json").json
    assert [(row["name"], row["place"]) for row in rows] == available()


def test_get_says_where_it_lies(shell: Shell) -> None:
    assert "scikit-learn" in shell("data", "get", "digits").out


def test_describe_digits() -> None:
    done = maxrr("data", "describe", "digits")
    assert (done.returncode, done.stderr) == (0, "")
    first, _, _, *classes, last = done.stdout.splitlines()
    assert first == "digits: 1,420 records for training and 377 for testing, each 1 × 8 × 8 float32; no subject ids."
    assert [line.split()[0] for line in classes] == list("0123456789")
    assert sum(int(count) for line in classes for count in line.split()[1:3]) == 1797
    assert last == "No two records have the same inputs."


def test_describe_a_table_with_its_own_names(twins: Path, shell: Shell) -> None:
    names = ("--label", "ill", "--id", "record", "--subject", "person")
    shell("data", "prepare", twins, *names)
    shown = shell("data", "describe", twins).out
    assert "about 20 subjects" in shown
    assert "40 records share their inputs with another, in 2 groups: 2 with more than one label, 2 both" in shown
    found = shell("data", "describe", twins, "--json").json
    assert (sum(found["records"]), found["subjects"], found["duplicate_groups"]) == (40, 20, 2)
    assert {name: sum(counts) for name, counts in found["balance"].items()} == {"no": 14, "yes": 26}


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (("describe", "nowhere.npz"), 1, "nowhere.npz"),
        (("get", "imagenet"), 1, "imagenet"),
        (("describe", "digits", "--lable", "x"), 2, "--lable"),
    ],
)
def test_errors_are_short(arguments: tuple[str, ...], code: int, named: str, shell: Shell) -> None:
    done = shell("data", *arguments, code=code)
    assert done.out == ""
    assert named in done.err
    assert code == 2 or len(done.err.splitlines()) == 1


def test_debug_shows_where() -> None:
    done = maxrr("--debug", "data", "describe", "nowhere.npz")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "maxrr/data/" in done.stderr.replace("\\", "/")


def test_the_smallest_class_has_a_bar_too() -> None:
    from maxrr.data import Description

    found = Description((), (1001, 0), (1,), "uint8", {"rare": (1, 0), "usual": (1000, 0)}, None, 0, 0, 0, 0)
    assert [row[-1] for row in data.balance(found)] == ["▏", "█" * data.BAR]
