"""Numbers of a reproduction as Markdown tables, for pages that are read in a repository."""

from maxrr.paper.cells import MARKS, MISSING, SIGNS, cell_text
from maxrr.paper.names import readable
from maxrr.paper.parts import Json, Kind, kind_of


def markdown_lines(content: Json, *wanted: str) -> str:
    """One line per number: ours, the paper's, the difference, the verdict. Of some rows only, if they are named."""
    lines = ["| | ours | the paper's | difference | |", "|---|---:|---:|---:|---|"]
    for name, row in content["cells"].items():
        for column, cell in row.items():
            if wanted and name not in wanted:
                continue
            *numbers, verdict = cell_text(cell, kind_of(cell, column, content))
            what = name if len(row) == 1 else f"{readable(name, content)}: {readable(column, content)}"
            lines.append(f"| {what} | {' | '.join(numbers)} | {signed(verdict, cell)} |")
    return "\n".join(lines)


def markdown_grid(content: Json) -> str:
    """Rows and columns as the part has them; a cell holds ours, below it the paper's, difference, verdict."""
    cells = content["cells"]
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    lines = [
        f"| | {' | '.join(readable(column, content) for column in columns)} |", f"|---|{'---:|' * len(columns)}"
    ]  # fmt: skip
    for name, row in cells.items():
        told = [
            show_cell(row[column], kind_of(row[column], column, content)) if column in row else MISSING
            for column in columns
        ]
        lines.append(f"| {readable(name, content)} | {' | '.join(told)} |")
    return "\n".join(lines)


def show_cell(cell: Json, kind: Kind) -> str:
    """A cell in one or two lines."""
    ours, paper, difference, verdict = cell_text(cell, kind)
    return ours if cell["paper"] is None else f"{ours}<br>{paper} ({difference}) {SIGNS[verdict]} {mark(cell)}".rstrip()


def signed(verdict: str, cell: Json) -> str:
    """A verdict with its sign, and what the equivalence test says."""
    return f"{SIGNS[verdict]} {verdict} {mark(cell)}".rstrip() if verdict in SIGNS else ""


def mark(cell: Json) -> str:
    """Of the equivalence test; nothing where there was none."""
    return MARKS.get(str(cell.get("equivalence")), "")
