"""In how many runs a forgotten record is claimed unlearned: one row per request, one column per method."""

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from lab.figures.look import OURS, PAPERS, add_heading, handle, remark, sheet
from lab.names import readable
from lab.parts import Json

REQUESTS = ("core20k", "noncore20k")  # the paper draws these


def draw(content: Json) -> Figure:
    """Logarithmic: most records are at one end, and what is between is a hundredth of them."""
    curves = content["share_by_runs_claimed_unlearned"]
    methods = list(curves[REQUESTS[0]])
    figure = sheet(6.0)
    grid = figure.subplots(len(REQUESTS), len(methods), sharex=True, sharey=True)
    drawn, left_out = False, 0
    shares: list[float] = []
    for line, request in zip(grid, REQUESTS, strict=True):
        for axes, method in zip(line, methods, strict=True):
            ours, theirs = curves[request][method]["ours"], curves[request][method]["paper"]
            if theirs is not None and len(theirs) == len(ours):
                axes.plot(range(len(theirs)), theirs, **{**PAPERS, "markersize": 6.5})
                drawn = True
                shares += theirs
            elif theirs is not None:
                left_out = len(theirs) - 1
            axes.plot(range(len(ours)), ours, **{**OURS, "markersize": 4})
            shares += ours
            axes.set_title(f"{readable(method, content)}: {readable(request, content)}")
            axes.grid(axis="y")
    corner = grid[0, 0]
    corner.set(yscale="log", ylim=(0.6 * min(share for share in shares if share > 0.0), 1.4))
    corner.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    corner.yaxis.set_major_locator(LogLocator())
    corner.yaxis.set_minor_locator(NullLocator())
    corner.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    figure.supxlabel("number of runs in which a record is claimed unlearned", fontsize="medium")
    figure.supylabel("share of the forgotten records, log scale", fontsize="medium")
    handles = [handle("ours", OURS)]
    handles += [handle("the paper's", PAPERS)] if drawn else []
    handles += [remark(f"The paper's is over {left_out} runs, and not drawn.")] if left_out else []
    add_heading(figure, content, handles)
    return figure
