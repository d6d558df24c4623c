"""Statements about a receipt that a command signs: a replay, an audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from maxrr.cli import outputs, show
from maxrr.cli.key import signing_key
from maxrr.cli.options import PLACES
from maxrr.cli.run import USAGE, Stop

if TYPE_CHECKING:
    from maxrr.evidence import SigningKey
    from maxrr.evidence.envelopes import Statement

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


def signer(file: Path | None, key: Path | None, kind: str) -> SigningKey | None:
    """The key for a statement of this kind, if one is wanted: found before the work, as is a place for the file."""
    from maxrr.evidence import Envelope
    from maxrr.evidence.envelopes import Statement
    from maxrr.files import read_regular

    def is_one(path: Path) -> bool:
        said = Statement.from_bytes(Envelope.from_bytes(read_regular(path)).payload)
        return said.predicate_type.endswith(f"/{kind}/v1")

    if file is None:
        if key is not None:
            raise Stop(USAGE, "--key signs a statement: name the file to write with --statement")
        return None
    outputs.check(file, f"a signed {kind}", is_one)
    return signing_key(key)


def write(statement: Statement, file: Path, key: SigningKey, *, quiet: bool) -> None:
    """Sign a statement, and write it."""
    from maxrr.evidence import Envelope
    from maxrr.files import write_atomically

    write_atomically(file, Envelope.sign(statement, key).to_bytes())
    if not quiet:
        show.say(f"Wrote {show.near(file)}, signed by the key {key.public.id}.")
