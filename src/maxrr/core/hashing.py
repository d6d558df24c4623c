"""Keyed hashes of record ids: numbers that look drawn at random, yet belong to a record and to nothing else.

They decide what must not depend on the order of rows or on other records. Without the key nobody can tell what is
decided about a record, or choose an id so that it is decided in a certain way.
"""

import hmac
from typing import Any

from numpy.typing import NDArray

from maxrr.data.hashes import framed, identifier_bytes

TIE_BREAKER = b"maxrr"
"""What ids are hashed with to break ties, if nothing else is asked for. It is no secret."""

CORE, SHARD = b"core", b"shard"  # hashed first, so that one hash of an id under a key says nothing about another


def as_bytes(given: bytes | str, what: str) -> bytes:
    """A key or a tie breaker as bytes, if it can be one. Messages never show it."""
    if not isinstance(given, bytes | str):
        raise ValueError(f"a {what} is bytes or a string, not {type(given).__name__}")
    if not given:
        raise ValueError(f"the {what} is empty: give one byte or more")
    return given.encode() if isinstance(given, str) else given


def keyed_hashes(ids: NDArray[Any], key: bytes, purpose: bytes = CORE) -> list[bytes]:
    """HMAC-SHA256 of each id for one purpose, 32 bytes. Integers and strings differ, 1 from '1'.

    >>> import numpy as np
    >>> keyed_hashes(np.array([1]), b"k") == keyed_hashes(np.array(["1"]), b"k")
    False
    """
    return [hmac.digest(key, framed(purpose, identifier_bytes(id_)), "sha256") for id_ in ids.tolist()]
