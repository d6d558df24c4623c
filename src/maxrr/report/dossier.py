"""The page that a person gets: its words are in `templates/dossier.html.jinja`, its checks in `scripts`.

The page is a function of the dossier alone, so that whoever has the dossier inside can make the page again and compare.
"""

import base64
import hashlib
import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from itertools import zip_longest

from markupsafe import Markup

from maxrr.errors import EvidenceError, PageChanged
from maxrr.evidence import Dossier
from maxrr.evidence.dossiers import CLAIMS
from maxrr.evidence.envelopes import Statement
from maxrr.plain_text import STEERING, tame
from maxrr.report.page import environment, render
from maxrr.report.words import day
from maxrr.unlearning.receipts import depending, in_words
from maxrr.unlearning.statements import receipt_in
from maxrr.version import __version__

SCRIPTS = ("check_dossier.js", "find_record.js", "dossier_page.js")
BEGIN, END = '<script type="application/json" id="%s">', "</script>"
VERSION = '<meta name="maxrr-version" content="%s">'
SHOWN = 50  # records that the page lists
UNSAFE = re.compile(f"[<>&]|{STEERING.pattern}")  # in JSON that stands in a page, where it is in strings only


class OtherVersion(EvidenceError):
    """A page that another version of this library made: it cannot be compared with the one that this version makes."""


def dossier_page(dossier: Dossier) -> str:
    """One self-contained HTML page for the person whom a dossier is about.

    It says in plain words what was done and promised, and checks the dossier inside it in the browser, without network.

    Parameters
    ----------
    dossier : maxrr.evidence.Dossier
        What the person gets. It is not checked here.

    Returns
    -------
    str
        The page: always the same for the same dossier, by the same version of this library.

    Raises
    ------
    ValueError
        The signed statement is no receipt that can be read.
    """
    receipt = receipt_in(Statement.from_bytes(dossier.envelope.payload))  # whoever signed it
    script = script_of_page()
    return render(
        __package__,
        "dossier.html.jinja",
        dossier=dossier,
        operator=None if dossier.operator is None else tame(dossier.operator),
        json=as_markup(dossier.to_bytes()),
        receipt=receipt,
        statement=dossier.envelope.payload.decode(),
        day=day(receipt.time),
        sentences=[tame(sentence) for sentence in in_words(receipt)],
        conditions=[tame(condition) for condition in receipt.conditions],
        depending=depending,
        subject=None if dossier.subject is None else tame(str(dossier.subject)),
        ids=[tame(str(record.name)) for record in dossier.records[:SHOWN]],
        claims=CLAIMS,
        script=script,
        script_hash=policy_hash(script),
        style_hash=policy_hash(environment(__package__).get_template("look.css").render()),
        version=Markup(VERSION % __version__),
    )


def dossier_in(page: str, kind: str = "dossier") -> bytes:
    """The dossier inside a page, or what else the page has inside it.

    Parameters
    ----------
    page : str
        What a file holds.
    kind : str
        What it is called in the page.

    Returns
    -------
    bytes
        Its JSON, which is not read yet.

    Raises
    ------
    maxrr.errors.EvidenceError
        There is none, or more than one.
    """
    parts = page.split(BEGIN % kind)
    if len(parts) != 2 or END not in parts[1]:
        raise EvidenceError(f"this page has no {kind} in it, or more than one")
    return parts[1].partition(END)[0].encode("utf-8", "surrogatepass")


def require_same_page(page: str, make: Callable[[], str]) -> None:
    """Refuse a page that is not, to the letter, the one that this library makes of what is inside it.

    Parameters
    ----------
    page : str
        The page that somebody was given.
    make : function
        Makes the page again.

    Raises
    ------
    OtherVersion
        Another version of this library made the page.
    maxrr.errors.EvidenceError
        Something in the page was changed: its words, its look or its script.
    """
    if VERSION % __version__ not in page:
        said = re.search(VERSION % "([0-9A-Za-z.+-]{1,40})", page)
        raise OtherVersion(
            f"the page says that maxrr {said[1] if said else 'of an unknown version'} made it, and this is "
            f"{__version__}: use that version to compare its words"
        )
    try:
        expected = make()
    except ValueError as error:
        raise EvidenceError(f"no page can be made of it: {error}") from None
    if page == expected:
        return
    lines = zip_longest(page.split("\n"), expected.split("\n"))
    line = next(number for number, (one, other) in enumerate(lines, start=1) if one != other)
    raise PageChanged(f"the page was changed: from line {line} on it is not what is made of what is inside it")


def as_markup(content: bytes) -> Markup:
    """Write JSON so that it can stand in a page."""
    return Markup(UNSAFE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", content.decode()))


@cache
def script_of_page() -> Markup:
    """Join the scripts that check a dossier in the browser."""
    folder = resources.files(__package__) / "scripts"
    return Markup("\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS))


def policy_hash(content: str) -> str:
    """Hash a script or style for the policy of a page, which allows no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
