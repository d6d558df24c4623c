"""JSON from others, read as declared types: what other programs would read differently, or nobody declared, is refused.

`parse_json` makes plain values of a text, `from_plain` makes declared types of these, `to_plain` is the way back.
msgspec and pydantic take an object that has one name twice, pydantic takes a tenth of a second to import, and cattrs
does not parse.
"""

import functools
import hashlib
import json
import math
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

DEEPEST = 64  # lists and objects in each other
LONGEST = 300  # digits of an integer: seeds may have many, and a float holds no more than 308
LARGEST_EXACT = 2**53  # up to it, a float stands for every whole number
WORDS = {
    str: "text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null", list: "a list",
    dict: "an object",
}  # fmt: skip
HEX = re.compile("(?:[0-9a-f]{2})*")

T = TypeVar("T")
Reader = Callable[[Any], Any]


def parse_json(text: str) -> Any:
    """Parse a JSON text strictly.

    Parameters
    ----------
    text
        The JSON text.

    Returns
    -------
    object
        Its value: dict, list, str, int, float, bool or None.

    Raises
    ------
    ValueError
        The text is no JSON, has NaN, infinity or a number that no float can hold, has one name twice in an object, or
        lists and objects nested more than 64 deep.

    Examples
    --------
    >>> parse_json('{"C": 1.0}')
    {'C': 1.0}
    """
    try:
        value = json.loads(text, parse_float=_float, parse_int=_int, parse_constant=_refuse, object_pairs_hook=pairs)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [value]
    for _ in range(DEEPEST):
        level = [
            item for each in level if isinstance(each, (list, dict))
            for item in (each.values() if isinstance(each, dict) else each)
        ]  # fmt: skip
        if not level:
            return value
    raise ValueError("it is nested too deeply")


def _float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _int(text: str) -> int:
    return int(text) if len(text) <= LONGEST else _refuse(text)


def _refuse(text: str) -> Any:
    raise ValueError(f"a number is invalid or too large: {text[:50]}")


