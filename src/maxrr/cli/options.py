"""Options that several commands have, written the same in each."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, BadParameter, Option

Folder = Annotated[Path, Argument(metavar="WORKSPACE", help="The workspace: a folder that `maxrr fit` made.")]
Json = Annotated[bool, Option("--json", help="Print the answer as JSON, for programs.")]


def known_engine(said: str | None) -> str | None:
    """Refuse what names no engine before anything is read."""
    if said is not None:
        from maxrr.parallel.ray_cluster import engine_from

        try:
            engine_from(said)
        except ValueError as error:
            raise BadParameter(str(error)) from None
    return said


ENGINE = "MAXRR_ENGINE"
EngineName = Annotated[
    str | None,
    Option(
        "--engine",
        envvar=ENGINE,
        show_envvar=False,
        callback=known_engine,
        help="Where to work: local, ray, ray://HOST:10001, a .toml.",
    ),
]
Device = Annotated[str | None, Option(help="Where to train: cpu, cuda; the best if not given.")]

NETWORK, TRAIN = "MAXRR_NETWORK", "MAXRR_TRAIN"
"""Variables of the environment that name code of the user's own, as package.module:function.

A workspace runs no code but MaxRR's by itself, though it knows what its network and its training function were called.
"""
NetworkName = Annotated[
    str | None, Option(envvar=NETWORK, show_envvar=False, help="A network of your own: package.module:function.")
]
PLACES = "MAXRR_SIGNING_KEY, or key.pem in ~/.config/maxrr ($XDG_CONFIG_HOME/maxrr)"  # where a key is looked for

Source = Annotated[list[str] | None, Option(help="Where the raw records are now; repeated for what was added.")]
Copies = Annotated[str | None, Option(metavar="REASON", help="Why copies of forgotten records are let in.")]
Ids = Annotated[list[str] | None, Option(help="Ids of records, separated by commas; repeatable.")]
IdsFile = Annotated[str | None, Option(help="A file with an id on each line; - is standard input.")]
Earlier = Annotated[int | None, Option("--receipt", min=1, help="What this request has left in the extractor.")]
Subjects = Annotated[list[str] | None, Option(help="All records about this person; repeatable.")]


CorePolicy = Annotated[
    Literal["refuse", "retrain", "keep-extractor"],
    Option(
        metavar="POLICY",
        help="For core records: refuse, retrain (slow, exact), or keep-extractor (fast, approximate: an audit is due).",
    ),
]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask. Scripts, and --json, need this.")]
