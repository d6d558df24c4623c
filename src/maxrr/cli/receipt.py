"""`maxrr receipt`: read a receipt, and check it."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from maxrr.cli import outputs, show
from maxrr.cli.kinds_of_files import meant
from maxrr.cli.options import WAIT, Json, Wait
from maxrr.cli.run import FAILED, REFUTED, USAGE, Stop
from maxrr.cli.workspaces import opened
from maxrr.plain_text import count

if TYPE_CHECKING:
    from maxrr.evidence import PublicKey
    from maxrr.unlearning import Receipt
    from maxrr.unlearning.statements import HandedReceipt
    from maxrr.workspace import Workspace

LARGEST = 64 << 20  # bytes of a receipt, which names a record in about a hundred
File = Annotated[Path, Argument(metavar="FILE", help="The receipt, a JSON file: signed or not.")]
Keys = Annotated[
    list[Path] | None,
    Option(
        "--key",
        help="Also check that the receipt is signed by a key in this file: the operator's public keys, as `maxrr key "
        "show --out` wrote them; may be repeated.",
    ),
]


def present(
    place: Annotated[
        Path, Argument(metavar="FILE", help="The receipt, a JSON file, signed or not; or the workspace that has it.")
    ],
    number: Annotated[int | None, Argument(help="The number of the receipt, where a workspace is named.")] = None,
    key: Keys = None,
    out: Annotated[
        Path | None,
        Option(help="Also write the receipt to this file, as it can be handed out. A receipt there is replaced."),
    ] = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Show a receipt in words: what was promised, what was done, and what it depends on.

    Examples:

        maxrr receipt show ws/ 1
        maxrr receipt show ws/ 1 --out receipt.json
        maxrr receipt show receipt.json --key operator.pub
    """
    if out is not None:
        outputs.check(out, "a receipt", lambda file: bool(read(file)))
    handed = read(place) if number is None else kept(place, number, wait)
    if key is not None and (why := unsigned(handed, trusted(key))):
        raise Stop(REFUTED, f"{place}: {why}")
    if out is not None:
        from maxrr.files import write_atomically

        write_atomically(out, handed.to_bytes())
    receipt = handed.receipt
    if json:
        show.json({name: value for name, value in asdict(receipt).items() if value is not None})
        return
    for sentence in receipt.sentences:
        show.say(sentence)
    show.facts([*receipt.states, *signatures(handed, checked=key is not None)])


