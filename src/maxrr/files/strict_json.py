"""JSON from others: what Python's parser accepts and programs fail on later (NaN, a name given twice) is refused."""

import functools
import hashlib
import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

DEEPEST = 64  # lists and objects in each other
LONGEST = 300  # digits of an integer: seeds may have many, and a float holds no more than 308


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
        value = json.loads(
            text, parse_float=_float, parse_int=_int, parse_constant=_refuse, object_pairs_hook=_object
        )  # fmt: skip
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [value]
    for _ in range(DEEPEST):
        level = [
            item for each in level if isinstance(each, (list, dict))
            for item in (each.values() if isinstance(each, dict) else each)
        ]  # fmt: skip
    if level:
        raise ValueError("it is nested too deeply")
    return value


def _float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _int(text: str) -> int:
    return int(text) if len(text) <= LONGEST else _refuse(text)


def _refuse(text: str) -> Any:
    raise ValueError(f"it has a number that is none, or too large: {text[:50]}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it has one name twice")
    return found


# What a file says, checked before it is believed: values of the right type, names of one version.


def field_types(kind: Any) -> Mapping[str, Any]:
    """The types of a class's fields by name, made out once: reading annotations takes longer than a receipt does.

    Parameters
    ----------
    kind : type
        A class with annotations.

    Returns
    -------
    mapping
        What `typing.get_type_hints` says of it.
    """
    return _read(kind)


@functools.cache
def _read(kind: type) -> Mapping[str, Any]:
    return types.MappingProxyType(typing.get_type_hints(kind))


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, to the last field and item.

    Parameters
    ----------
    value
        What was read.
    kind
        A class, a dataclass, or a type such as ``list[int]``, ``dict[str, float]``, ``tuple[int, ...]``,
        ``str | None`` or ``Any``. A bool is no number; an int may stand where a float is due.

    Returns
    -------
    bool
        Whether everything in it is of the type that stands for it.

    Examples
    --------
    >>> fits([1, 2.5], list[float]), fits({"a": "b"}, dict[str, int]), fits(True, int), fits(None, str | None)
    (True, False, False, True)
    """
    if kind is Any:
        return True
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        fields = field_types(kind)
        return isinstance(value, kind) and all(fits(getattr(value, name), fields[name]) for name in fields)
    if origin is types.UnionType or origin is typing.Union:
        return any(fits(value, one) for one in arguments)
    if origin is list:
        return isinstance(value, list) and all(fits(item, arguments[0]) for item in value)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        kinds = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        return len(value) == len(kinds) and all(map(fits, value, kinds))
    if origin is dict:
        names, values = arguments
        return isinstance(value, dict) and all(fits(key, names) and fits(one, values) for key, one in value.items())
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


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


def json_digest(body: Mapping[str, Any]) -> str:
    """The SHA-256 of what a JSON object says, however its text is spaced and ordered.

    >>> json_digest({"a": 1, "b": 2}) == json_digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
