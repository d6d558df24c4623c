"""JSON from others: what Python's parser accepts and programs fail on later (NaN, a name given twice) is refused."""

import json
import math
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
