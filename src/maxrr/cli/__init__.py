"""The `maxrr` command: one file a command, each importing what it needs when it runs."""

import typer

from maxrr.cli import demo

__all__ = ["app"]

# Tracebacks never show local variables: those may be the records somebody asked to have forgotten.
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)


@app.callback()
def main() -> None:
    """Classifiers that forget records cheaply and exactly, and show that they did."""


app.command("demo")(demo.run)
