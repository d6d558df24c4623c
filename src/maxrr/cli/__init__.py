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
from maxrr.cli.run import Command, Commands

__all__ = ["app"]

HELP = (
    "Classifiers that forget records cheaply and exactly, and show that they did. "
    "A model lives in a workspace, a folder that `maxrr fit` makes. MAXRR_NETWORK and "
    "MAXRR_TRAIN name a network and a training of your own, as package.module:function.\n\n"
    "Exit codes: 0 done, 1 failed, 2 usage, 3 refused, 4 refuted, 5 undecided, 6 done with trouble after it, "
    "130 interrupted."
)


def group(words: str, commands: dict[str, Callable[..., None]], cls: type[Commands] | None = None) -> typer.Typer:
    """Make a group of commands. Errors show Python's own traceback, without local variables, which may hold records."""
    made = typer.Typer(
        cls=cls, help=paragraphs(words), no_args_is_help=True, add_completion=cls is not None,
        pretty_exceptions_enable=False, rich_markup_mode=None, context_settings={"max_content_width": 100},
    )  # fmt: skip
    for name, command in commands.items():
        made.command(name, cls=Command, help=paragraphs(inspect.getdoc(command) or ""))(command)
    return made


def paragraphs(text: str) -> str:
    """Join the lines of each paragraph for Typer, which wraps them, and keep indented examples as they are."""
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
GROUPS: tuple[tuple[str, str, dict[str, Callable[..., None]]], ...] = (
    ("receipt", "The answer to a request, for the person as well.", {"show": receipt.present, "for": receipt.give}),
    ("key", "The key that signs receipts and log.", {"new": key.new, "show": key.present, "rotate": key.rotate}),
    ("token", "Who may call a service.", {"new": token.new, "revoke": token.revoke, "list": token.present}),
    ("data", "How a source is read, and data sets known by name.", {"prepare": data.prepare, "get": data.get}),
)
for name, about, below in GROUPS:
    app.add_typer(group(about, below), name=name)


def print_version(wanted: bool) -> None:
    if wanted:
        print(f"maxrr {released.__version__}")
        raise typer.Exit


@app.callback(help=paragraphs(HELP))
def common(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=print_version, is_eager=True)
    ] = False,
) -> None: ...
