"""Two fronts, one command line: with Typer and without, the same commands, options, values and exit codes."""

import argparse
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest
import typer
from tests.cli.terminal import maxrr

from maxrr.cli import COMMANDS, fancy, plain
from maxrr.cli.command import Argument, Command, Group, Option, parameters, summary

FRONTS = (fancy, plain)
COMPLETION = {"--install-completion", "--show-completion"}  # which Typer brings


def walk(group: Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command | Group]]:
    """Every command and group with the words that lead to it."""
    yield path, group
    for name, below in group.commands.items():
        if isinstance(below, Group):
            yield from walk(below, (*path, name))
        else:
            yield (*path, name), below


def typer_options(group: Group, path: tuple[str, ...]) -> set[str]:
    command: Any = typer.main.get_command(fancy.build(group, ""))
    for name in path:
        command = command.commands[name]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return options | {"--help"}


def argparse_options(group: Group, path: tuple[str, ...]) -> set[str]:
    parser = plain.build(group, "")
    for name in path:
        (below,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        parser = below.choices[name]
    actions = [action for action in parser._actions if not isinstance(action, argparse._SubParsersAction)]
    return {name for action in actions for name in action.option_strings or [action.dest]}


@pytest.mark.parametrize("path", [path for path, _ in walk(COMMANDS)], ids=" ".join)
def test_both_fronts_take_the_same(path: tuple[str, ...]) -> None:
    options = typer_options(COMMANDS, path) - COMPLETION
    assert options == argparse_options(COMMANDS, path)
    assert {"--help"} <= options


@pytest.mark.parametrize("path", [path for path, _ in walk(COMMANDS)], ids=" ".join)
@pytest.mark.parametrize("front", FRONTS, ids=("fancy", "plain"))
def test_everything_has_help(front: ModuleType, path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    thing = dict(walk(COMMANDS))[path]
    assert summary(thing)
    code, shown, _ = ask(front, COMMANDS, capsys, *path, "--help")
    assert code == 0
    assert " ".join(("Usage: maxrr", *path)) in shown
    assert summary(thing).split()[0] in shown
    words = thing.commands if isinstance(thing, Group) else [name for each in parameters(thing) for name in each.names]
    assert [word for word in words if word not in shown] == []
    assert isinstance(thing, Group) or all(each.info.help for each in parameters(thing))


@pytest.mark.parametrize("path", [path for path, _ in walk(COMMANDS)], ids=" ".join)
def test_help_without_typer_and_rich(path: tuple[str, ...]) -> None:
    done = maxrr(*path, "--help", bare=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert " ".join(("Usage: maxrr", *path)) in done.stdout


# From here on, a toy command line with every kind of value.


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def everything(
    word: Annotated[str, Argument("A word.")],
    file: Annotated[Path | None, Argument("A file.")] = None,
    batch_size: Annotated[int, Option("How many at a time, 100 % of them.")] = 64,
    lr: Annotated[float, Option("How fast.")] = 0.0,
    seed: Annotated[int | None, Option("Where to start.")] = None,
    keep: Annotated[bool, Option("Keep it.")] = True,
    json: Annotated[bool, Option("For programs.", names=("--json", "-j"))] = False,
    layer: Annotated[list[int] | None, Option("May be repeated.")] = None,
    colour: Annotated[Colour, Option("One of these.")] = Colour.RED,
) -> None:
    """Take everything.

    And say 100 % of it.

    Examples:

        maxrr everything a
        maxrr everything b    --no-keep
    """
    print((word, file, batch_size, lr, seed, keep, json, layer or [], str(colour)))


def many(ids: Annotated[list[str], Argument("Which.")], out: Annotated[Path, Option("Where to.")]) -> None:
    """Take many."""
    print((ids, out))


def fail(how: Annotated[str, Argument("Which way.")]) -> None:
    """Fail."""
    raise {"value": ValueError("no record 7"), "interrupt": KeyboardInterrupt(), "fault": TypeError("ours")}[how]


TOYS = Group("Toys.", {"everything": everything, "fail": fail, "deep": Group("Below.", {"many": many})})


def ask(front: ModuleType, group: Group, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[Any, str, str]:
    """Exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as exit_:
        front.main(group, arguments, "maxrr 1.2.3")
    return exit_.value.code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ("everything a", ("a", None, 64, 0.0, None, True, False, [], "red")),
        ("everything a b.txt --no-keep -j", ("a", Path("b.txt"), 64, 0.0, None, False, True, [], "red")),
        ("everything --batch-size 3 --lr 1e-3 a --seed=7", ("a", None, 3, 0.001, 7, True, False, [], "red")),
        ("everything a --layer 1 --layer 2 --keep --json", ("a", None, 64, 0.0, None, True, True, [1, 2], "red")),
        ("everything a --colour blue", ("a", None, 64, 0.0, None, True, False, [], "blue")),
        ("deep many a b c --out d", (["a", "b", "c"], Path("d"))),
        ("--debug deep many a --out d", (["a"], Path("d"))),
    ],
)
@pytest.mark.parametrize("front", FRONTS, ids=("fancy", "plain"))
def test_values(front: ModuleType, arguments: str, printed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(front, TOYS, capsys, *arguments.split()) == (0, f"{printed}\n", "")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("nothing", "nothing"),
        ("everything", "WORD"),
        ("everything a --batch-size many", "--batch-size"),
        ("everything a --batch 3", "--batch"),  # no abbreviations: a later option would make them ambiguous
        ("everything a --unknown", "--unknown"),
        ("everything a --colour green", "--colour"),
        ("everything a b c", "c"),
        ("deep many --out d", "IDS"),
        ("deep many a", "--out"),
    ],
)
@pytest.mark.parametrize("front", FRONTS, ids=("fancy", "plain"))
def test_wrong_usage(front: ModuleType, arguments: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown, error = ask(front, TOYS, capsys, *arguments.split())
    assert (code, shown) == (2, "")
    assert "Usage: maxrr" in error
    assert named.lower() in error.lower()


@pytest.mark.parametrize(("how", "code", "line"), [("value", 1, "no record 7"), ("interrupt", 130, "interrupted")])
@pytest.mark.parametrize("front", FRONTS, ids=("fancy", "plain"))
def test_failures(front: ModuleType, how: str, code: int, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(front, TOYS, capsys, "fail", how) == (code, "", f"Error: {line}\n")


@pytest.mark.parametrize(
    ("arguments", "error"), [(("fail", "fault"), TypeError), (("--debug", "fail", "value"), ValueError)]
)
@pytest.mark.parametrize("front", FRONTS, ids=("fancy", "plain"))
def test_faults_and_debug_show_where(front: ModuleType, arguments: tuple[str, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        front.main(TOYS, arguments, "")


@pytest.mark.parametrize("path", [(), ("deep",)], ids=" ".join)
@pytest.mark.parametrize("front", FRONTS, ids=("fancy", "plain"))
def test_a_group_alone_shows_its_help(
    front: ModuleType, path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, *shown = ask(front, TOYS, capsys, *path)
    assert code == 2
    assert "Usage: maxrr" in "".join(shown)


@pytest.mark.parametrize("front", FRONTS, ids=("fancy", "plain"))
def test_version(front: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(front, TOYS, capsys, "--version") == (0, "maxrr 1.2.3\n", "")


@pytest.mark.parametrize("front", FRONTS, ids=("fancy", "plain"))
def test_help_shows_defaults_and_what_is_required(front: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    _, shown, _ = ask(front, TOYS, capsys, "everything", "--help")
    assert [
        word
        for word in ("[default: 64]", "[default: 0.0]", "[default: keep]", "100 %", "[required]")
        if word not in shown
    ] == []
    assert "And say 100 % of it." in shown
    lines = [line.strip() for line in shown.splitlines()]
    first = lines.index("maxrr everything a")
    assert lines[first + 1] == "maxrr everything b    --no-keep"
