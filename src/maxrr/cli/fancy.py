"""The command line with Typer: coloured help, suggestions for mistyped names."""

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from maxrr.cli.command import Argument, Command, Group, Parameter, is_example, parameters, summary
from maxrr.cli.run import run


def main(group: Group, arguments: Sequence[str] | None, version: str) -> None:
    """Do what the arguments say (None: those of the process), and exit."""
    build(group, version)(arguments, prog_name="maxrr")


def build(group: Group, version: str) -> typer.Typer:
    """The whole application."""
    app = branch(group, completion=True)

    def print_version(wanted: bool) -> None:
        if wanted:
            print(version)
            raise typer.Exit

    @app.callback(help=paragraphs(group.help))
    def common(
        debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
        version: Annotated[
            bool, typer.Option("--version", help="Show the version.", callback=print_version, is_eager=True)
        ] = False,
    ) -> None: ...

    return app


def branch(group: Group, *, completion: bool = False) -> typer.Typer:
    """A group with all that is below it; the first also completes words in shells."""
    # Python's own tracebacks, here as without Typer: they are short, and show no local variables, which may be the
    # records that somebody asked to have forgotten.
    app = typer.Typer(
        help=paragraphs(group.help), no_args_is_help=True, add_completion=completion, pretty_exceptions_enable=False
    )
    for name, command in group.commands.items():
        if isinstance(command, Group):
            app.add_typer(branch(command), name=name)
        else:
            app.command(name, help=paragraphs(summary(command)))(leaf(command))
    return app


def paragraphs(text: str) -> str:
    """Help as Typer wants it: prose a line each, to be wrapped, and examples marked as such."""
    parts = text.split("\n\n")
    return "\n\n".join(f"\b{part}" if is_example(part) else part.replace("\n", " ") for part in parts)


def leaf(command: Command) -> Callable[..., None]:
    """A function with the signature that Typer wants to read."""

    def call(context: typer.Context, **values: Any) -> None:
        run(command, values, debug=context.find_root().params["debug"])

    first, _ = inspect.signature(call, eval_str=True).parameters.values()
    signature = inspect.Signature([first, *map(translated, parameters(command))])
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    return call


def translated(parameter: Parameter) -> inspect.Parameter:
    """One parameter, with Typer's own note of what it is."""
    if isinstance(parameter.info, Argument):
        note = typer.Argument(help=parameter.info.help, metavar=parameter.name.upper())
    elif parameter.off:
        note = typer.Option("/".join((*parameter.names, *parameter.off)), help=parameter.info.help)
    else:
        note = typer.Option(*parameter.names, help=parameter.info.help)
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=parameter.default,
        annotation=Annotated[parameter.annotation, note],
    )
