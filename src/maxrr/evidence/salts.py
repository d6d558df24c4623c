"""Where a record stands in a commitment, and as what: its key and its value, under a salt of its own.

Whoever has the salt of a record can look it up; whoever has not learns nothing about it from keys and values, not even
by trying out ids and records. All salts come from one secret, which stays with the operator.
"""

import hashlib
import hmac

from maxrr.evidence.hashing import SIZE, check_size

LEAST = 32  # bytes of a secret


def _framed(*parts: bytes) -> bytes:
    """The parts in a row, each after its length, so that no two lists of parts are the same bytes."""
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


_LENGTH = SIZE.to_bytes(8, "little")  # before a salt and before a hash
_SALT = _framed(b"maxrr/commitment/v1/salt")  # how what is hashed begins
_KEY = _framed(b"maxrr/commitment/v1/key") + _LENGTH
_VALUE = _framed(b"maxrr/commitment/v1/value") + _LENGTH


def salt_of(secret: bytes, identifier: bytes) -> bytes:
    """The salt of a record: HMAC-SHA-256 of its id under the secret.

    Parameters
    ----------
    secret : bytes
        At least 32 bytes that nobody can guess. Who has it can find out which ids are in a commitment.
    identifier : bytes
        The record id as bytes, no two ids as the same.

    Returns
    -------
    bytes
        32 bytes. They may be given to whoever may know that this record is, or was, in the commitment.

    Raises
    ------
    ValueError
        The secret is shorter.
    """
    if len(secret) < LEAST:
        raise ValueError(f"a secret of {len(secret)} bytes can be guessed: it needs {LEAST}")
    return hmac.digest(secret, _SALT + len(identifier).to_bytes(8, "little") + identifier, "sha256")


def key_of(salt: bytes, identifier: bytes) -> bytes:
    """Where a record stands in a commitment.

    Parameters
    ----------
    salt : bytes
        The record's salt.
    identifier : bytes
        The record id, as for the salt.

    Returns
    -------
    bytes
        Its key: 32 bytes.

    Raises
    ------
    ValueError
        The salt is not 32 bytes.

    Examples
    --------
    >>> key_of(bytes(32), b"int:7").hex()[:16]
    '2b57686743db6d93'
    """
    check_size("a salt", salt)
    return hashlib.sha256(_KEY + salt + len(identifier).to_bytes(8, "little") + identifier).digest()


def value_of(salt: bytes, record_hash: bytes) -> bytes:
    """What a commitment says of a record.

    It is salted as well: a proof that a record is absent may show the key and the value of a neighbour, and the bare
    hash of a record can be found by trying out records.

    Parameters
    ----------
    salt : bytes
        The record's salt.
    record_hash : bytes
        SHA-256 of the record.

    Returns
    -------
    bytes
        Its value: 32 bytes.

    Raises
    ------
    ValueError
        The salt or the hash is not 32 bytes.
    """
    check_size("a salt", salt)
    check_size("the hash of a record", record_hash)
    return hashlib.sha256(_VALUE + salt + _LENGTH + record_hash).digest()
