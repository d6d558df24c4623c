"""What a file says is of the declared types, to the last item: compared with a naive reading of the same types."""

import dataclasses
import json
import re
import types
import typing
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.files import from_plain, parse_json, to_plain
from maxrr.files.strict_json import Constraint, Count, Digest, MisfitError, body_of
from tests.cases import examples


class Point(NamedTuple):
    x: int
    y: float


class Sign(TypedDict):
    keyid: str
    note: int


@dataclass(frozen=True)
class Inner:
    unit: ClassVar[str] = "metre"
    number: float
    names: list[str] = field(default_factory=list)
    small: Annotated[int, Constraint("less than 10", lambda number: number < 10)] = 0


@dataclass(frozen=True)
class Outer:
    inner: Inner
    pair: tuple[int, str]
    table: dict[str, list[Inner]]
    shards: frozenset[int]
    note: str | None = None
    rest: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ordered:
    first: int
    last: int

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise ValueError("the last is before the first")


SIMPLE = [
    bool, int, float, str, bytes, Point, Sign, Inner, Outer, Ordered, Count, Digest, Any, str | None,
    int | list[int], Inner | None, float | str | None,
]  # fmt: skip
KINDS = st.recursive(
    st.sampled_from(SIMPLE),
    lambda kinds: (
        kinds.map(lambda kind: list[kind])
        | kinds.map(lambda kind: tuple[kind, ...])
        | st.tuples(kinds, kinds).map(lambda pair: tuple[pair[0], pair[1]])
        | kinds.map(lambda kind: dict[str, kind])
        | st.sampled_from([frozenset[int], frozenset[bytes]])
    ),
    max_leaves=3,
)
NUMBERS = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.sampled_from(["", "red", "blue", "0a", "0A", "abc", "keyid", "number", "a" * 64, "é"])
PLAIN = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.integers(-2, 12) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


def expected(kind):
    """Draws plain values for a kind."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in (bool, str, Any):
        return {bool: st.booleans(), str: WORDS, Any: PLAIN}[kind]
    if kind is int:
        return st.integers()
    if kind is float:
        return st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
    if kind is bytes:
        return st.binary(max_size=4).map(bytes.hex)
    if kind is Digest:
        return st.binary(min_size=32, max_size=32).map(bytes.hex)
    if kind is Count:
        return st.integers(0)
    if kind is Point:
        return st.tuples(expected(int), expected(float)).map(list)
    if kind is Sign:
        return st.fixed_dictionaries({"keyid": WORDS, "note": st.integers()})
    if kind is Inner:
        return st.fixed_dictionaries(
            {"number": expected(float)},
            optional={"names": st.lists(WORDS, max_size=2), "small": st.integers(max_value=9)},
        )
    if kind is Outer:
        needed = {name: expected(Outer.__annotations__[name]) for name in ("inner", "pair", "table", "shards")}
        return st.fixed_dictionaries(needed, optional={"note": st.none() | WORDS, "rest": expected(dict[str, Any])})
    if kind is Ordered:
        return st.tuples(st.integers(), st.integers(0)).map(lambda both: {"first": both[0], "last": sum(both)})
    if origin is types.UnionType:
        return st.one_of([st.none() if each is types.NoneType else expected(each) for each in arguments])
    if origin is dict:
        return st.dictionaries(WORDS, expected(arguments[1]), max_size=2)
    if origin is tuple and arguments[1:] != (...,):
        return st.tuples(*map(expected, arguments)).map(list)
    return st.lists(expected(arguments[0]), max_size=2, unique_by=repr if origin is frozenset else None)


def is_of(kind, said):
    """Whether plain values are of a kind: one line for each, and no path."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return True
    if kind is types.NoneType:
        return said is None
    if kind is float:
        return type(said) is float or (type(said) is int and -(2**53) <= said <= 2**53)
    if kind in (bool, int, str):
        return type(said) is kind
    if kind is bytes:
        return type(said) is str and re.fullmatch("([0-9a-f][0-9a-f])*", said) is not None
    if kind is Digest:
        return type(said) is str and re.fullmatch("[0-9a-f]{64}", said) is not None
    if kind is Count:
        return type(said) is int and said >= 0
    if kind is Point:
        return is_of(tuple[int, float], said)
    if kind is Sign:
        return has(said, {"keyid": str, "note": int}, {})
    if kind is Inner:
        return has(said, {"number": float}, {"names": list[str], "small": int}) and said.get("small", 0) < 10
    if kind is Outer:
        needed = {"inner": Inner, "pair": tuple[int, str], "table": dict[str, list[Inner]], "shards": frozenset[int]}
        return has(said, needed, {"note": str | None, "rest": dict[str, Any]})
    if kind is Ordered:
        return has(said, {"first": int, "last": int}, {}) and said["first"] <= said["last"]
    if origin is types.UnionType:
        return any(is_of(each, said) for each in arguments)
    if origin is dict:
        return type(said) is dict and all(is_of(arguments[1], one) for one in said.values())
    if type(said) is not list:
        return False
    if origin is tuple and arguments[1:] != (...,):
        return len(said) == len(arguments) and all(map(is_of, arguments, said))
    return all(is_of(arguments[0], one) for one in said) and (origin is not frozenset or len(set(said)) == len(said))


