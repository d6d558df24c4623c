"""The `maxrr` command. Each command imports what it needs when it runs, so that help and errors come at once."""

import inspect
from collections.abc import Callable
from typing import Annotated

import typer

from maxrr import version as released
from maxrr.cli import (
    advise,
    audit,
    backup,
    data,
    demo,
    export,
    fit,
    key,
    predict,
    receipt,
    replay,
    serve,
    status,
    token,
    unlearn,
    verify,
)
from maxrr.cli.run import MEANING, Commands

__all__ = ["app"]

HELP = (
    "Classifiers that forget records cheaply and exactly, and show that they did.\n\n"
    "A model lives in a workspace, a folder that `maxrr fit` makes. Try `maxrr demo` first.\n\n"
    "Where a model has a network or a training function of your own, the variables MAXRR_NETWORK and MAXRR_TRAIN name "
    "it, as package.module:function: a workspace runs no code but MaxRR's by itself.\n\n"
    "Exit codes:\n\n" + "\n".join(f"    {code:>3}  {meaning}" for code, meaning in MEANING.items())
)


def group(words: str, commands: dict[str, Callable[..., None]], cls: type[Commands] | None = None) -> typer.Typer:
    """Commands under one name. Python's own tracebacks: they show no local variables, which may be records that
    somebody asked to have forgotten.
    """
    made = typer.Typer(
        cls=cls, help=paragraphs(words), no_args_is_help=True, add_completion=cls is not None,
        pretty_exceptions_enable=False, rich_markup_mode=None, context_settings={"max_content_width": 100},
    )  # fmt: skip
    for name, command in commands.items():
        made.command(name, help=paragraphs(inspect.getdoc(command) or ""))(command)
    return made


def paragraphs(text: str) -> str:
    """Help as Typer wants it: prose a line each, to be wrapped, and what is indented, as examples, as it is."""
    parts = text.split("\n\n")
    return "\n\n".join(f"\b\n{part}" if part.startswith("    ") else part.replace("\n", " ") for part in parts)


app = group(
    HELP,
    {
        "fit": fit.fit,
        "advise": advise.advise,
        "plan": unlearn.plan,
        "unlearn": unlearn.unlearn,
        "replace": unlearn.replace,
        "add": unlearn.add,
        "refit": fit.refit,
        "replay": replay.replay,
        "bundle": replay.bundle,
        "verify": verify.verify,
        "audit": audit.audit,
        "predict": predict.predict,
        "status": status.status,
        "backup": backup.backup,
        "catch-up": backup.catch_up,
        "export": export.export,
        "revocations": export.revocations,
        "serve": serve.serve,
        "demo": demo.demo,
    },
    Commands,
)
app.add_typer(
    group(
        "The answer to a request: in words, and for the person whom it is about.",
        {"show": receipt.present, "for": receipt.give},
    ),
    name="receipt",
)
app.add_typer(
    group(
        "The key that signs receipts and the log.",
        {"new": key.new, "show": key.present, "rotate": key.rotate},
    ),
    name="key",
)
app.add_typer(
    group(
        "Who may call a service, and in which role.",
        {"new": token.new, "revoke": token.revoke, "list": token.present},
    ),
    name="token",
)
app.add_typer(
    group(
        "Data sets: how a source is read, and those known by name.",
        {"prepare": data.prepare, "get": data.get},
    ),
    name="data",
)


def print_version(wanted: bool) -> None:
    if wanted:
        print(f"maxrr {released.__version__}")
        raise typer.Exit


@app.callback(help=paragraphs(HELP))
def common(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error. For finding and reporting faults.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=print_version, is_eager=True)
    ] = False,
) -> None: ...
