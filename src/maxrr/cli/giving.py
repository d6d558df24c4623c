"""`maxrr receipt for`: what the person gets whom a request was about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from maxrr.cli import outputs, show
from maxrr.cli.options import WAIT, Folder, Wait
from maxrr.cli.run import FAILED, USAGE, Stop
from maxrr.cli.verify import read
from maxrr.cli.workspaces import opened

if TYPE_CHECKING:
    from maxrr.evidence import Dossier


def give(
    folder: Folder,
    number: Annotated[int, Argument(metavar="NUMBER", help="The number of the receipt: they are counted from 1.")],
    out: Annotated[
        Path, Option(help="The file to write: a page (.html), which is for people, or the same as JSON (.json).")
    ],
    subject: Annotated[
        str | None, Option(help="Whom it is for: all records about this person that the request was about.")
    ] = None,
    id: Annotated[
        list[str] | None,
        Option(help="About which record, by its id, where --subject names nobody; may be repeated."),
    ] = None,
    wait: Wait = WAIT,
) -> None:
    """Write what the person gets whom a request was about: a page in plain words that checks itself, with the signed
    receipt and the proofs that their records were there and are gone.

    The page holds the ids of the records and their salts: it is for this person, and for nobody else.

    Examples:

        maxrr receipt for ws/ 12 --subject alice --out alice.html
        maxrr receipt for ws/ 12 --id 17 --out record-17.json
    """
    if (subject is None) == (id is None):
        raise Stop(USAGE, "say whom it is for with --subject, or about which records with --id: one of them")
    if out.suffix not in (".html", ".json"):
        raise Stop(USAGE, "--out is a page, such as alice.html, or a JSON file, such as alice.json")
    from maxrr.evidence import Dossier
    from maxrr.files import write_atomically

    outputs.check(out, "such a page or file", read)
    with opened(folder, wait, read_only=True) as workspace:
        dossier = Dossier.from_object(dossier_of(workspace, number, subject, id))
    if wrong := [check.wrong for check in dossier.check(dossier.keys) if not check.held]:
        raise Stop(FAILED, f"{folder} gives no proof that holds: {wrong[0]}. Nothing was written")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, content_of(dossier, out), private=True)
    show.say(f"Wrote {show.near(out)}. Check it with maxrr verify {show.near(out)} --key operator.pub")


def dossier_of(workspace: Any, number: int, subject: str | None, ids: list[str] | None) -> object:
    """What a workspace has for a person about a request, by ids as the shell passes them."""
    if subject is not None:
        return workspace.dossier(number, subject=workspace.model.kind_.subjects([subject]).tolist()[0])
    return workspace.dossier(number, ids=workspace.model.kind_.ids(ids or []).tolist())


def content_of(dossier: Dossier, out: Path) -> bytes:
    """What a person gets, as a page or as JSON."""
    if out.suffix == ".json":
        return dossier.to_bytes() + b"\n"
    from maxrr.report.dossier import dossier_page

    return dossier_page(dossier).encode()
