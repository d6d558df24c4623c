"""`maxrr receipt`: a receipt in words, and what the person gets whom it is about."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from maxrr.cli import outputs, show
from maxrr.cli.options import Folder, Json
from maxrr.cli.run import FAILED, REFUTED, USAGE, Stop
from maxrr.cli.workspaces import opened
from maxrr.errors import UnknownReceipt, UnreadableFile
from maxrr.plain_text import count

if TYPE_CHECKING:
    from maxrr.unlearning import Receipt
    from maxrr.unlearning.statements import HandedReceipt
    from maxrr.workspace import Workspace

LARGEST = 64 << 20  # bytes of a receipt, which names a record in about a hundred
Named = Annotated[str | None, Argument(metavar="RECEIPT", help="A receipt of the workspace: its number, or its file.")]


def present(
    place: Annotated[Path, Argument(metavar="WORKSPACE", help="The workspace that has it; or the receipt's file.")],
    receipt: Named = None,
    out: Annotated[
        Path | None,
        Option(help="Also write the receipt to this file, as it can be handed out. A receipt there is replaced."),
    ] = None,
    json: Json = False,
) -> None:
    """Show a receipt in words: what was promised, what was done, and what it depends on.

    Examples:

        maxrr receipt show ws/ 1
        maxrr receipt show ws/ 1 --out receipt.json
        maxrr receipt show receipt.json
    """
    if out is not None:
        outputs.check(out, "a receipt", lambda file: bool(read(file)))
    file = place if receipt is None else Path(receipt)
    handed = receipt_in_folder(place, receipt) if receipt is not None and receipt.isdecimal() else read(file)
    if out is not None:
        from maxrr.files import write_atomically

        write_atomically(out, handed.to_bytes())
    said = handed.receipt
    if json:
        show.json({name: value for name, value in asdict(said).items() if value is not None})
        return
    for sentence in said.sentences:
        show.say(sentence)
    signed = []
    if handed.envelope is not None:
        signed = [("signed by the key", f"{handed.envelope.key_id}, which maxrr verify --key checks")]
    show.facts([*said.states, *signed])


def receipt_in_folder(workspace: Path, number: str) -> HandedReceipt:
    """Return a receipt of a workspace, without making the model."""
    from maxrr.workspace import overview

    found = overview(workspace).handed
    if not 1 <= int(number) <= len(found):
        raise UnknownReceipt(f"{workspace} has no receipt {number}: it has {len(found) or 'none'}")
    return found[int(number) - 1]


def read(path: Path) -> HandedReceipt:
    """Read a receipt from a file: an envelope, or the text of an unsigned one."""
    from maxrr.files import read_regular
    from maxrr.unlearning.statements import HandedReceipt

    try:
        return HandedReceipt.from_bytes(read_regular(path, LARGEST))
    except UnicodeDecodeError:
        raise UnreadableFile(f"{path}: is not a receipt: it is not text in UTF-8") from None
    except ValueError as error:
        raise UnreadableFile(f"{path}: {error}") from None


def receipt_of(workspace: Workspace, name: str) -> HandedReceipt:
    """Return a receipt by number or file; refuse one that this workspace did not hand out, which cannot be replayed
    here.
    """
    if name.isdecimal():
        return workspace.receipt(int(name))
    given = read(Path(name))
    if why := difference(workspace, given.receipt):
        raise Stop(REFUTED, f"{name} is not a receipt that {workspace.folder} handed out: {why}", "other-workspace")
    return given


def difference(workspace: Workspace, receipt: Receipt) -> str:
    """How a receipt differs from the one that the workspace handed out under its number; nothing if it does not."""
    requests = workspace.status().requests
    if not 1 <= receipt.number <= requests:
        return f"it has {count(requests, 'receipt')}, and this is number {receipt.number}"
    handed = workspace.receipt(receipt.number).receipt
    if handed.digest == receipt.digest:
        return ""
    ours, given = asdict(handed), asdict(receipt)
    other = [name for name in ours if dumps(ours[name]) != dumps(given[name])]  # 1 is not written as 1.0
    return f"its receipt {receipt.number} has another {', '.join(other)}"


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
        list[str] | None, Option(help="About which record, by its id, where --subject names nobody; may be repeated.")
    ] = None,
) -> None:
    """Write what the person gets whom a request was about: a page in plain words that checks itself, with the signed
    receipt and the proofs that their records were there and are gone.

    The page holds the ids of the records and their salts: it is for this person, and for nobody else.

    Examples:

        maxrr receipt for ws/ 12 --subject alice --out alice.html
        maxrr receipt for ws/ 12 --id 17 --out record-17.json
    """
    from maxrr.cli.verify import dossier_in
    from maxrr.evidence import Dossier
    from maxrr.files import write_atomically

    if (subject is None) == (id is None):
        raise Stop(USAGE, "say whom it is for with --subject, or about which records with --id: one of them")
    if out.suffix not in (".html", ".json"):
        raise Stop(USAGE, "--out is a page, such as alice.html, or a JSON file, such as alice.json")
    outputs.check(out, "such a page or file", dossier_in)
    with opened(folder, read_only=True) as workspace:
        said = workspace.dossier(number, subject=subject, ids=id)
    dossier = Dossier.from_object(said)
    if wrong := [check.wrong for check in dossier.check(dossier.keys) if not check.held]:
        raise Stop(FAILED, f"{folder} gives no proof that holds: {wrong[0]}. Nothing was written")
    if out.suffix == ".json":
        content = dossier.to_bytes() + b"\n"
    else:
        from maxrr.report.dossier import dossier_page

        content = dossier_page(dossier).encode()
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, content, private=True)
    show.say(f"Wrote {show.near(out)}. Your public keys, which maxrr key show --out operator.pub writes, check it:")
    show.say(f"maxrr verify {show.near(out)} --key operator.pub")
