"""What a file says, checked before it is believed: values of the right type, names of one version."""

import functools
import types
import typing
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any


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
