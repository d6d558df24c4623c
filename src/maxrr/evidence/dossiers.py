"""What a person gets about a request: the signed receipt, and proofs about their records that nobody else needs.

Reading is strict, and believes nothing: `maxrr.evidence.dossier_checks` tells what of it holds.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from maxrr.errors import EvidenceError
from maxrr.evidence.dossier_checks import Check, check_dossier
from maxrr.evidence.envelopes import Envelope
from maxrr.evidence.exact_text import canonical_json, exactly, from_hex, read_json, text
from maxrr.evidence.log_proofs import Inclusion
from maxrr.evidence.proofs import Absence, Presence
from maxrr.evidence.signing import PublicKey

DOSSIER_TYPE = "https://maxrr.dev/dossier/v1"
LARGEST_DOSSIER = 64 << 20  # bytes: a record has about five thousand
MOST_RECORDS = 10_000
MOST_KEYS = 64
LONGEST_ID = 1_000  # characters, as everywhere
LONGEST_LAYOUT = 1 << 16  # bytes
FIELDS = ("type", "envelope", "subject", "records", "record_layout", "log", "keys")


@dataclass(frozen=True)
class DossierRecord:
    """One record that a request was about, and the proofs of what became of it.

    Attributes
    ----------
    id : int or str
        The record id.
    salt : bytes
        The record's salt, which says where it stands in a commitment (`key_of`).
    value : bytes
        What the commitment before the request said of it (`value_of`).
    before : Presence
        That it was in that commitment.
    after : Absence or Presence
        That it is not in the commitment after the request; or, where it was replaced, that another content is.
    after_value : bytes or None
        What the commitment after the request says of it, where it was replaced.
    """

    id: int | str
    salt: bytes
    value: bytes
    before: Presence
    after: Absence | Presence
    after_value: bytes | None = None

    @property
    def replaced(self) -> bool:
        """Whether another content took its place."""
        return self.after_value is not None

    @property
    def identifier(self) -> bytes:
        """The id as it is hashed: 1 and '1' differ."""
        if isinstance(self.id, int):
            return b"int:%d" % self.id
        return b"str:" + self.id.encode("utf-8", "surrogatepass")

    def to_object(self) -> dict[str, Any]:
        """The record as an object that JSON can say.

        Returns
        -------
        dict
            Its fields; bytes in hexadecimal digits, `after_value` only where there is one.
        """
        said = {
            "id": {"int": self.id} if isinstance(self.id, int) else {"str": self.id},
            "salt": self.salt.hex(), "value": self.value.hex(),
            "before": self.before.to_object(), "after": self.after.to_object(),
        }  # fmt: skip
        return said if self.after_value is None else said | {"after_value": self.after_value.hex()}

    @classmethod
    def from_object(cls, said: Any) -> Self:
        """Read a record strictly.

        Parameters
        ----------
        said
            What `to_object` gave.

        Returns
        -------
        DossierRecord
            The record; nothing is proved yet.

        Raises
        ------
        EvidenceError
            It is not of this form.
        """
        replaced = ("after_value",) if isinstance(said, dict) and "after_value" in said else ()
        said = exactly(said, ("id", "salt", "value", "before", "after", *replaced), "a record of the dossier")
        after: Absence | Presence
        try:
            before = Presence.from_object(said["before"])
            after = Presence.from_object(said["after"]) if replaced else Absence.from_object(said["after"])
        except ValueError as error:
            raise EvidenceError(f"a proof of the dossier cannot be read: {error}") from None
        return cls(
            _id(said["id"]), from_hex(said["salt"], "a salt"), from_hex(said["value"], "a value"), before, after,
            from_hex(said["after_value"], "a value") if replaced else None,
        )  # fmt: skip


@dataclass(frozen=True)
class Dossier:
    """What a person gets about a request. Nothing in it is to be believed before `check` says that all of it holds.

    Attributes
    ----------
    envelope : Envelope
        The signed receipt.
    subject : int, str or None
        Whom the records are about, if that is known. It is part of each record's hash, and is not signed otherwise.
    records : tuple of DossierRecord
        The person's records that the request was about: at least one, and none twice.
    record_layout : bytes
        Type and shape of a record's inputs, as they are hashed with it.
    origin : str
        The name of the log.
    checkpoint : str
        A checkpoint of the log, a signed note.
    inclusion : Inclusion
        That the receipt is in the log of that checkpoint.
    keys : tuple of PublicKey
        With which keys the receipt and the checkpoint are signed. They vouch for nothing: trust comes from a key that
        the reader has from elsewhere.
    """

    envelope: Envelope
    subject: int | str | None
    records: tuple[DossierRecord, ...]
    record_layout: bytes
    origin: str
    checkpoint: str
    inclusion: Inclusion
    keys: tuple[PublicKey, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.records) <= MOST_RECORDS:
            raise EvidenceError(f"a dossier is about 1 to {MOST_RECORDS:,} records, not {len(self.records):,}")
        if len({record.identifier for record in self.records}) < len(self.records):
            raise EvidenceError("the dossier has a record twice")
        if not 1 <= len(self.keys) <= MOST_KEYS or len(set(self.keys)) < len(self.keys):
            raise EvidenceError(f"a dossier has 1 to {MOST_KEYS} keys, and none twice")

    def check(self, keys: Sequence[PublicKey]) -> list[Check]:
        """Check all of it. Needs nothing else: no workspace, no data, no network.

        Parameters
        ----------
        keys : sequence of PublicKey
            The operator's keys, from a source that the reader trusts.

        Returns
        -------
        list of Check
            One for each claim, always in the same order. The dossier is verified if every one holds.
        """
        return check_dossier(self, keys)

    def to_object(self) -> dict[str, Any]:
        """The dossier as an object that JSON can say.

        Returns
        -------
        dict
            Its fields, as docs/evidence.md lists them.
        """
        return {
            "type": DOSSIER_TYPE,
            "envelope": read_json(self.envelope.to_bytes(), "the envelope"),
            "subject": self.subject,
            "records": [record.to_object() for record in self.records],
            "record_layout": self.record_layout.hex(),
            "log": {
                "origin": self.origin, "checkpoint": self.checkpoint, "inclusion": self.inclusion.to_object(),
            },
            "keys": [key.pem.decode() for key in self.keys],
        }  # fmt: skip

    def to_bytes(self) -> bytes:
        """The dossier as JSON.

        Returns
        -------
        bytes
            Names sorted, no spaces, UTF-8.
        """
        return canonical_json(self.to_object())

    @classmethod
    def from_object(cls, said: Any) -> Self:
        """Read a dossier strictly; nothing in it is verified yet.

        Parameters
        ----------
        said
            What `to_object` gave.

        Returns
        -------
        Dossier
            What was read.

        Raises
        ------
        EvidenceError
            It is no dossier, lacks a field or has one that is not known, or is larger than one can be.
        """
        if not isinstance(said, dict) or said.get("type") != DOSSIER_TYPE:
            raise EvidenceError(f"this is no dossier: it is not of the type {DOSSIER_TYPE}")
        said = exactly(said, FIELDS, "the dossier")
        log = exactly(said["log"], ("origin", "checkpoint", "inclusion"), "the dossier's log")
        for name in ("records", "keys"):
            if not isinstance(said[name], list):
                raise EvidenceError(f"the dossier's {name} are not a list")
        return cls(
            Envelope.from_bytes(canonical_json(said["envelope"])),
            None if said["subject"] is None else _plain_id(said["subject"], "the subject"),
            tuple(DossierRecord.from_object(each) for each in said["records"][: MOST_RECORDS + 1]),
            _layout(said["record_layout"]),
            text(log["origin"], "the log's name"), text(log["checkpoint"], "the checkpoint"),
            Inclusion.from_object(log["inclusion"]),
            tuple(_key(each) for each in said["keys"][: MOST_KEYS + 1]),
        )  # fmt: skip

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a dossier from JSON, in whatever order and spacing.

        Parameters
        ----------
        data : bytes
            The JSON text.

        Returns
        -------
        Dossier
            What was read, as by `from_object`.

        Raises
        ------
        EvidenceError
            As `from_object`; or it is not JSON.
        """
        if len(data) > LARGEST_DOSSIER:
            raise EvidenceError("the dossier is too large to be one")
        return cls.from_object(read_json(data, "the dossier"))


