"""Statements about a receipt that a command signs: a replay, an audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from maxrr.cli import show
from maxrr.cli.key import check_outside_workspaces, signing_key
from maxrr.cli.options import PLACES
from maxrr.cli.run import FAILED, USAGE, Stop

if TYPE_CHECKING:
    from maxrr.evidence import SigningKey, Statement

StatementFile = Annotated[
    Path | None,
    Option(
        help="Write the result to this file as a signed statement about the receipt, which `maxrr receipt verify "
        "--statement` checks. An earlier statement there is replaced, nothing else is."
    ),
]
StatementKey = Annotated[
    Path | None,
    Option(help=f"With --statement: the file of your private key, which signs it. If not given, {PLACES}."),
]


def signer(file: Path | None, key: Path | None) -> SigningKey | None:
    """The key for a statement, if one is wanted: found before the work is done, as is a place for the file."""
    from maxrr.evidence import Envelope
    from maxrr.files import read_regular

    if file is None:
        if key is not None:
            raise Stop(USAGE, "--key signs a statement: name the file to write with --statement")
        return None
    found = signing_key(key)
    check_outside_workspaces(file)
    if file.exists():
        try:
            Envelope.from_bytes(read_regular(file))
        except ValueError:
            raise Stop(FAILED, f"{file} is there already, and is no signed statement: name another file") from None
    return found


def write(statement: Statement, file: Path, key: SigningKey, *, quiet: bool) -> None:
    """Sign a statement, and write it."""
    from maxrr.evidence import Envelope
    from maxrr.files import write_atomically

    write_atomically(file, Envelope.sign(statement, key).to_bytes())
    if not quiet:
        show.say(f"Wrote {show.near(file)}, signed by the key {key.public.id}.")
