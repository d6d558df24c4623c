"""What a file says is of the types that stand for it, to the last item, and in the words of one version."""

from dataclasses import dataclass
from typing import Any, get_type_hints

import pytest

from maxrr.files import field_types, fits


@dataclass
class Inner:
    number: float
    names: list[str]


@dataclass
class Outer:
    inner: Inner
    pair: tuple[int, int]
    table: dict[str, list[Inner]]
    note: str | None
    rest: dict[str, Any]


GOOD = {
    "inner": Inner(1, ["a"]),
    "pair": (1, 2),
    "table": {"a": [Inner(0.5, [])]},
    "note": None,
    "rest": {"b": object()},
}
BAD = {
    "a bool for a number": {"inner": Inner(True, [])}, "a text for a list": {"inner": Inner(1.0, "ab")},
    "a list for a pair": {"pair": [1, 2]}, "three for two": {"pair": (1, 2, 3)}, "a fraction": {"pair": (1, 2.5)},
    "something else in a list": {"table": {"a": [1]}}, "a number for a name": {"table": {1: []}},
    "a number for a text": {"note": 3}, "a list for a mapping": {"rest": []}, "a mapping for a class": {"inner": {}},
}  # fmt: skip


def test_what_fits():
    assert fits(Outer(**GOOD), Outer)
    assert fits((1, 2, 3), tuple[int, ...])
    assert not fits((1, "2"), tuple[int, ...])


@pytest.mark.parametrize("change", BAD.values(), ids=BAD)
def test_what_does_not(change):
    assert not fits(Outer(**GOOD | change), Outer)


def test_the_types_of_a_class_are_made_out_once(monkeypatch):
    asked = []
    monkeypatch.setattr("typing.get_type_hints", lambda kind: asked.append(kind) or get_type_hints(kind))

    @dataclass
    class Fresh:
        inner: Inner

    assert field_types(Fresh) == {"inner": Inner}
    assert all(fits(Fresh(Inner(number, [])), Fresh) for number in range(3))
    assert [kind for kind in asked if kind is not Inner] == [Fresh]
    with pytest.raises(TypeError):
        field_types(Fresh)["inner"] = int