def verify(
    file: File,
    key: Keys = None,
    statement: Annotated[
        list[Path] | None,
        Option(
            help="Also check a signed replay or audit of this receipt, as `maxrr replay --statement` wrote it: that it "
            "is about this receipt, and signed by a key in --key; may be repeated."
        ),
    ] = None,
    workspace: Annotated[
        Path | None,
        Option(
            help="Also check that this workspace handed out the receipt, just so, and holds no record that it has "
            "forgotten."
        ),
    ] = None,
    id: Annotated[
        str | None,
        Option(
            help="Also check that the record with this id is among the forgotten or replaced ones, and say which. "
            "Needs --workspace, whose key recognises it."
        ),
    ] = None,
    subject: Annotated[
        str | None,
        Option(
            help="Also check that by this request no record was left about this person. Needs --workspace, whose key "
            "recognises the subject id."
        ),
    ] = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Check a receipt: that it contradicts itself nowhere and claims no more than the certificates on it carry; with
    --key, that it is signed; with --workspace, that it was handed out there, and that no forgotten record is there
    again.

    Exits with 0 if everything checked is so, and with 4 if something is not. Whether the model is the one that training
    without the records gives, `maxrr replay` tells. Records are named by tombstones, which only the workspace's key can
    make: so --id and --subject need --workspace.

    Examples:

        maxrr receipt verify receipt.json --key operator.pub
        maxrr receipt verify receipt.json --key operator.pub --statement replay.json
        maxrr receipt verify receipt.json --workspace ws/ --id 17
        maxrr receipt verify receipt.json --workspace ws/ --subject anna
    """
    if (id is not None or subject is not None) and workspace is None:
        named = "--subject" if id is None else "--id"
        raise Stop(USAGE, f"{named} needs --workspace: only its key can recognise a record or a person on a receipt")
    if statement and key is None:
        raise Stop(USAGE, "--statement needs --key, with the public key of whoever signed it")
    from maxrr.unlearning import contradictions

    handed = read(file)
    receipt = handed.receipt
    checks = {"it does not contradict itself, and claims what its heads carry": "; ".join(contradictions(receipt))}
    if key is not None:
        keys = trusted(key)
        checks[f"it is signed by a key of {' or '.join(map(str, key))}"] = unsigned(handed, keys)
        for path in statement or ():
            claim, why = said_about(path, handed, keys)
            checks[f"{path} {claim}"] = why
    if workspace is not None:
        with opened(workspace, wait, read_only=True) as found:
            checks[f"{workspace} handed it out"] = difference(found, receipt)
            checks["none of the forgotten records is there"] = held(found)
            if id is not None:
                claim, why = standing(found, receipt, id)
                checks[f"record {id} {claim}"] = why
            if subject is not None:
                person = found.find(subject=subject)
                on_it = receipt.number in person.receipts
                checks[f"no record was left about {subject}"] = "" if on_it else "the person is not on the receipt"
                checks[f"no record about {subject} is there"] = "some are" if person.here else ""
    holds = not any(checks.values())
    if json:
        show.json({"holds": holds, "checks": [{"claim": claim, "wrong": why} for claim, why in checks.items()]})
    else:
        rows = [(claim, show.Bad(f"no: {why}") if why else "yes") for claim, why in checks.items()]
        show.table(("claim", "holds"), rows)
        if handed.envelope is not None and key is None:
            show.say("It is signed; by whom, --key checks.")
    if not holds:
        raise Stop(REFUTED)


def kept(workspace: Path, number: int, wait: float) -> HandedReceipt:
    """A receipt that a workspace has handed out."""
    from maxrr.workspace import overview

    found = overview(workspace, wait=wait).handed
    if not 1 <= number <= len(found):
        raise Stop(FAILED, f"{workspace} has no receipt {number}: it has {len(found) or 'none'}")
    return found[number - 1]


def read(path: Path) -> HandedReceipt:
    """A receipt from a file: an envelope, or the text of one that is not signed."""
    from maxrr.files import read_regular
    from maxrr.unlearning.statements import HandedReceipt

    content = read_regular(path, LARGEST)
    try:
        return HandedReceipt.from_bytes(content)
    except UnicodeDecodeError:
        raise Stop(FAILED, f"{path}: is not a receipt: it is not text in UTF-8") from None
    except ValueError as error:
        raise Stop(FAILED, f"{path}: {error}{meant(content, path)}") from None


def trusted(files: list[Path]) -> list[PublicKey]:
    """All keys in these files."""
    from maxrr.evidence import PublicKeys

    return [key for file in files for key in PublicKeys.load(file).keys]


def unsigned(handed: HandedReceipt, keys: list[PublicKey]) -> str:
    """Why a receipt is not signed by one of these keys; nothing if it is."""
    from maxrr.errors import EvidenceError

    try:
        handed.verify(keys)
    except EvidenceError as error:
        return str(error)
    return ""


def signatures(handed: HandedReceipt, *, checked: bool) -> list[tuple[str, str]]:
    """Which keys a receipt says that it is signed with."""
    if handed.envelope is None:
        return []
    note = "" if checked else ", which --key checks"
    return [("signed by the key", f"{each.key_id}{note}") for each in handed.envelope.signatures]


def said_about(path: Path, handed: HandedReceipt, keys: list[PublicKey]) -> tuple[str, str]:
    """What a signed statement says of a receipt, and what is wrong with it: nothing, if it is about the receipt."""
    from maxrr.errors import EvidenceError
    from maxrr.evidence import Envelope
    from maxrr.files import read_regular
    from maxrr.unlearning.statements import check_about

    try:
        said = check_about(Envelope.from_bytes(read_regular(path, LARGEST)), handed, keys)
    except EvidenceError as error:
        return "is a signed statement about it", str(error)
    kind = said.predicate_type.removesuffix("/v1").rpartition("/")[2]
    result = said.predicate.get("outcome") or said.predicate.get("words")
    return f"is a signed {kind} of it, with the result: {result}", ""


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


def standing(workspace: Workspace, receipt: Receipt, id: str) -> tuple[str, str]:
    """What a receipt says of a record, and what is wrong with that: nothing, if the record is on it."""
    named = workspace.model.on_receipt(receipt, [id])
    if named.replaced.any():
        return "is among the replaced ones: another is in its place", ""
    if named.before.any() and not named.forgotten.any():
        return "had been forgotten or replaced before", ""
    return "is among the forgotten ones", "" if named.forgotten.any() else "its tombstone is not on the receipt"


def held(workspace: Workspace) -> str:
    """How many records are there that the workspace has forgotten; nothing if there are none."""
    model = workspace.model
    back = int(model.has_forgotten(model.ids_of()).sum())
    return f"{back:,} of them {'is' if back == 1 else 'are'}" if back else ""
