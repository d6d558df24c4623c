"""Ids for records whose source has none."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import MissingIdsError
from maxrr.data.hashes import value_hashes
from maxrr.errors import DataError

IdsFrom = Literal["content", "rows"]
"""How to make ids for records that have none: from a hash of their inputs, or from row numbers."""

DIGITS = 20  # hexadecimal: among a billion records two that differ share them with a probability of a millionth


def check_ids_from(there: bool, ids_from: str | None, what: str) -> None:
    """Refuse a source without ids if `ids_from` does not say how to make them, and one with ids if it does.

    Raises
    ------
    MissingIdsError
        There are no ids; the message says what can be done.
    """
    if ids_from is not None and ids_from not in get_args(IdsFrom):
        raise DataError(f"ids_from is one of {', '.join(map(repr, get_args(IdsFrom)))}, not {ids_from!r}")
    if there and ids_from is not None:
        raise DataError(f"its records have ids of their own ({what}): leave ids_from (--ids-from) out")
    if not there and ids_from is None:
        raise MissingIdsError(
            f"it does not say what its records are called. Requests name records by ids: give {what}, or "
            "ids_from='content' (--ids-from content), an id from each record's own numbers, or "
            "ids_from='rows' (--ids-from rows), row numbers, which name other records as soon as a line is deleted"
        )


def made_ids(parts: Sequence[NDArray[Any]], ids_from: str | None) -> list[NDArray[Any]]:
    """Ids for records that have none, unique over all parts."""
    counts = np.cumsum([len(part) for part in parts])
    ids = content_ids(parts) if ids_from == "content" else np.arange(counts[-1])
    return np.split(ids, counts[:-1])


def content_ids(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """An id from the numbers of each record: the same wherever it stands, and in whichever type they are stored.

    It is the beginning of the hash by which forgotten values are recognised, `maxrr.data.hashes.value_hashes`. Equal
    records cannot be told apart: they are counted in the order in which they stand, with -2, -3 and so on behind.

    >>> content_ids([np.array([[1.0], [2.0], [1.0]])]).tolist()
    ['cba91d7ebb8b92eaa325', 'dca31754bd8d861460e7', 'cba91d7ebb8b92eaa325-2']
    """
    seen: dict[str, int] = {}
    ids = []
    for part in parts:
        for value in value_hashes(part):
            digest = value.tobytes().hex()[:DIGITS]
            seen[digest] = seen.get(digest, 0) + 1
            ids.append(digest if seen[digest] == 1 else f"{digest}-{seen[digest]}")
    return np.array(ids, dtype=np.str_)
