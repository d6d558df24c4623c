"""Keys and values of records: what they depend on, against the definition written out."""

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.evidence.sparse_tree import key_of, salt_of, value_of

SECRET, HASH = bytes(range(32)), bytes(range(32, 64))


def length(count: int) -> bytes:
    return bytes([count, 0, 0, 0, 0, 0, 0, 0])  # little-endian; all that is hashed here is short


@given(st.binary(max_size=200), st.binary(min_size=32, max_size=100))
def test_they_are_those_of_the_definition(identifier: bytes, secret: bytes) -> None:
    counted = length(len(identifier)) + identifier
    salt = hmac.new(secret, length(24) + b"maxrr/commitment/v1/salt" + counted, hashlib.sha256).digest()
    key = hashlib.sha256(length(23) + b"maxrr/commitment/v1/key" + length(32) + salt + counted).digest()
    value = hashlib.sha256(length(25) + b"maxrr/commitment/v1/value" + length(32) + salt + length(32) + HASH).digest()
    assert salt_of(secret, identifier) == salt
    assert key_of(salt, identifier) == key
    assert value_of(salt, HASH) == value


@given(st.sets(st.binary(max_size=8), min_size=2, max_size=2))
def test_two_ids_have_nothing_in_common(ids: set[bytes]) -> None:
    one, two = ids
    salt, other = salt_of(SECRET, one), salt_of(SECRET, two)
    assert len({salt, other, key_of(salt, one), key_of(other, two), key_of(salt, two), key_of(other, one)}) == 6
    assert value_of(salt, HASH) != value_of(other, HASH)


def test_another_secret_gives_other_salts() -> None:
    assert salt_of(SECRET, b"int:1") != salt_of(SECRET[::-1], b"int:1")


def test_what_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="31 bytes can be guessed"):
        salt_of(SECRET[:31], b"int:1")
    with pytest.raises(ValueError, match="a salt is 32 bytes, and this is 31 bytes"):
        key_of(SECRET[:31], b"int:1")
    with pytest.raises(ValueError, match="a salt is 32 bytes, and this is str"):
        value_of("x" * 32, HASH)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the hash of a record is 32 bytes"):
        value_of(SECRET, HASH + b"x")
