"""Several quantities of the same rows on one scale, and beside them what they differ by."""

from collections.abc import Mapping, Sequence
from textwrap import fill

from matplotlib.figure import Figure

from lab.figures.look import (
    INK,
    QUIET,
    SERIES,
    add_heading,
    draw_interval,
    error_bar,
    few_ticks,
    handle,
    name_rows,
    sheet,
)
from lab.names import readable
from lab.parts import Json

NAME = 24  # letters in a line
ROW = 0.42  # inches
ALONE = ""  # a quantity that its panel's title names
SHIFT = 0.22  # between marks in a row, so that their error bars stay apart

Panel = tuple[str, Mapping[str, str], float | None]
"""A title, the quantities in it by what the legend calls them, and where nothing happened."""


def draw_control(content: Json) -> Figure:
    """What is claimed unlearned before and after, and how well that tells one from the other."""
    return draw_beside(content, [
        ("claimed unlearned", {"before": "claimed before", "after": "claimed after"}, None),
        ("told apart (line: a coin)", {ALONE: "told apart"}, 0.5),
    ])  # fmt: skip


def draw_matched(content: Json) -> Figure:
    """Accuracies without support vectors, without as many others, and by how much the first are higher or lower."""
    others = ("not influential", "random")
    return draw_beside(content, [
        ("accuracy without", {name: name for name in ("support vectors", *others)}, None),
        ("support vectors less these", {name: f"support vectors less {name}" for name in others}, 0.0),
    ])  # fmt: skip


def draw_beside(content: Json, panels: Sequence[Panel]) -> Figure:
    """A row a row of the table. What the legend calls the same has the same mark in all panels."""
    cells = content["cells"]
    figure = sheet(1.5 + ROW * len(cells))
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False, width_ratios=[1.4, *[1.0] * (len(panels) - 1)])
    words = dict.fromkeys(word for _, quantities, _ in panels for word in quantities if word != ALONE)
    styles = {ALONE: {"color": INK, "marker": "x"}, **dict(zip(words, SERIES, strict=False))}
    for axes, (title, quantities, nothing) in zip(grid.flat, panels, strict=True):
        name_rows(axes, [fill(readable(name, content), NAME) for name in cells])
        if nothing is not None:
            axes.axvline(nothing, color=QUIET, linewidth=0.9, zorder=1)
        for number, (word, quantity) in enumerate(quantities.items()):
            shift = SHIFT * (number - (len(quantities) - 1) / 2.0)
            for place, row in enumerate(cells.values()):
                if quantity in row:
                    draw_interval(axes, row[quantity]["mean"], row[quantity]["stderr"], place + shift, styles[word])
        axes.margins(x=0.08)
        axes.set_title(title)
        few_ticks(axes, 5)
    handles = [handle(word, styles[word], linestyle="none") for word in words]
    add_heading(figure, content, [*handles, error_bar("± 2 standard errors")], columns=4)
    return figure
