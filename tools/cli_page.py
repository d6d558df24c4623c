"""Write the sections of docs/reference/shell.md that say what each command takes, from the commands themselves.

    python tools/cli_page.py

What stands before the first of them is written by hand. A test fails where the page is not what this writes.
"""

import inspect
from pathlib import Path
from typing import Any

from typer.main import get_command

from maxrr.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "shell.md"
FIRST = "## maxrr fit\n"


def leaves(command: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Every command below a group, by the words that lead to it."""
    if not hasattr(command, "commands"):
        return {" ".join(path): command}
    found: dict[str, Any] = {}
    for name, below in command.commands.items():
        found |= leaves(below, (*path, name))
    return found


def row(option: Any) -> str:
    """An option in the table: its names, its help, and its default."""
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    default = getattr(option.default, "value", option.default)
    ending = " (required)" if option.required else f" ({default})" if default not in (None, False) else ""
    return f"| {names} | {option.help}{ending} |"


def section(name: str, command: Any) -> str:
    """What the page says of a command: what it takes, what it does, examples, options."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and each.name != "help"]
    words, _, examples = inspect.getdoc(command.callback).partition("\n\nExamples:\n\n")
    usage = " ".join(["maxrr", name, *(each.make_metavar(None).strip("{}") for each in arguments)])
    parts = [f"## maxrr {name}", f"`{usage}`: {words}"]
    if arguments:
        parts.append("\n".join(f"- `{each.make_metavar(None).strip('{}')}`: {each.help}" for each in arguments))
    if examples:
        lines = [line.strip() for line in examples.splitlines()]
        parts.append("\n".join(["```console", *(f"$ {line}" for line in lines), "```"]))
    if options:
        parts.append("\n".join(["| option | what it does |", "|---|---|", *map(row, options)]))
    return "\n\n".join(parts) + "\n"


def page() -> str:
    """The whole page: by hand up to the first command, and written from the commands after it."""
    by_hand = PAGE.read_text(encoding="utf-8").partition(FIRST)[0]
    return by_hand + "\n".join(section(name, command) for name, command in leaves(get_command(app)).items())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
