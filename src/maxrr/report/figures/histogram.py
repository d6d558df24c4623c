"""How many records are support vectors in how many runs."""

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from maxrr.report.figures.look import BLUE, PAPERS, handle, headed, remark, sheet
from maxrr.report.figures.names import Json

LIGHT = "#b9d6ea"  # ours, as an area


def histogram(content: Json) -> Figure:
    """Ours as an area, the paper's as a mark a number of runs, if it had as many runs."""
    runs = np.arange(1, len(content["count_by_number_of_runs"]) + 1)
    ours = [content["count_by_number_of_runs"][str(number)] for number in runs]
    figure = sheet(4.4)
    axes = figure.subplots()
    edges = np.arange(len(ours) + 1) + 0.5
    area = axes.stairs(ours, edges, fill=True, facecolor=LIGHT, edgecolor=BLUE, label=f"ours: {ends(ours)}")
    axes.stairs(ours, edges, color=BLUE, linewidth=1.2, baseline=None)
    handles: list[Artist] = [area]
    paper = content["paper"]
    theirs: list[int] = []
    if paper is not None and len(paper) == len(ours):
        theirs = [paper[str(number)] for number in runs]
        style = {**PAPERS, "linestyle": "none", "markersize": 3.6, "markeredgewidth": 0.9, "zorder": 4}
        axes.plot(runs, theirs, **style)
        handles.append(handle(f"the paper's: {ends(theirs)}", style))
    elif paper is not None:
        handles.append(remark(f"The paper's is over {len(paper)} runs, and not drawn."))
    least, most = (end(count for count in [*ours, *theirs] if count) for end in (min, max))
    axes.set(yscale="log", ylim=(0.6 * least, 1.6 * most), xlim=(0.5, len(ours) + 0.5))
    axes.set(xlabel="number of runs in which a record is a support vector", ylabel="records")
    ticks = MaxNLocator(10, integer=True).tick_values(1, len(ours))
    axes.set_xticks([1, *(tick for tick in ticks if 1 < tick <= len(ours))])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.minorticks_off()
    headed(figure, content, handles, columns=1)
    return figure


def ends(counts: list[int]) -> str:
    """What the whole and its last bar say."""
    return f"{sum(counts):,} records are support vectors in some run, {counts[-1]:,} in every run"