def has(said, needed, optional):
    return (
        type(said) is dict
        and needed.keys() <= said.keys() <= {*needed, *optional}
        and all(is_of({**needed, **optional}[name], one) for name, one in said.items())
    )


@examples(500)
@given(st.data())
def test_as_the_naive_reading_says(data):
    kind = data.draw(KINDS)
    said = data.draw(expected(kind) | PLAIN | PLAIN.map(lambda one: [one]))
    if not is_of(kind, said):
        with pytest.raises(MisfitError):
            from_plain(kind, said)
        return
    found = from_plain(kind, said)
    again = json.loads(json.dumps(to_plain(found)))
    assert from_plain(kind, again) == found
    if kind not in (Inner, Outer) and "Inner" not in repr(kind) and "frozenset" not in repr(kind):
        assert repr(again) == repr(said)  # defaults are written, sets are sorted, all else is as it was


GOOD = {"inner": {"number": 1}, "pair": [1, "a"], "table": {"a": [{"number": 0.5}]}, "shards": [2, 0]}
BAD = {
    "inner.number is true or false, not a number": {"inner": {"number": True}},
    "inner.number is too large": {"inner": {"number": 2**53 + 1}},
    "inner.small is not less than 10": {"inner": {"number": 1, "small": 10}},
    "inner has no field 'number'": {"inner": {}},
    "inner has a field that is not known here: 'more'": {"inner": {"number": 1, "more": 1}},
    "inner is a list, not an object": {"inner": []},
    "inner.names is text, not a list": {"inner": {"number": 1.0, "names": "ab"}},
    "pair has 3 items, not 2": {"pair": [1, "a", 3]},
    "pair[0] is a number, not a whole number": {"pair": [2.5, "a"]},
    "table.a[0].number is text, not a number": {"table": {"a": [{"number": "1"}]}},
    "shards has one item twice": {"shards": [1, 1]},
    "note is a whole number, not text": {"note": 3},
    "rest is null, not an object": {"rest": None},
}  # fmt: skip


def test_of_a_good_one_everything_is_there():
    found = from_plain(Outer, GOOD)
    assert found == Outer(Inner(1), (1, "a"), {"a": [Inner(0.5)]}, frozenset({0, 2}))
    assert type(found.inner.number) is int  # as it was said: its text is part of a digest
    assert to_plain(found) == {
        "inner": {"number": 1, "names": [], "small": 0}, "pair": [1, "a"], "shards": [0, 2], "note": None, "rest": {},
        "table": {"a": [{"number": 0.5, "names": [], "small": 0}]},
    }  # fmt: skip


@pytest.mark.parametrize(("message", "change"), BAD.items(), ids=BAD)
def test_what_is_wrong_is_named_with_its_path(message, change):
    with pytest.raises(MisfitError, match=f"^{re.escape(message)}"):
        from_plain(Outer, GOOD | change)


def test_values_are_not_repeated_in_messages():
    with pytest.raises(MisfitError) as error:
        from_plain(Outer, GOOD | {"pair": ["Anna Blume", "a"]})
    assert "Anna" not in str(error.value)


def test_a_class_may_refuse_by_itself():
    with pytest.raises(MisfitError, match=r"\[1\] is invalid"):
        from_plain(list[Ordered], [{"first": 1, "last": 1}, {"first": 2, "last": 1}])


def test_of_several_types_the_nearest_is_named():
    with pytest.raises(MisfitError, match=r"^\[1\] is text"):
        from_plain(int | list[int], [1, "a"])


def test_the_types_of_a_class_are_made_out_once(monkeypatch):
    asked, make_out = [], typing.get_type_hints
    monkeypatch.setattr("typing.get_type_hints", lambda kind, **how: asked.append(kind) or make_out(kind, **how))
    fresh = dataclasses.make_dataclass("Fresh", [("number", int)])
    assert [from_plain(fresh, {"number": number}).number for number in range(3)] == [0, 1, 2]
    assert asked == [fresh]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "not in the format 'letters'"),
        ('{"format": "numbers", "version": 1}', "not in the format 'letters'"),
        ('{"format": "letters", "version": 2}', "in version 2 of the format 'letters', and this program knows 1"),
        ('{"format": "letters", "version": 1.0}', "in version 1.0 of"),
        ('{"format": "letters", "version": true}', "in version True of"),
        ('{"format": "letters"}', "in version None of"),
    ],
)
def test_another_format_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        body_of(parse_json(text), "letters", 1)
    assert body_of({"format": "letters", "version": 1, "a": 2}, "letters", 1) == {"a": 2}
