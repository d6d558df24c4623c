"""JSON that Python would read, and nobody should."""

import json

import pytest

from maxrr.files import parse_json


@pytest.mark.parametrize("value", [{"a": [1, -2.5e300, None, True, {"b": "é"}]}, 2**128, -(2**63), [[[]]], "x"])
def test_what_is_plain_is_read(value: object) -> None:
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("[" * 100 + "]" * 100, "nested too deeply"),
        ('{"a": NaN}', "a number is invalid or too large: NaN"),
        ("[-Infinity]", "a number is invalid"),
        ("[1e999]", "or too large: 1e999"),
        (f"[{10**400}]", "too large"),
        ("9" * 5000, "too large"),
        ('{"a": 1, "a": 2}', "one name twice"),
        ("{", "Expecting property name"),
        ("", "Expecting value"),
    ],
)
def test_all_else_is_a_value_error(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json(text)
