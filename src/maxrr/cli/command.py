"""What a command is: a function whose signature says what it takes.

    def get(name: Annotated[str, Argument("Which data set.")]) -> None: ...

Two fronts read these signatures: `fancy` with Typer, `plain` with the standard library alone, for machines that have
nothing but PyTorch and what it needs. Neither knows a single command.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Command = Callable[..., None]


@dataclass(frozen=True)
class Argument:
    """A value known by its place. Without a default it is required."""

    help: str


@dataclass(frozen=True)
class Option:
    """A value known by its name. The names follow from the parameter's unless they are given."""

    help: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """Commands, and groups of them, by name."""

    help: str
    commands: Mapping[str, Command | Group]


@dataclass(frozen=True)
class Parameter:
    """One value that a command takes: of this kind, perhaps many of them. Of an Enum, one of its words."""

    name: str
    kind: type
    many: bool
    annotation: Any  # as written, less the help
    default: Any
    info: Argument | Option

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def names(self) -> tuple[str, ...]:
        """How the option is written, such as --batch-size. An argument has no names."""
        if isinstance(self.info, Argument):
            return ()
        return self.info.names or (f"--{self.name.replace('_', '-')}",)

    @property
    def off(self) -> tuple[str, ...]:
        """How a flag is switched off; one with names of its own can only be switched on."""
        if self.kind is bool and isinstance(self.info, Option) and not self.info.names:
            return (f"--no-{self.name.replace('_', '-')}",)
        return ()


def parameters(command: Command) -> Iterator[Parameter]:
    """What a command takes, in the order of its signature."""
    hints = typing.get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        annotation, info = typing.get_args(hints[name])
        kind, many = innermost(annotation)
        yield Parameter(name, kind, many, annotation, parameter.default, info)


def innermost(annotation: Any) -> tuple[type, bool]:
    """The type of one value, and whether many may be given.

    >>> innermost(int | None), innermost(list[str])
    ((<class 'int'>, False), (<class 'str'>, True))
    """
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        (annotation,) = (arm for arm in typing.get_args(annotation) if arm is not types.NoneType)
    if typing.get_origin(annotation) is list:
        return typing.get_args(annotation)[0], True
    return annotation, False


def summary(command: Command | Group) -> str:
    """What it does, in full: a group's help, a function's docstring."""
    return command.help if isinstance(command, Group) else inspect.getdoc(command) or ""


def is_example(paragraph: str) -> bool:
    """Whether a paragraph of a docstring is indented: lines to type, which stay as they are."""
    return paragraph.startswith("    ")
