"""The cells of result files: written as the kind of number that they hold, and counted by their verdicts."""

from collections import Counter
from collections.abc import Iterable, Mapping

from lab.parts import TABLE, UNKNOWN, Json, Kind, kind_of, part_of

SIGNS = {"agrees": "=", "near": "≈", "differs": "≠"}  # the same in figures, on the page and in the terminal
MARKS = {"equivalent": "✓", "different": "✗", "open": "?"}
MISSING = "–"
FORMS: dict[Kind, tuple[float, str, str, str]] = {  # scale, format, unit, unit of differences
    "accuracy": (1.0, ".4f", "", ""),  # not in percent: its third digit matters
    "count": (1.0, ",.0f", "", ""),
    "share": (100.0, ".1f", " %", " points"),
}


def cell_text(cell: Json, kind: Kind) -> tuple[str, str, str, str]:
    """A cell in words: ours with its standard error, the paper's, the signed difference, the verdict.

    A cell that is itself a difference of ours is signed, and one of shares in points.

    Parameters
    ----------
    cell : mapping
        A cell of a result file: `mean`, `stderr`, `paper`, `difference`, `verdict`, and `signed` if it is a difference.
    kind : {"accuracy", "count", "share"}
        What kind of number it holds.

    Returns
    -------
    tuple of str
        Ours, the paper's, the difference and the verdict. Where the paper has no number, the last three are dashes.

    Examples
    --------
    >>> cell = {"mean": 0.8953, "stderr": 0.0004, "paper": 0.8971, "difference": -0.0018, "verdict": "agrees"}
    >>> cell_text(cell, "accuracy")
    ('0.8953 ± 0.0004', '0.8971', '−0.0018', 'agrees')
    >>> cell_text({"mean": 24103.4, "stderr": None, "paper": None, "difference": None, "verdict": None}, "count")
    ('24,103', '–', '–', '–')
    >>> cell_text({"mean": -0.08, "stderr": 0.01, "paper": None, "difference": None, "signed": True}, "share")[0]
    '−8.0 ± 1.0 points'
    """
    mean, stderr, paper, difference = (cell[name] for name in ("mean", "stderr", "paper", "difference"))
    scale, form, unit, units = FORMS[kind]
    sign = "+" if cell.get("signed") else ""
    unit = units if sign else unit
    error = "" if stderr is None else f" ± {scale * stderr:{form}}"
    ours = f"{scale * mean:{sign}{form}}".replace("-", "−") + error + unit
    if paper is None:
        return ours, MISSING, MISSING, MISSING
    signed = f"{scale * difference:+{form}}".replace("-", "−")
    if not signed.strip("+−0."):
        signed = signed[1:]  # nothing has no sign
    return ours, f"{scale * paper:{form}}{unit}", f"{signed}{units}", str(cell["verdict"])


def groups(content: Json) -> dict[str, list[Json]]:
    """The cells that count, by the reading or the kind that they belong to; under no name where there is but one.

    A row that shows one number in every column is a single cell in the part's `once`.

    >>> one, other = {"verdict": "agrees"}, {"verdict": "near"}
    >>> groups({"cells": {"No": {"a": one, "b": other}, "SVM": {"a": one}}, "once": {"No": other}})
    {'': [{'verdict': 'near'}, {'verdict': 'agrees'}]}
    """
    part, once = part_of(content), content.get("once", {})
    left_out = {*once, *part.follows}
    rows = [row for name, row in content.get("cells", {}).items() if name not in left_out]
    named = [(column, cell) for row in rows for column, cell in row.items()]
    if part.by_kind:
        found = {words: [cell for column, cell in named if kind_of(cell, column, content) == kind]
                 for kind, words in part.by_kind.items()}  # fmt: skip
    else:
        found = {words: [cell for column, cell in named if column.startswith(start)]
                 for words, start in (part.readings or {"": ""}).items()}  # fmt: skip
    return {words: [*once.values(), *cells] for words, cells in found.items()}


def count_verdicts(contents: Iterable[Json], what: str = "verdict") -> Counter[str | None]:
    """How many numbers got which verdict; None where the paper has nothing to say. Or what came of another test."""
    return Counter(cell.get(what) for content in contents for cells in groups(content).values() for cell in cells)


def count_for_headline(results: Mapping[str, Json]) -> Counter[str | None]:
    """The verdicts that the headline is about: of several readings those of the first, which is the paper's words."""
    return Counter(
        cell["verdict"]
        for name, content in results.items() if not TABLE.get(name, UNKNOWN).alternatives  # on the paper's data
        for cells in list(groups(content).values())[: 1 if part_of(content).readings else None]
        for cell in cells
    )  # fmt: skip
