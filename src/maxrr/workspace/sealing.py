"""What lies sealed in the history: proofs about records that left, and where copies of the model were exported to.

Only who has the workspace can read it, and proofs only who knows the id that they are about, or guesses it. An entry of
proofs is a tag, the length of what follows (four bytes, little-endian), and content under AES-256-GCM after its nonce
of 12 bytes. Tag and key are the halves of an HMAC (SHA-512) under the workspace's secret, of the number of the receipt
and a record id, or a subject id. What lies under a record id is its proofs; under a subject id, which records they are.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

if TYPE_CHECKING:
    from maxrr.unlearning.commitment import Departure

TAG, LENGTH, NONCE = 32, 4, 12  # bytes
RECORD, PERSON = b"record", b"subject"
Id = int | str


def seal(key: bytes, said: object) -> bytes:
    """Encrypt a JSON value under a key of 32 bytes."""
    nonce = os.urandom(NONCE)
    return nonce + AESGCM(key).encrypt(nonce, json.dumps(said, separators=(",", ":")).encode(), None)


def unseal(key: bytes, content: bytes) -> Any:
    """Decrypt a value that `seal` encrypted."""
    try:
        return json.loads(AESGCM(key).decrypt(content[:NONCE], content[NONCE:], None))
    except InvalidTag:
        raise ValueError("the entry is not what was sealed") from None


def seal_proofs(secret: bytes, number: int, departures: Iterable[Departure]) -> bytes:
    """Make the sealed entries for the records that left by one request."""
    found, records_of = [], dict[str, list[Any]]()
    for each in departures:
        said: dict[str, Any] = {
            "id": each.id, "value": each.value.hex(), "before": each.before.to_object(),
            "after": each.after.to_object(),
        }  # fmt: skip
        if each.after_value is not None:
            said["after_value"] = each.after_value.hex()
        found.append(sealed_entry(secret, number, RECORD, each.id, said))
        if each.subject is not None:
            records_of.setdefault(str(each.subject), []).append(each.id)
    found += [sealed_entry(secret, number, PERSON, who, ids) for who, ids in records_of.items()]
    return b"".join(sorted(found))  # by tags, which say nothing


def sealed_entry(secret: bytes, number: int, kind: bytes, who: Id, said: object) -> bytes:
    """Make one entry of proofs."""
    tag, key = tag_and_key(secret, number, kind, who)
    content = seal(key, said)
    return tag + len(content).to_bytes(LENGTH, "little") + content


def tag_and_key(secret: bytes, number: int, kind: bytes, who: Id) -> tuple[bytes, bytes]:
    """Derive tag and key of an entry. An integer and its text are the same id, as on tombstones."""
    said = b"maxrr proof\0%d\0%b\0" % (number, kind) + str(who).encode("utf-8", "surrogatepass")
    derived = hmac.digest(secret, said, "sha512")
    return derived[:TAG], derived[TAG:]


def look_up(secret: bytes, number: int, content: bytes, kind: bytes, who: Id) -> Any:
    """Find and decrypt the entry of a record or a person among those of a request; None if there is none."""
    (tag, key), at = tag_and_key(secret, number, kind, who), 0
    while at < len(content):
        start = at + TAG + LENGTH
        stop = start + int.from_bytes(content[at + TAG : start], "little")
        if content[at : at + TAG] == tag:
            return unseal(key, content[start:stop])
        at = stop
    return None
