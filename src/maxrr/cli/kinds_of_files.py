"""What a file is that a command cannot use, and which command is for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

KINDS = {"receipt": "a signed receipt", "replay": "a signed replay", "audit": "a signed audit"}


def meant(content: bytes, file: Path) -> str:
    """A sentence to go on with after an error: what the file is, and the command for it; nothing if that is unknown."""
    from maxrr.errors import EvidenceError
    from maxrr.evidence.dossiers import DOSSIER_TYPE
    from maxrr.evidence.exact_text import read_json

    if content.lstrip()[:1] == b"<":
        return page(content, file)
    if content.startswith(b"-----BEGIN PUBLIC KEY-----"):
        return ". It is a file of public keys: name it with --key"
    if content.startswith(b"-----BEGIN PRIVATE KEY-----"):
        return ". It is a private key"
    try:
        said = read_json(content, "the file")
    except EvidenceError:
        return ""
    if not isinstance(said, dict):
        return ""
    if said.get("type") == DOSSIER_TYPE:
        return f". It is what a person gets about a request: maxrr verify {file} --key operator.pub"
    if "payload" in said and "signatures" in said:
        return envelope(content, file)
    if "guarantee" in said and "tombstones" in said:
        return f". It is a receipt that is not signed: maxrr receipt show {file}"
    return ""


def page(content: bytes, file: Path) -> str:
    """Of a page."""
    from maxrr.report.dossier import BEGIN

    if BEGIN.encode() not in content:
        return ". It is a page, and not one that `maxrr receipt for` made"
    return f". It is the page that a person gets about a request: maxrr verify {file} --key operator.pub"


def envelope(content: bytes, file: Path) -> str:
    """Of an envelope, by what it says that it holds: nothing of it was checked."""
    from maxrr.errors import EvidenceError
    from maxrr.evidence import Envelope
    from maxrr.evidence.envelopes import Statement

    try:
        said: Any = Statement.from_bytes(Envelope.from_bytes(content).payload).predicate_type
    except EvidenceError:
        return ". It is an envelope that cannot be read"
    name = said.removesuffix("/v1").rpartition("/")[2]
    if name == "receipt":
        return f". It is {KINDS[name]}: maxrr receipt verify {file} --key operator.pub"
    if name in KINDS:
        return (
            f". It is {KINDS[name]} of a receipt: maxrr receipt verify RECEIPT --key operator.pub --key auditor.pub "
            f"--statement {file}"
        )
    return ". It is a signed statement about something else"
