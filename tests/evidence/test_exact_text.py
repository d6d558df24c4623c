"""One text for a value and one value for a text."""

import base64
import json
import math
from typing import TypedDict

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maxrr.errors import EvidenceError
from maxrr.evidence.exact_text import Bytes32, canonical_json, from_base64, read_as, read_json, to_base64
from tests.cases import examples

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@examples(400)
@given(VALUES)
@example({"b": 1, "a": [1.0, 1e-07, 5e-324, -0.0, 1e22, 0.1], "ü": "\U0001f600\u2028\x00"})
def test_written_once_read_once_the_same(value):
    written = canonical_json(value)
    again = read_json(written, "it")
    assert repr(again) == repr(json.loads(written))
    assert again == value
    assert canonical_json(again) == written


def test_the_form():
    value = {"é": 1, "b": [True, None, 0.1], "a": {"z": "\n/é", "B": 1e-7}}
    assert canonical_json(value) == '{"a":{"B":1e-07,"z":"\\n/é"},"b":[true,null,0.1],"é":1}'.encode()


@pytest.mark.parametrize(
    "value", [math.nan, -math.inf, b"a", {"a": b""}, "\ud800", {"\udfff": 1}, [{1}]]
)  # fmt: skip
def test_what_json_cannot_say_is_refused(value):
    with pytest.raises(EvidenceError):
        canonical_json(value)


def test_deep_values_are_refused():
    value = None
    for _ in range(100):
        value = [value]
    with pytest.raises(EvidenceError, match="deeply"):
        read_json(json.dumps(value).encode(), "it")


@pytest.mark.parametrize(
    "text", [b'{"a":1,"a":1}', b'{"a":NaN}', b"\xff", b'"\\ud800"', b"", b"1 2", b"\xef\xbb\xbf1", b'{"a":1e999}']
)  # fmt: skip
def test_what_programs_read_differently_is_refused(text):
    with pytest.raises(EvidenceError):
        read_json(text, "it")


class Form(TypedDict):
    a: int


def test_fields_are_these_and_no_others():
    assert read_as(Form, {"a": 1}, "the form") == {"a": 1}
    for value, message in [({"a": 1, "b": 2}, "not known here: 'b'"), ({}, "no field 'a'"), ([], "not an object")]:
        with pytest.raises(EvidenceError, match=f"{message}"):
            read_as(Form, value, "the form")


@pytest.mark.parametrize("said", ["ab" * 31, "ab" * 33, "AB" * 32, "ab" * 31 + "a\n", "٠" * 64, 7, None])
def test_hashes_are_64_digits(said):
    assert read_as(tuple[Bytes32, ...], ["ab" * 32], "it") == (b"\xab" * 32,)
    with pytest.raises(EvidenceError, match=r"\[0\] is "):
        read_as(tuple[Bytes32, ...], [said], "it")


@given(st.binary(max_size=40))
def test_base64(data):
    assert to_base64(data) == base64.standard_b64encode(data).decode()
    assert from_base64(to_base64(data), "it") == data


@pytest.mark.parametrize("text", ["AQI", "AQJ=", "AQ I=", "AQI=\n", "AQI==", "_w==", "é", "A", "=", "AQI=AQI="])
def test_base64_in_another_form_is_refused(text):
    with pytest.raises(EvidenceError, match=r"^it "):
        from_base64(text, "it")
