"""A refit on what is left of the support vectors, beside one on all retained records: accuracy, and seconds."""

import statistics

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from maxrr.report.figures.look import QUIET, SERIES, few_ticks, handle, headed, interval, rows, sheet
from maxrr.report.figures.names import Json, readable

BEFORE: dict[str, object] = {"color": QUIET, "marker": "|", "markersize": 12, "linestyle": "none"}
STYLES = {
    "before": BEFORE,
    "all retained": SERIES[0],
    "remaining support vectors": SERIES[1],
    "moved": SERIES[2],
}
NAMES = {
    "before": "before the request",
    "all retained": "fitted to all retained",
    "remaining support vectors": "fitted to the remaining support vectors",
    "moved": "moved from where it was",
}
SHIFT = 0.16  # between the ways, so that none hides another


def refit(content: Json) -> Figure:
    """A row a request. The third way ends where the first does, so only its seconds are of interest."""
    cells, seconds = content["cells"], content["seconds"]
    figure = sheet(4.4)
    left, right = figure.subplots(1, 2, sharey=True)
    for place, request in enumerate(cells):
        for number, (way, cell) in enumerate(cells[request].items()):
            interval(left, cell["mean"], cell["stderr"], place + SHIFT * (number - 1), STYLES[way])
        for number, (way, times) in enumerate(seconds[request].items()):
            mean = statistics.fmean(times)
            reach = [[mean - min(times)], [max(times) - mean]]
            style = {**STYLES[way], "linestyle": "none"}
            right.errorbar([mean], [place + SHIFT * (number - 1)], xerr=reach, capsize=2.5, **style)
    for axes in (left, right):
        rows(axes, [readable(request, content).replace("of the ", "of the\n") for request in cells])
    few_ticks(left, 5)
    left.set(xlabel="accuracy, ± 2 standard errors")
    right.set(xscale="log", xlabel="seconds, from fastest to slowest run")
    right.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    right.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    right.xaxis.set_minor_formatter(NullFormatter())
    headed(figure, content, [handle(name, STYLES[way], linestyle="none") for way, name in NAMES.items()], columns=2)
    return figure
