"""What is counted of a part's numbers: every quantity once, and readings of one of the paper's numbers apart."""

from collections import Counter
from collections.abc import Iterable, Mapping

from maxrr.paper.figures.names import Json

# Several of ours beside one of the paper's: not counted in the headline.
SEVERAL = ("sensitivity", "choices", "svms", "members", "more-runs", "cross-validated")
FOLLOWS = {"coverage": ("core or influential",)}  # the core, which is given, and what another row counts
READINGS = {"agreement": {"to the letter": "same", "as often": "as often"}}  # in words; how the columns begin
KINDS: dict[str, dict[str, str | tuple[str, ...]]] = {  # all of them count
    "verification": {"the accuracies": "accuracy", "in all runs or in none": ("claimed", "share")},
}


def groups(content: Json) -> dict[str, list[Json]]:
    """The cells that count, by the reading or the kind that they belong to; under no name where there is but one.

    A row that shows one number in every column is a single cell in the part's `once`.

    >>> one, other = {"verdict": "agrees"}, {"verdict": "near"}
    >>> groups({"cells": {"No": {"a": one, "b": other}, "SVM": {"a": one}}, "once": {"No": other}})
    {'': [{'verdict': 'near'}, {'verdict': 'agrees'}]}
    """
    part, once = str(content.get("part")), content.get("once", {})
    left_out = {*once, *FOLLOWS.get(part, ())}
    rows = [row for name, row in content.get("cells", {}).items() if name not in left_out]
    return {
        words: [
            *once.values(), *(cell for row in rows for column, cell in row.items() if column.startswith(start))
        ]
        for words, start in (KINDS.get(part) or READINGS.get(part) or {"": ""}).items()
    }  # fmt: skip


def verdicts(contents: Iterable[Json], what: str = "verdict") -> Counter[str | None]:
    """How many numbers got which verdict; None where the paper has nothing to say. Or what came of another test."""
    return Counter(
        cell.get(what) for content in contents for cells in groups(content).values() for cell in cells
    )  # fmt: skip


def counted(results: Mapping[str, Json]) -> Counter[str | None]:
    """The verdicts that the headline is about: of several readings the first, which is the paper's words."""
    return Counter(
        cell["verdict"]
        for part, content in results.items() if part not in SEVERAL
        for cells in list(groups(content).values())[: 1 if content.get("part") in READINGS else None]
        for cell in cells
    )  # fmt: skip
