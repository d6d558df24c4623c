"""Inputs of a table that look as if they were something else: an id, a weight, a date, a row number."""

import re
import shlex
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import blocks
from maxrr.data.dataset import Dataset

FEWEST = 20  # records: among fewer, whole numbers that happen to differ say nothing
EXACT = 1 << 24  # whole numbers beyond this are not told apart in float32
PASS_OVER = "drop it with --drop {name}"
# What the name of a column says it is, and what to do then.
BY_NAME = (
    (re.compile(r"unnamed: \d+|index|row_?(id|number|num)?|level_\d+|__index_level_\d+__|"), "a row number", PASS_OVER),
    (re.compile(r"(.*[_\W])?(id|uuid|guid)"), "an id", "name it with --id or --subject, or " + PASS_OVER),
    (re.compile(r"((sample|case)[_\W]?)?(weight|wt)s?|fnlwgt"), "how much a record counts",
     "name it with --weight, or " + PASS_OVER),
    (re.compile(r"(.*[_\W])?(date|datetime|timestamp)"), "a date", PASS_OVER),
)  # fmt: skip
CAMEL = re.compile(r"(?<=[a-z])(?=I[dD]$|UUID$)|(?<=[a-z])(?=Date$)")


def lookalikes(sides: Sequence[Dataset]) -> list[str]:
    """One sentence for each input that may be none, by its name or because its whole numbers are all different.

    A model that gets an id learns it by heart, and a request to forget a person by it finds nobody.

    >>> table = Dataset(np.zeros((2, 2)), [0, 1], ("a", "b"), [1, 2], columns=("person_id", "age"))
    >>> lookalikes([table])
    ["the column 'person_id' is an input, and looks like an id: name it with --id or --subject, or drop it with \
--drop person_id"]
    """
    columns = sides[0].columns
    if columns is None:
        return []
    distinct = _distinct(sides)
    found = []
    for name, different in zip(columns, distinct.tolist(), strict=True):
        kind, advice = _by_name(name) or (("an id", BY_NAME[1][2]) if different else ("", ""))
        if kind:
            said = f"the column {name!r} is an input, and looks like {kind}"
            found.append(f"{said}: {advice.format(name=shlex.quote(name))}")
    return found


def _by_name(name: str) -> tuple[str, str] | None:
    plain = CAMEL.sub("_", name).lower().strip()
    return next(((kind, advice) for pattern, kind, advice in BY_NAME if pattern.fullmatch(plain)), None)


def _distinct(sides: Sequence[Dataset]) -> NDArray[np.bool_]:
    """Which columns hold whole numbers that are all different, or so large that float32 does not tell."""
    if sum(map(len, sides)) < FEWEST:
        return np.zeros(sides[0].shape, dtype=bool)
    whole = np.ones(sides[0].shape, dtype=bool)
    for side in sides:
        for _, block in blocks(side.inputs):
            whole &= (block == np.trunc(block)).all(axis=0)
    for column in np.flatnonzero(whole).tolist():
        values = np.concatenate([side.inputs[:, column] for side in sides])
        whole[column] = len(np.unique(values)) == len(values) or np.abs(values).min() >= EXACT
    return whole
