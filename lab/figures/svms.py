"""The same networks under other SVMs: one panel per quantity, one row per SVM."""

from textwrap import fill

from matplotlib.figure import Figure

from lab.figures.look import OURS, PAPERS, add_heading, draw_interval, few_ticks, handle, name_rows, sheet
from lab.names import readable
from lab.parts import Json

TITLE = 14  # letters in a line above a panel
TICKS = 3  # below a panel
LINE = 0.18  # inches


def draw(content: Json) -> Figure:
    """Our mean for each SVM, and the paper's number as a line across them."""
    cells = content["cells"]
    quantities = list(dict.fromkeys(quantity for row in cells.values() for quantity in row))
    titles = [fill(readable(quantity, content), TITLE) for quantity in quantities]
    above = max(title.count("\n") + 1 for title in titles)
    figure = sheet(1.3 + LINE * above + (LINE + 0.06) * len(cells))
    panels = figure.subplots(1, len(quantities), sharey=True)
    has_paper = False
    for axes, quantity, title in zip(panels, quantities, titles, strict=True):
        name_rows(axes, list(cells))
        for place, row in enumerate(cells.values()):
            if quantity in row:
                draw_interval(axes, row[quantity]["mean"], row[quantity]["stderr"], place, OURS)
        papers = [row[quantity]["paper"] for row in cells.values() if quantity in row]
        for paper in sorted({paper for paper in papers if paper is not None}):
            axes.axvline(paper, **{**PAPERS, "marker": None})
            has_paper = True
        axes.margins(x=0.1)
        axes.set_title(title)
        few_ticks(axes, TICKS)
    handles = [handle("ours, ± 2 standard errors", OURS, linestyle="none")]
    handles += [handle("the paper's", PAPERS, marker=None)] if has_paper else []
    add_heading(figure, content, handles)
    return figure
