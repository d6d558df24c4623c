"""A refit on what is left of the support vectors, beside one on all retained records: accuracy, and seconds."""

import statistics

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from lab.figures.look import QUIET, SERIES, add_heading, draw_interval, few_ticks, handle, name_rows, sheet
from lab.names import readable
from lab.parts import Json

BEFORE: dict[str, object] = {"color": QUIET, "marker": "|", "markersize": 12, "linestyle": "none"}
EACH: dict[str, object] = {"markersize": 2.5, "linestyle": "none"}
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
LANES = {way: SHIFT * (number - 1.5) for number, way in enumerate(STYLES)}  # the same in both panels


def draw(content: Json) -> Figure:
    """A row a request. The third way ends where the first does, so only its seconds are of interest."""
    cells, seconds = content["cells"], content["seconds"]
    figure = sheet(4.4)
    left, right = figure.subplots(1, 2, sharey=True)
    for place, request in enumerate(cells):
        for way, cell in cells[request].items():
            draw_interval(left, cell["mean"], cell["stderr"], place + LANES[way], STYLES[way])
        for way, times in seconds[request].items():
            row = place + LANES[way]
            right.plot(times, [row] * len(times), **{**STYLES[way], **EACH})
            right.plot([statistics.median(times)], [row], **STYLES[way])
    for axes in (left, right):
        name_rows(axes, [readable(request, content).replace("of the ", "of the\n") for request in cells])
    few_ticks(left, 5)
    left.set(title=f"mean of {content['runs']} models, ± 2 standard errors", xlabel="accuracy")
    timed = next(iter(seconds.values()))  # without 'moved' where heads are of pairs
    title = f"median of {len(timed['all retained'])} models, and each of them"
    right.set(title=title, xscale="log", xlabel="seconds, log scale")
    right.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    right.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    right.xaxis.set_minor_formatter(NullFormatter())
    shown = [way for way in NAMES if way in {"before", *timed}]
    add_heading(figure, content, [handle(NAMES[way], STYLES[way], linestyle="none") for way in shown], columns=2)
    return figure
