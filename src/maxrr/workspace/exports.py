"""What was exported from a workspace: its history notes each export, so that copies that are out of date are known.

A note is written before the export is, and sealed under the key of the workspace: it has the place of the export.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from maxrr.files import from_plain
from maxrr.unlearning.actions import Guarantee
from maxrr.workspace.sealing import seal, unseal

if TYPE_CHECKING:
    from maxrr.unlearning.receipts import Receipt


@dataclass(frozen=True)
class Note:
    """The note of an export. `of` names, under the key, the state that was exported."""

    id: str
    time: str
    kind: str
    path: str
    requests: int
    of: str

    @classmethod
    def new(cls, kind: str, path: str, requests: int, of: str) -> Note:
        """Make the note of an export that begins now."""
        time = datetime.now(UTC).isoformat(timespec="microseconds")
        return cls(secrets.token_hex(16), time, kind, place_of(path), requests, of)

    def sealed(self, key: bytes) -> str:
        return seal(sealing_key(key), asdict(self)).hex()


def sealing_key(key: bytes) -> bytes:
    """Derive the key that notes are sealed with."""
    return hmac.digest(key, b"maxrr notes of exports", "sha256")


def unseal_notes(key: bytes, notes: Iterable[str]) -> list[Note]:
    """Read the sealed notes of a history."""
    return [from_plain(Note, unseal(sealing_key(key), bytes.fromhex(note))) for note in notes]


@dataclass(frozen=True)
class Export:
    """A copy of the model that was made for others, and whether it is still right.

    Attributes
    ----------
    id : str
        Drawn at random when it was made. A serving folder has it, and so has a list of revocations.
    time : str
        When it was made, in UTC.
    kind : str
        "onnx" for a file, "serving" for a folder.
    path : str
        Where it was written.
    requests : int
        How many requests had been carried out by then.
    out_of_date : bool
        Whether the workspace has another model now, or other records: export again.
    revoked : bool
        Whether records were forgotten or replaced since, or left an extractor that had kept them. The copy still knows
        them.
    replaced : bool
        Whether a later export was written to the same place. Copies of this one may be elsewhere.
    """

    id: str
    time: str
    kind: str
    path: str
    requests: int
    out_of_date: bool
    revoked: bool
    replaced: bool


def state_under(key: bytes, model_hash: str, records: str) -> str:
    """Name a model and its records by an HMAC, so that nobody without the key can try out others."""
    return hmac.digest(key, f"export of {model_hash} on {records}".encode(), "sha256").hex()


def place_of(path: str) -> str:
    """Return one name for a place, however the path was written. A link at its end is not followed: an export replaces
    it.
    """
    folder, name = os.path.split(path)
    return os.path.realpath(path) if name == ".." else os.path.join(os.path.realpath(folder), name)


def describe_exports(notes: Sequence[Note], now: str, receipts: Iterable[Receipt]) -> list[Export]:
    """Describe exports: which are out of date beside the state `now`, and which know records that are gone."""
    last = last_erasure(receipts)
    latest = {(note.kind, os.path.normpath(note.path)): note.id for note in notes}
    return [
        Export(
            note.id, note.time, note.kind, note.path, note.requests,
            out_of_date=note.of != now or last > note.requests, revoked=last > note.requests,
            replaced=latest[note.kind, os.path.normpath(note.path)] != note.id,
        )
        for note in notes
    ]  # fmt: skip


def last_erasure(receipts: Iterable[Receipt]) -> int:
    """Return the number of the last request that made earlier copies know more than the model; 0 if none did.

    It forgot or replaced records, or trained an extractor again that had kept some.
    """
    last = kept = 0
    for receipt in receipts:
        if receipt.tombstones or (kept and receipt.guarantee == Guarantee.retrain):
            last = receipt.number
        kept = receipt.core_left_in_extractor
    return last
