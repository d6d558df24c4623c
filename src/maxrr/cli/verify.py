"""`maxrr verify`: what a person was given about a request, checked without workspace, data or network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from maxrr.cli import show
from maxrr.cli.options import Json
from maxrr.cli.run import REFUTED, UNDECIDED, Stop

if TYPE_CHECKING:
    from maxrr.evidence import Dossier

PAGE = "The page is, to the letter, the one that maxrr makes of what is inside it."
SAME_LOG = "The log that you have goes on from the state of it that is signed in here."


def verify(
    file: Annotated[
        Path, Argument(metavar="FILE", help="The page or the JSON file that `maxrr receipt for` made for a person.")
    ],
    key: Annotated[
        Path,
        Option(
            help="The operator's public key, a PEM file; it may hold several, former ones included. Get it from a "
            "place that you trust, and not from whoever gave you the page."
        ),
    ],
    log: Annotated[
        Path | None,
        Option(
            help="Also check that the log in this folder, as the operator publishes it today, was not rewritten since."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Check what a person was given about a request to forget: signature, proofs, log, and the page itself.

    Needs no workspace, no data and no network. A page is made again from what is inside it, and compared: so its own
    script need not be believed. Exits with 0 if everything holds, with 4 if something does not, and with 5 if all
    proofs hold but another version of maxrr made the page, so that its words cannot be compared.

    Examples:

        maxrr verify alice.html --key operator.pub
        maxrr verify alice.json --key operator.pub --log log/
    """
    from maxrr.evidence.public_keys import PublicKeys

    dossier, page = read(file)
    keys = PublicKeys.load(key).keys
    checks = {check.claim: check.wrong for check in dossier.check(keys)}
    undecided = False
    if page is not None:
        checks[PAGE], undecided = compared(page, dossier)
    if log is not None:
        from maxrr.cli.log import log_in
        from maxrr.evidence.dossier_checks import difference_to_log

        checks[SAME_LOG] = difference_to_log(dossier, keys, log_in(log))
    wrong = [why for claim, why in checks.items() if why and not (undecided and claim == PAGE)]
    if json:
        answer = [{"claim": claim, "wrong": why} for claim, why in checks.items()]
        show.json({"holds": not any(checks.values()), "checks": answer, "receipt": None if wrong else said(dossier)})
    else:
        rows = [(claim, show.Bad(f"no: {why}") if why else "yes") for claim, why in checks.items()]
        show.table(("claim", "holds"), rows)
        if not wrong:
            tell(dossier)
    if wrong or undecided:
        raise Stop(REFUTED if wrong else UNDECIDED)


def read(file: Path) -> tuple[Dossier, str | None]:
    """The dossier in a file, and the page around it if there is one."""
    from maxrr.errors import EvidenceError
    from maxrr.evidence.dossiers import LARGEST_DOSSIER, Dossier
    from maxrr.files import read_regular

    content = read_regular(file, 2 * LARGEST_DOSSIER)
    try:
        if content.lstrip()[:1] == b"{":
            return Dossier.from_bytes(content), None
        from maxrr.report import dossier_in

        page = content.decode()
        return Dossier.from_bytes(dossier_in(page)), page
    except UnicodeDecodeError:
        raise EvidenceError(f"{file}: is neither a page nor JSON: it is not text in UTF-8") from None
    except EvidenceError as error:
        raise EvidenceError(f"{file}: {error}") from None


def compared(page: str, dossier: Dossier) -> tuple[str, bool]:
    """What is wrong with a page, and whether that is not known because another version made it."""
    from maxrr.errors import EvidenceError
    from maxrr.report import OtherVersion, require_same_page

    try:
        require_same_page(page, dossier)
    except OtherVersion as other:
        return str(other), True
    except EvidenceError as error:
        return str(error), False
    return "", False


def said(dossier: Dossier) -> dict[str, object]:
    """The signed receipt, for programs."""
    from maxrr.evidence import Statement

    return dict(Statement.from_bytes(dossier.envelope.payload).predicate)


def tell(dossier: Dossier) -> None:
    """What is proved, and what the signed receipt says, for people."""
    from maxrr.report.receipts import receipt_of
    from maxrr.report.words import count

    whose = "" if dossier.subject is None else f" (about {dossier.subject}, which is not signed)"
    ids = ", ".join(str(record.id) for record in dossier.records[:5]) + (" …" if len(dossier.records) > 5 else "")
    show.say(f"It is about {count(len(dossier.records), 'record')}{whose}: {ids}. The signed receipt says:")
    for sentence in receipt_of(dossier).sentences:
        show.say(sentence)
