"""The same command line with the standard library alone, for machines without Typer."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from maxrr.cli.command import Argument, Command, Group, Parameter, is_example, parameters, summary
from maxrr.cli.run import run

KINDS: dict[type, str] = {str: "TEXT", int: "INTEGER", float: "FLOAT", Path: "PATH"}


class Help(argparse.HelpFormatter):
    """Docstrings keep their paragraphs, commands are listed like options, usage starts as Typer's does."""

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, prefix or "Usage: ")

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        return "\n\n".join(part if is_example(part) else fill(part, width, indent) for part in text.split("\n\n"))

    def _format_action(self, action: argparse.Action) -> str:
        if isinstance(action, argparse._SubParsersAction):
            return "".join(map(super()._format_action, action._get_subactions()))
        return super()._format_action(action)


def main(group: Group, arguments: Sequence[str] | None, version: str) -> None:
    """Do what the arguments say (None: those of the process), and exit."""
    parser = build(group, version)
    found = vars(parser.parse_args(arguments))
    debug, (chosen, command) = found.pop("_debug"), found.pop("_chosen")
    if command is None:  # a group alone: Typer shows its help and calls that wrong usage, too
        chosen.print_help()
        raise SystemExit(2)
    run(command, found, debug=debug)
    raise SystemExit(0)


def build(group: Group, version: str) -> argparse.ArgumentParser:
    """The whole application."""
    parser = argparse.ArgumentParser(**settings(group, "maxrr"))
    where = "Show where an error came from."
    parser.add_argument("--debug", dest="_debug", action="store_true", default=False, help=where)
    parser.add_argument("--version", action="version", version=version, help="Show the version.")
    fill(parser, group)
    return parser


def settings(command: Command | Group, path: str) -> dict[str, Any]:
    """What every parser is made with. A value that is not given stays out, so that the function's default holds."""
    after = (
        "COMMAND [ARGS]..." if isinstance(command, Group) else " ".join(filter(None, map(place, parameters(command))))
    )
    return {
        "prog": path,
        "usage": f"{path} [OPTIONS] {after}".rstrip(),
        "description": summary(command),
        "formatter_class": Help,
        "argument_default": argparse.SUPPRESS,
        "allow_abbrev": False,
        "add_help": False,
    }


def fill(parser: argparse.ArgumentParser, command: Command | Group) -> None:
    """Give a parser its options, arguments and sub-commands."""
    parser.add_argument("--help", action="help", help="Show this message and exit.")
    if not isinstance(command, Group):
        parser.set_defaults(**{"_chosen": (parser, command)})
        for parameter in parameters(command):
            add(parser, parameter)
        return
    parser.set_defaults(**{"_chosen": (parser, None)})
    below = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, child in command.commands.items():
        first_line = literally(summary(child).partition("\n")[0])
        fill(below.add_parser(name, help=first_line, **settings(child, f"{parser.prog} {name}")), child)


def add(parser: argparse.ArgumentParser, parameter: Parameter) -> None:
    """One option or argument."""
    text = literally(f"{parameter.info.help}{ending(parameter)}")
    if isinstance(parameter.info, Argument):
        needed, optional = ("+", "*") if parameter.many else (None, "?")
        parser.add_argument(
            parameter.name,
            **{**values(parameter.kind), "metavar": parameter.name.upper()},
            nargs=needed if parameter.required else optional,
            default=None if parameter.required else parameter.default,  # argparse would convert its own SUPPRESS
            help=text,
        )
    elif parameter.kind is bool:
        action = argparse.BooleanOptionalAction if parameter.off else "store_true"
        parser.add_argument(*parameter.names, dest=parameter.name, action=action, help=text)
    else:
        parser.add_argument(
            *parameter.names,
            dest=parameter.name,
            **values(parameter.kind),
            action="append" if parameter.many else "store",
            required=parameter.required,
            help=text,
        )


def values(kind: type) -> dict[str, Any]:
    """What an option or an argument takes."""
    if issubclass(kind, Enum):
        words = [str(word.value) for word in kind]

        def word(text: str) -> Enum:
            if text not in words:
                raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {', '.join(words)})")
            return kind(text)

        return {"metavar": f"[{'|'.join(words)}]", "type": word}
    return {"metavar": KINDS[kind], "type": kind}


def place(parameter: Parameter) -> str:
    """How an argument looks in the usage line; options are not there."""
    if not isinstance(parameter.info, Argument):
        return ""
    name = parameter.name.upper() + ("..." if parameter.many else "")
    return name if parameter.required else f"[{name}]"


def ending(parameter: Parameter) -> str:
    """What Typer adds to a help text: the default, or that there is none."""
    if parameter.required:
        return " [required]"
    if parameter.off:
        return f" [default: {(parameter.names if parameter.default else parameter.off)[0].lstrip('-')}]"
    nothing = any(parameter.default is value for value in (None, False)) or parameter.default in ("", [])
    return "" if nothing else f" [default: {parameter.default}]"


def literally(text: str) -> str:
    """argparse fills in text with %."""
    return text.replace("%", "%%")
