"""`maxrr verify`: what a person was given about a request, checked without workspace, data or network."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from maxrr.cli import show
from maxrr.cli.kinds_of_files import meant
from maxrr.cli.options import Json
from maxrr.cli.run import REFUTED, UNDECIDED, Stop

if TYPE_CHECKING:
    from maxrr.evidence import Check, Dossier

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
    from maxrr.evidence import Check, PublicKeys

    dossier, page = read(file)
    keys = PublicKeys.load(key).keys
    checks = dossier.check(keys)
    if page is not None:
        checks.append(compared(page, dossier))
    if log is not None:
        from maxrr.cli.log import log_in
        from maxrr.evidence.dossiers import difference_to_log

        why = difference_to_log(dossier, keys, log_in(log))
        checks.append(Check("log", SAME_LOG, not why, why))
    wrong = any(check.held is False for check in checks)
    holds = all(check.held for check in checks)
    if json:
        answer = [asdict(check) for check in checks]
        show.json({"holds": holds, "checks": answer, "receipt": None if wrong else said(dossier)})
    else:
        show.table(("claim", "holds"), [(check.claim, holding(check)) for check in checks])
        if not wrong:
            tell(dossier)
    if not holds:
        raise Stop(REFUTED if wrong else UNDECIDED)


def holding(check: Check) -> str:
    """Whether a claim holds, for people."""
    if check.held:
        return "yes"
    return show.Bad(f"{'not known' if check.held is None else 'no'}: {check.wrong}")


def read(file: Path) -> tuple[Dossier, str | None]:
    """The dossier in a file, and the page around it if there is one."""
    from maxrr.errors import EvidenceError
    from maxrr.evidence.dossiers import LARGEST_DOSSIER, Dossier
    from maxrr.files import read_regular

    content = read_regular(file, 2 * LARGEST_DOSSIER)
    try:
        if content.lstrip()[:1] == b"{":
            return Dossier.from_bytes(content), None
        from maxrr.report.dossier import dossier_in

        page = content.decode()
        return Dossier.from_bytes(dossier_in(page)), page
    except UnicodeDecodeError:
        raise EvidenceError(f"{file}: is neither a page nor JSON: it is not text in UTF-8") from None
    except EvidenceError as error:
        hint = meant(content, file)
        raise EvidenceError(f"{file}: {error}{'' if 'maxrr verify' in hint else hint}") from None


def compared(page: str, dossier: Dossier) -> Check:
    """Whether a page is the one that is made of its dossier; not known if another version made it."""
    from maxrr.errors import EvidenceError
    from maxrr.evidence import Check
    from maxrr.report.dossier import OtherVersion, require_same_page

    try:
        require_same_page(page, dossier)
    except OtherVersion as other:
        return Check("page", PAGE, None, str(other))
    except EvidenceError as error:
        return Check("page", PAGE, False, str(error))
    return Check("page", PAGE, True, "")


def said(dossier: Dossier) -> dict[str, object]:
    """The signed receipt, for programs."""
    from maxrr.evidence.envelopes import Statement

    return dict(Statement.from_bytes(dossier.envelope.payload).predicate)


def tell(dossier: Dossier) -> None:
    """What is proved, and what the signed receipt says, for people."""
    from maxrr.report.words import count
    from maxrr.unlearning.statements import HandedReceipt

    whose = "" if dossier.subject is None else f" (about {dossier.subject}, which is not signed)"
    ids = ", ".join(str(record.name) for record in dossier.records[:5]) + (" …" if len(dossier.records) > 5 else "")
    about = f"It is about {count(len(dossier.records), 'record')}{whose}: {ids}."
    try:
        sentences = [
            f"{about} The signed receipt says:",
            *HandedReceipt.from_bytes(dossier.envelope.to_bytes()).receipt.sentences,
        ]
    except ValueError:
        sentences = [about, "This version of maxrr cannot put the signed receipt into words: --json shows it as it is."]
    for sentence in sentences:
        show.say(sentence)
