"""Keyed hashes of record ids: numbers that look drawn at random, yet belong to a record and to nothing else.

They decide what must not depend on the order of rows or on other records. Without the key nobody can tell what is
decided about a record, or choose an id so that it is decided in a certain way.
"""

import hmac
from typing import Any

from numpy.typing import NDArray

from maxrr.data.hashes import framed, key_bytes

KEY = b"maxrr"
"""The key for breaking ties, which need not be secret."""

PURPOSE = b"core"  # hashed first, so that another hash of an id under this key says nothing about the core


def as_key(key: bytes | str) -> bytes:
    """The key as bytes, if it can be one. Messages never show it."""
    if not isinstance(key, bytes | str):
        raise ValueError(f"a key is bytes or a string, not {type(key).__name__}")
    if not key:
        raise ValueError("the key is empty: everybody would know it")
    return key.encode() if isinstance(key, str) else key


def keyed_hashes(ids: NDArray[Any], key: bytes) -> list[bytes]:
    """HMAC-SHA256 of each id, 32 bytes. Integers and strings differ, 1 from '1'.

    >>> import numpy as np
    >>> keyed_hashes(np.array([1]), b"k") == keyed_hashes(np.array(["1"]), b"k")
    False
    """
    return [hmac.digest(key, framed(PURPOSE, key_bytes(id_)), "sha256") for id_ in ids.tolist()]
