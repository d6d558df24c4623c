"""How often MaxRR and perfect retraining get one verdict: one panel per request."""

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from lab.figures.look import OURS, PAPERS, SERIES, add_heading, handle, sheet
from lab.names import readable
from lab.parts import Json

COUNTS = SERIES[1]
SHIFTED = {**PAPERS, "marker": "+", "linestyle": "none"}
PLATEAU = 0.8  # from here the paper's points may stand for one run more


def draw(content: Json) -> Figure:
    """The share of records whose verdicts are the same in at least so many runs; and of those that are claimed
    unlearned about as often, which the paper's curve may be."""
    figure = sheet(6.0)
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    curves = content["share_with_the_same_verdict"]
    for axes, (request, curve) in zip(grid.flat, curves.items(), strict=True):
        if curve["paper"] is not None:
            axes.plot(curve["paper"]["runs"], curve["paper"]["shares"], **{**PAPERS, "markersize": 6.5})
            points = zip(curve["paper"]["runs"], curve["paper"]["shares"], strict=True)
            shifted = [(at + 0.05, share) for at, share in points if PLATEAU <= at < 1.0]
            axes.plot(*zip(*shifted, strict=True), **{**SHIFTED, "markersize": 7})
        axes.plot(curve["runs"], curve["counts"], **{**COUNTS, "markersize": 3.5})
        axes.plot(curve["runs"], curve["ours"], **{**OURS, "markersize": 4})
        axes.set_title(f"{readable(request, content)} forgotten")
        axes.grid()
    for axis in (grid[0, 0].xaxis, grid[0, 0].yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, 0, " %"))
    figure.supxlabel("in at least this share of the runs", fontsize="medium")
    figure.supylabel("share of the forgotten records", fontsize="medium")
    handles = [
        handle("ours: same verdict, run by run", OURS),
        handle("ours: claimed unlearned as often, over all runs", COUNTS),
    ]
    if any(curve["paper"] is not None for curve in curves.values()):
        handles += [handle("the paper's", PAPERS), handle("the paper's from 80 %, one run further", SHIFTED)]
    add_heading(figure, content, handles, columns=2)
    return figure
