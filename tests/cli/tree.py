"""What the command line consists of: every group and command, and what each takes."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from maxrr.cli import app


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A command or group, and all below it, with the words that lead there."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from walk(below, (*path, name))


ROOT: Any = get_command(app)
COMMANDS = dict(walk(ROOT))
LEAVES = {" ".join(path): command for path, command in COMMANDS.items() if not hasattr(command, "commands")}


def options(command: Any) -> list[Any]:
    """What a command takes by name."""
    return [each for each in command.params if each.param_type_name == "option"]


def parse(arguments: list[str]) -> None:
    """Read the arguments as the command line does, and do nothing. What is wrong with them is raised."""
    command, context = ROOT, None
    while True:
        context = command.make_context("maxrr", arguments, parent=context)
        if not hasattr(command, "commands"):
            return
        _, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
