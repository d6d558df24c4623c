"""Keyed hashes are HMACs of ids that cannot be confused, and keys are not shown."""

import hashlib
import hmac

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.core.shards import as_bytes, keyed_hashes


def test_it_is_hmac_over_a_framed_id():
    """Written out once by hand: another encoding would be another core for everyone who has one."""
    message = (4).to_bytes(8, "little") + b"core" + (6).to_bytes(8, "little") + b"int:42"
    assert keyed_hashes(np.array([42]), b"key") == [hmac.new(b"key", message, hashlib.sha256).digest()]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True), st.lists(st.text(max_size=20), unique=True))
def test_different_ids_have_different_hashes(numbers, texts):
    texts = list({text.rstrip("\0") for text in [*texts, *map(str, numbers)]})  # NumPy drops zeros at the end
    hashes = keyed_hashes(np.array(numbers, dtype=np.int64), b"k") + keyed_hashes(np.array(texts, dtype=np.str_), b"k")
    assert len(set(hashes)) == len(numbers) + len(texts)


def test_text_and_bytes_are_the_same_key():
    assert as_bytes("clé", "key") == as_bytes("clé".encode(), "key")


@pytest.mark.parametrize(("key", "message"), [("", "empty"), (b"", "empty"), (7, "bytes or a string, not int")])
def test_what_is_no_key(key, message):
    with pytest.raises(ValueError, match=message):
        as_bytes(key, "key")