def _id(said: Any) -> int | str:
    """A record id: an object that says of which type it is, for programs that have one type of numbers."""
    if not isinstance(said, dict) or len(said) != 1 or not said.keys() <= {"int", "str"}:
        raise EvidenceError("a record id of the dossier is neither an 'int' nor a 'str'")
    [(kind, value)] = said.items()
    if type(value) is not {"int": int, "str": str}[kind]:
        raise EvidenceError(f"a record id of the dossier is said to be an {kind!r}, and is not")
    return _plain_id(value, "a record id")


def _plain_id(value: Any, what: str) -> int | str:
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return value
    if type(value) is str and 0 < len(value) <= LONGEST_ID:
        return value
    raise EvidenceError(f"{what} is no integer of 64 bits, and no text of 1 to {LONGEST_ID:,} characters")


def _layout(said: Any) -> bytes:
    if not isinstance(said, str) or not re.fullmatch(rf"([0-9a-f]{{2}}){{1,{LONGEST_LAYOUT}}}", said):
        raise EvidenceError("the record layout of the dossier is not hexadecimal digits, in small letters")
    return bytes.fromhex(said)


def _key(said: Any) -> PublicKey:
    key = PublicKey.from_pem(text(said, "a key of the dossier").encode(), "a key of the dossier")
    if key.pem.decode() != said:
        raise EvidenceError("a key of the dossier is PEM that nobody writes")
    return key
