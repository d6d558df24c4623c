"""What the paper leaves open, read one way and another: one panel per quantity, one row per reading."""

from math import ceil
from textwrap import fill

from matplotlib.figure import Figure

from lab.figures.look import OURS, PAPERS, add_heading, draw_interval, few_ticks, handle, name_rows, sheet
from lab.names import readable
from lab.parts import Json

ACROSS = 4  # panels beside each other
NAME = 24  # letters in a line
TITLE = {1: 52, 2: 30, 3: 18, 4: 14}  # above a panel, by how many are beside each other
TICKS = {1: 6, 2: 4, 3: 3, 4: 3}  # below it, the same
LINE = 0.18  # inches


def draw(content: Json) -> Figure:
    """Our mean for each reading, and the paper's number as a line across them."""
    cells = content["cells"]
    quantities = list(dict.fromkeys(quantity for row in cells.values() for quantity in row))
    names = [fill(readable(reading, content), NAME) for reading in cells]
    across = min(ACROSS, len(quantities))
    down = ceil(len(quantities) / across)
    titles = [fill(readable(quantity, content), TITLE[across]) for quantity in quantities]
    tallest, above = (max(text.count("\n") + 1 for text in texts) for texts in (names, titles))
    figure = sheet(0.8 + down * (0.5 + LINE * above + (LINE * tallest + 0.06) * len(names)))
    grid = figure.subplots(down, across, sharey=True, squeeze=False)
    has_paper = False
    for axes, quantity, title in zip(grid.flat, quantities, titles, strict=False):
        name_rows(axes, names)
        for place, row in enumerate(cells.values()):
            if quantity in row:
                draw_interval(axes, row[quantity]["mean"], row[quantity]["stderr"], place, OURS)
        papers = [row[quantity]["paper"] for row in cells.values() if quantity in row]
        for paper in sorted({paper for paper in papers if paper is not None}):
            axes.axvline(paper, **{**PAPERS, "marker": None})
            has_paper = True
        axes.margins(x=0.1)
        axes.set_title(title)
        few_ticks(axes, TICKS[across])
    for axes in grid.flat[len(quantities) :]:
        axes.set_visible(False)
    handles = [handle("ours, ± 2 standard errors", OURS, linestyle="none")]
    handles += [handle("the paper's", PAPERS, marker=None)] if has_paper else []
    add_heading(figure, content, handles)
    return figure
