"""Accuracy after unlearning six sets of records: one panel per set, in it a row for what it is unlearned from."""

import statistics

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.cells import SIGNS
from lab.figures.look import (
    OURS,
    PAPERS,
    add_heading,
    draw_interval,
    few_ticks,
    handle,
    name_rows,
    remark,
    shade,
    sheet,
)
from lab.names import readable
from lab.parts import Json

WIDER = 3.0  # times the usual range: a panel beyond it gets a scale of its own
MARGIN = 0.08  # of a range, to either side
SHIFT = 0.13  # of ours down and of the paper's up, so that no error bar hides another
KEY = ", ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
SAME = "No"  # unlearns nothing: its columns measure the same thing


def draw(content: Json) -> Figure:
    """Panels share one scale, but for those that would squeeze all others."""
    cells = content["cells"]
    names = list(next(iter(cells.values())))
    figure = sheet(5.6)
    grid = figure.subplots(2, 3, sharey=True)
    columns = [{row: cells[row][name] for row in cells} for name in names]
    error = assumed(cells)
    ranges = [reach(column, error) for column in columns]
    usual = sorted(high - low for low, high in ranges)[len(ranges) // 2]
    alike = [high - low <= WIDER * usual for low, high in ranges]
    common = join_ranges([one for one, is_alike in zip(ranges, alike, strict=True) if is_alike])
    for axes, name, column, own, is_alike in zip(grid.flat, names, columns, ranges, alike, strict=True):
        name_rows(axes, [readable(row, content) for row in column])
        draw_panel(axes, column, error)
        low, high = common if is_alike else own
        axes.set_xlim(low - MARGIN * (high - low), high + MARGIN * (high - low))
        few_ticks(axes)
        axes.set(title=readable(name, content), xlabel="accuracy" if is_alike else "accuracy, on a wider scale")
        if not is_alike:
            shade(axes)
    for axes in grid[:, 0]:
        axes.set_ylabel("unlearned from")
    handles = [handle("ours, ± 2 standard errors", OURS, linestyle="none")]
    if error is not None:
        handles += [handle("the paper's, ± 2 assumed standard errors", PAPERS, linestyle="none"), remark(KEY)]
    add_heading(figure, content, handles, columns=2)
    return figure


def draw_panel(axes: Axes, column: Json, error: float | None) -> None:
    """What is left after one set is unlearned."""
    shift = 0.0 if error is None else SHIFT
    for place, cell in enumerate(column.values()):
        draw_interval(axes, cell["mean"], cell["stderr"], place + shift, OURS)
        if cell["paper"] is not None:
            draw_interval(axes, cell["paper"], error, place - shift, PAPERS)
            axes.text(1.01, place, SIGNS[cell["verdict"]], va="center", transform=axes.get_yaxis_transform())


def assumed(cells: Json) -> float | None:
    """The standard error of the paper's accuracies: how those spread that measure the same thing. It gives none."""
    papers = [cell["paper"] for cell in cells[SAME].values()]
    return None if None in papers else statistics.stdev(papers)


def reach(column: Json, error: float | None) -> tuple[float, float]:
    """From the smallest to the largest number of a panel, with their errors."""
    values = [value for cell in column.values() for value in (cell["mean"], cell["paper"]) if value is not None]
    most = 2.0 * max(error or 0.0, *(cell["stderr"] or 0.0 for cell in column.values()))
    return min(values) - most, max(values) + most


def join_ranges(ranges: list[tuple[float, float]]) -> tuple[float, float]:
    """The range that contains all of these; never empty."""
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    return (low, high) if high > low else (low - 0.01, high + 0.01)
