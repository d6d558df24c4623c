"""Whether what came out of a file is of the kinds that the program put in: text where a number was would fail later."""

import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from maxrr.unlearning.state import Fitted

LARGEST = 2**53  # of the whole numbers that a float can stand for
PLAIN = (bool, int, float, str, dict, list, tuple)


def check_kinds(fitted: Fitted) -> None:
    """Refuse a state with numbers, words or truth values in each other's places, or labels for other classes."""
    made = fitted.blueprint
    parts = [fitted, made, made.recipe, made.environment, fitted.durations, fitted.choice, fitted.set_aside]
    for part in [*parts, *fitted.heads.certificate_]:
        check_fields(part)
    names, labels = fitted.records.class_names, fitted.labels
    if (
        labels.shape != (len(names),)
        or labels.dtype.hasobject
        or not np.all(np.isin(fitted.heads.classes_, range(len(names))))
    ):
        raise ValueError("its labels are not those of its classes")
    if not (0.0 < made.C < float("inf") and made.seed >= 0 and made.threads >= 1):
        raise ValueError("its blueprint cannot be right")


def check_fields(part: Any) -> None:
    """Every plain field of a dataclass holds what its annotation says."""
    if not is_dataclass(part):
        return
    hints = typing.get_type_hints(type(part))
    for field in fields(part):
        if not suits(getattr(part, field.name), hints[field.name]):
            raise ValueError(f"its {field.name} cannot be {getattr(part, field.name)!r:.60}")


def suits(value: Any, hint: Any) -> bool:
    """Whether a value is of a plain kind; kinds that are not plain are not looked at.

    >>> suits(1, float), suits("1", int | None), suits(True, int), suits([1], dict[str, int])
    (True, False, False, False)
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(suits(value, each) for each in arguments)
    kind = origin or hint
    if kind is types.NoneType:
        return value is None
    if kind not in PLAIN:
        return True
    if kind is float:
        return isinstance(value, float) or (type(value) is int and abs(value) < LARGEST)
    if kind is int:
        return type(value) is int
    if kind is dict and arguments:
        return isinstance(value, dict) and all(suits(each, arguments[1]) for each in value.values())
    if kind in (list, tuple) and arguments and (kind is list or arguments[-1] is ...):
        return isinstance(value, kind) and all(suits(each, arguments[0]) for each in value)
    return isinstance(value, kind)
