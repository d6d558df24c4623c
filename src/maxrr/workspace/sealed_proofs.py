"""Sealed proofs in the history: that a record was in the commitment before a request, and is not after it.

Only who has the workspace and knows whom it is about can read them. An entry is a tag, the length of what follows (four
bytes, little-endian), and content under AES-256-GCM after its nonce of 12 bytes. Tag and key are the halves of an HMAC
(SHA-512) under the workspace's secret, of the number of the receipt and a record id, or a subject id. What lies under a
record id is its proofs; under a subject id, which records they are.
"""

import hmac
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maxrr.unlearning.commitment import Departure

TAG, LENGTH, NONCE = 32, 4, 12  # bytes
RECORD, PERSON = b"record", b"subject"
Id = int | str
ENCODED = json.JSONEncoder(separators=(",", ":")).encode


def seal_proofs(secret: bytes, number: int, departures: Iterable[Departure]) -> bytes:
    """The entries for the records that left by one request."""
    found, records_of = [], dict[str, list[Any]]()
    for each in departures:
        said: dict[str, Any] = {
            "id": each.id, "value": each.value.hex(), "before": each.before.to_object(),
            "after": each.after.to_object(),
        }  # fmt: skip
        if each.after_value is not None:
            said["after_value"] = each.after_value.hex()
        found.append(sealed(secret, number, RECORD, each.id, said))
        if each.subject is not None:
            records_of.setdefault(str(each.subject), []).append(each.id)
    found += [sealed(secret, number, PERSON, who, ids) for who, ids in records_of.items()]
    return b"".join(sorted(found))  # by tags, which say nothing


def sealed(secret: bytes, number: int, kind: bytes, who: Id, said: object) -> bytes:
    """One entry."""
    tag, key = tag_and_key(secret, number, kind, who)
    nonce = os.urandom(NONCE)
    content = nonce + AESGCM(key).encrypt(nonce, ENCODED(said).encode(), None)
    return tag + len(content).to_bytes(LENGTH, "little") + content


def tag_and_key(secret: bytes, number: int, kind: bytes, who: Id) -> tuple[bytes, bytes]:
    """Those of an entry. An integer and its text are the same id, as on tombstones."""
    said = b"maxrr proof\0%d\0%b\0" % (number, kind) + str(who).encode("utf-8", "surrogatepass")
    derived = hmac.digest(secret, said, "sha512")
    return derived[:TAG], derived[TAG:]


def entries_in(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Tag and sealed content of each entry."""
    at = 0
    while at < len(content):
        start = at + TAG + LENGTH
        stop = start + int.from_bytes(content[at + TAG : start], "little")
        yield content[at : at + TAG], content[start:stop]
        at = stop


class Opened:
    """The proofs of one request, for whoever has the secret.

    Parameters
    ----------
    secret : bytes
        The workspace's.
    number : int
        The number of the receipt.
    content : bytes
        The entries of that request.
    """

    def __init__(self, secret: bytes, number: int, content: bytes) -> None:
        self.secret, self.number = secret, number
        self.entries: Mapping[bytes, bytes] = dict(entries_in(content))

    def records_about(self, subject: Id) -> list[Id]:
        """The ids of the records about a person that left by this request; none if there are none."""
        found: list[Id] = self.look_up(PERSON, subject) or []
        return found

    def proof(self, id_: Id) -> dict[str, Any] | None:
        """What is proved of a record, as JSON has it; None if the request did not forget it."""
        found: dict[str, Any] | None = self.look_up(RECORD, id_)
        return found

    def look_up(self, kind: bytes, who: Id) -> Any:
        tag, key = tag_and_key(self.secret, self.number, kind, who)
        entry = self.entries.get(tag)
        if entry is None:
            return None
        try:
            return json.loads(AESGCM(key).decrypt(entry[:NONCE], entry[NONCE:], None))
        except InvalidTag:
            raise ValueError("the entry is not what was sealed") from None
