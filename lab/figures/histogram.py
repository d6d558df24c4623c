"""How many records are support vectors in how many runs."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from lab.figures.look import OURS, PAPERS, add_heading, handle, remark, sheet
from lab.parts import Json

LINE = {**OURS, "marker": None}
DASHES = {**PAPERS, "marker": None, "linestyle": (0, (3, 1)), "zorder": 4}


def draw(content: Json) -> Figure:
    """A step a number of runs; the paper's, too, if it had as many runs."""
    runs = np.arange(1, len(content["count_by_number_of_runs"]) + 1)
    ours = [content["count_by_number_of_runs"][str(number)] for number in runs]
    figure = sheet(4.4)
    axes = figure.subplots()
    draw_steps(axes, ours, LINE)
    handles = [handle(f"ours: {ends(ours)}", LINE)]
    paper = content["paper"]
    theirs: list[int] = []
    if paper is not None and len(paper) == len(ours):
        theirs = [paper[str(number)] for number in runs]
        draw_steps(axes, theirs, DASHES)
        handles.append(handle(f"the paper's: {ends(theirs)}", DASHES))
    elif paper is not None:
        handles.append(remark(f"The paper's is over {len(paper)} runs, and not drawn."))
    least, most = (end(count for count in [*ours, *theirs] if count) for end in (min, max))
    axes.set(yscale="log", ylim=(0.6 * least, 1.6 * most), xlim=(0.5, len(ours) + 0.5))
    axes.set(xlabel="number of runs in which a record is a support vector", ylabel="records, log scale")
    ticks = MaxNLocator(10, integer=True).tick_values(1, len(ours))
    axes.set_xticks([1, *(tick for tick in ticks if 1 < tick <= len(ours))])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.minorticks_off()
    add_heading(figure, content, handles, columns=1)
    return figure


def draw_steps(axes: Axes, counts: list[int], style: dict[str, Any]) -> None:
    """A line with a step for each count, around its number; without an area, which a log scale would cut anywhere."""
    axes.plot(np.arange(len(counts) + 1) + 0.5, [*counts, counts[-1]], drawstyle="steps-post", **style)


def ends(counts: list[int]) -> str:
    """What the whole and its last step say."""
    return f"{sum(counts):,} records are support vectors in some run, {counts[-1]:,} in every run"
