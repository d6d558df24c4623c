"""What a core costs and what it spares: accuracy against the share of records that need no work, by the core's size."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from lab.figures.labels import place
from lab.figures.look import CORES, add_heading, error_bar, few_ticks, handle, shade, sheet
from lab.names import short
from lab.parts import Json

PAPERS = "frequency"  # the paper's choice
WIDTHS = (1.0, 4.0)  # of the axes for what lies far to the left, and of those for the rest
FAR = 1.5  # lengths of the box below it, as in a box plot


def draw(content: Json) -> Figure:
    """Up and to the right is better. A selector has the same mark for every size, and its name beside it."""
    points = content["points"]
    sizes, selectors = (list(dict.fromkeys(point[key] for point in points)) for key in ("k", "selector"))
    styles = {name: {**CORES[name], "markersize": 7} for name in selectors}
    edge = fence([point["free"] for point in points])
    sides = (True, False) if any(point["free"] < edge for point in points) else (False,)
    figure = sheet(1.0 + 2.7 * len(sizes))
    widths = WIDTHS[-len(sides) :]
    grid = figure.subplots(len(sizes), len(sides), sharex="col", sharey="row", squeeze=False, width_ratios=widths)
    panels: dict[Axes, list[Json]] = {}
    for line, size in zip(grid, sorted(sizes), strict=True):
        for axes, is_far in zip(line, sides, strict=True):
            panels[axes] = [point for point in points if point["k"] == size and (point["free"] < edge) == is_far]
            for point in panels[axes]:
                error, style = 2.0 * (point["stderr"] or 0.0), styles[point["selector"]]
                axes.errorbar([point["free"]], [point["accuracy"]], yerr=error, capsize=2.0, elinewidth=0.8, **style)
            axes.margins(x=0.12, y=0.14)
            axes.grid()
        line[0].set(title=f"core of {short(size)}", ylabel="accuracy")
    for column, is_far in zip(grid.T, sides, strict=True):
        scale(column, edge if is_far else None)
    handles = [error_bar("± 2 standard errors of the accuracy")]
    handles += [handle(f"{PAPERS}: the paper's choice", styles[PAPERS], linestyle="none")] if PAPERS in styles else []
    add_heading(figure, content, handles)
    for axes, here in panels.items():
        place(figure, axes, {point["selector"]: (point["free"], point["accuracy"]) for point in here})
    return figure


def scale(column: list[Axes], edge: float | None) -> None:
    """What axes below each other share: what lies far to the left is up to an edge, on a wider scale."""
    if edge is not None:
        column[0].set_xlim(-0.06 * edge, 1.06 * edge)
        for axes in column:
            shade(axes)
    few_ticks(column[-1], 6 if edge is None else 3)
    column[-1].xaxis.set_major_formatter(PercentFormatter(1.0, 0, " %"))
    column[-1].set_xlabel("share of the records that are forgotten for free" if edge is None else "on a wider scale")


def fence(shares: list[float]) -> float:
    """Below it a share lies so far from the others that it would squeeze them.

    >>> fence([0.1, 4.0, 4.5, 5.0, 5.5])
    2.5
    """
    low, high = np.quantile(shares, [0.25, 0.75])
    return float(low - FAR * (high - low))