def pairs(said: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its names and values, for `json.loads`: one that has a name twice is a ValueError."""
    found = dict(said)
    if len(found) < len(said):
        raise ValueError("it has one name twice")
    return found


# Declared types


class Constraint(NamedTuple):
    """What the type of a value does not say, for `Annotated`: in words, and as a function of the value."""

    words: str
    holds: Callable[[Any], object]


Count = Annotated[int, Constraint("0 or more", lambda number: number >= 0)]
PositiveInt = Annotated[int, Constraint("1 or more", lambda number: number >= 1)]
PositiveFloat = Annotated[float, Constraint("above 0", lambda number: number > 0.0)]
Digest = Annotated[str, Constraint("64 hexadecimal digits in small letters", re.compile("[0-9a-f]{64}").fullmatch)]


class MisfitError(ValueError):
    """A value is not of the type that is declared for it.

    Parameters
    ----------
    why : str
        What is wrong with it, without the value: that may be private.
    path : str
        Where it stands in what was read.
    """

    def __init__(self, why: str, path: str = "") -> None:
        super().__init__(f"{path.removeprefix('.') or 'it'} {why}")
        self.why, self.path = why, path


def from_plain(kind: type[T], said: Any) -> T:
    """Make a declared type of plain values, strictly.

    Parameters
    ----------
    kind
        A dataclass or TypedDict, which JSON has as an object; a NamedTuple, tuple, list or frozenset, as a list;
        ``dict[str, …]``, bytes (hexadecimal digits in small letters), bool, int, float, str, unions of
        these, or Any. ``Annotated`` adds a `Constraint`. Fields with defaults may be absent.
    said
        What `parse_json` gave.

    Returns
    -------
    object
        A value of that type. An int stays one where a float is declared.

    Raises
    ------
    MisfitError
        It is of another type, lacks a field or has one that is not declared: with the path to it, as in
        ``heads[3].certificate.error``.

    Examples
    --------
    >>> from_plain(dict[str, list[float]], {"a": [1, 2.5]})
    {'a': [1, 2.5]}
    >>> from_plain(dict[str, list[int]], {"a": [1, True]})
    Traceback (most recent call last):
    ...
    maxrr.files.strict_json.MisfitError: a[1] is true or false, not a whole number
    """
    return typing.cast(T, _reader(typing.cast(Any, kind))(said))


def to_plain(value: Any) -> Any:
    """Make plain values of a declared type.

    Parameters
    ----------
    value
        What `from_plain` gives.

    Returns
    -------
    object
        What `json.dumps` can write, and `from_plain` makes the same value of. Sets are sorted.

    Examples
    --------
    >>> to_plain({"key": b"\\x0a", "shards": frozenset({2, 1})})
    {'key': '0a', 'shards': [1, 2]}
    """
    if isinstance(value, bytes):
        return value.hex()
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return list(map(to_plain, value))
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: to_plain(one) for name, one in value.items()}
    if isinstance(value, frozenset):
        return sorted(map(to_plain, value))
    return value


def json_text(value: Any) -> str:
    """The JSON of a declared type, in one line. What `parse_json` would refuse, NaN and infinity, is a ValueError."""
    return json.dumps(to_plain(value), allow_nan=False)


@functools.cache
def _reader(kind: Any) -> Reader:
    """Make, once for each type, the function that reads values of it."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda said: said
    if origin is Annotated:
        return functools.partial(_checked, _reader(arguments[0]), arguments[1:])
    if origin in (types.UnionType, typing.Union):
        return functools.partial(_one_of, list(map(_reader, arguments)))
    if origin is dict:
        return functools.partial(_mapping, *map(_reader, arguments))
    if origin is tuple and arguments[1:] != (...,):
        return functools.partial(_row, tuple, list(map(_reader, arguments)))
    if origin in (list, tuple, frozenset):
        return functools.partial(_items, origin, _reader(arguments[0]))
    if issubclass(kind, tuple):
        return functools.partial(_row, kind._make, [_reader(each) for each in _types(kind).values()])
    if is_dataclass(kind) or typing.is_typeddict(kind):
        return functools.partial(_object, kind, {name: _reader(each) for name, each in _types(kind).items()})
    return _bytes if kind is bytes else functools.partial(_plain, kind)


def _types(kind: Any) -> dict[str, Any]:
    found = typing.get_type_hints(kind, include_extras=True)
    return {each.name: found[each.name] for each in fields(kind)} if is_dataclass(kind) else found


def _at(step: int | str, reader: Reader, said: Any) -> Any:
    try:
        return reader(said)
    except MisfitError as error:
        where = f"[{step}]" if isinstance(step, int) else f".{step:.50}"
        raise MisfitError(error.why, where + error.path) from None


def _plain(kind: type, said: Any) -> Any:
    if type(said) is kind:
        return said
    if kind is float and type(said) is int:
        if abs(said) <= LARGEST_EXACT:
            return said
        raise MisfitError("is too large for a number")
    raise MisfitError(f"is {WORDS.get(type(said), 'something else')}, not {WORDS[kind]}")


def _bytes(said: Any) -> bytes:
    if not HEX.fullmatch(_plain(str, said)):
        raise MisfitError("is not hexadecimal digits in small letters")
    return bytes.fromhex(said)


def _checked(reader: Reader, checks: Sequence[Constraint], said: Any) -> Any:
    found = reader(said)
    for check in checks:
        if not check.holds(found):
            raise MisfitError(f"is not {check.words}")
    return found


def _one_of(readers: list[Reader], said: Any) -> Any:
    wrong = []
    for reader in readers:
        try:
            return reader(said)
        except MisfitError as error:
            wrong.append((error.path, error.why))  # and not the error, which would keep the callers' variables
    path, why = max(wrong, key=lambda one: len(one[0]))  # of what comes nearest
    raise MisfitError(why, path)


def _items(make: Callable[[list[Any]], Any], reader: Reader, said: Any) -> Any:
    found = make([_at(place, reader, one) for place, one in enumerate(_plain(list, said))])
    if len(found) < len(said):
        raise MisfitError("has one item twice")
    return found


def _row(make: Callable[[list[Any]], Any], readers: list[Reader], said: Any) -> Any:
    if len(_plain(list, said)) != len(readers):
        raise MisfitError(f"has {len(said)} items, not {len(readers)}")
    return make([_at(place, reader, one) for place, (reader, one) in enumerate(zip(readers, said, strict=True))])


def _mapping(names: Reader, values: Reader, said: Any) -> dict[Any, Any]:
    return {_at(name, names, name): _at(name, values, one) for name, one in _plain(dict, said).items()}


def _object(kind: Any, readers: Mapping[str, Reader], said: Any) -> Any:
    if strange := _plain(dict, said).keys() - readers:
        raise MisfitError(f"has a field that is not known here: {min(strange)[:50]!r}")
    if missing := _required(kind) - said.keys():
        raise MisfitError(f"has no field {min(missing)!r}")
    found = {name: _at(name, readers[name], one) for name, one in said.items()}
    try:
        return kind(**found)
    except ValueError as error:  # of its own checks
        raise MisfitError(f"is invalid: {error}") from error


@functools.cache
def _required(kind: Any) -> frozenset[str]:
    if typing.is_typeddict(kind):
        return frozenset(_types(kind))
    return frozenset(each.name for each in fields(kind) if each.default is each.default_factory is MISSING)


def body_of(said: Any, what: str, version: int) -> dict[str, Any]:
    """Take the format and the version off what a file says.

    Parameters
    ----------
    said
        What `parse_json` gave.
    what
        The format that it must have.
    version
        The version that it must have.

    Returns
    -------
    dict
        All else that it says.

    Raises
    ------
    ValueError
        It is no object, or of another format or version.

    Examples
    --------
    >>> body_of({"format": "letters", "version": 1, "a": 2}, "letters", 1)
    {'a': 2}
    """
    if not isinstance(said, dict) or said.get("format") != what:
        raise ValueError(f"it is not in the format {what!r}")
    found = said.get("version")
    if found != version or type(found) is not int:
        raise ValueError(f"it is in version {found!r:.20} of the format {what!r}, and this program knows {version}")
    return {name: one for name, one in said.items() if name not in ("format", "version")}


# The SHA-256 of a file, and of what a JSON object says.


def sha256_of(path: str | Path) -> str:
    """The SHA-256 of a file's bytes.

    Parameters
    ----------
    path
        The file. It is read in blocks, so that it need not fit in memory.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def framed(*parts: bytes) -> bytes:
    """The parts in a row, each after its length, so that no two lists of parts are the same bytes.

    >>> framed(b"ab", b"") == framed(b"a", b"b")
    False
    """
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def json_digest(body: Mapping[str, Any]) -> str:
    """The SHA-256 of what a JSON object says, however its text is spaced and ordered.

    >>> json_digest({"a": 1, "b": 2}) == json_digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
