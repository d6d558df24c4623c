"""What a core costs and what it spares: accuracy against the share of records that need no work, a line a selector."""

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from maxrr.report.figures.labels import Label, place
from maxrr.report.figures.look import SERIES, handle, headed, sheet
from maxrr.report.figures.names import Json, short


def frontier(content: Json) -> Figure:
    """Up and to the right is better. Each line goes through the sizes of the core, which the longest one names."""
    lines: dict[str, list[Json]] = {}
    for point in content["points"]:
        lines.setdefault(point["selector"], []).append(point)
    figure = sheet(5.4)
    axes = figure.subplots()
    handles, labels = [], []
    for number, (selector, points) in enumerate(lines.items()):
        points = sorted(points, key=lambda point: float(point["k"]))
        style = {**SERIES[number % len(SERIES)], "zorder": 3}
        x, y = [point["free"] for point in points], [point["accuracy"] for point in points]
        errors = [2.0 * (point["stderr"] or 0.0) for point in points]
        axes.errorbar(x, y, yerr=errors, capsize=2.0, elinewidth=0.8, **style)
        handles.append(handle(selector, style))
        labels.append(Label(selector, [(x[0], y[0]), (x[-1], y[-1])]))
    axes.margins(x=0.14, y=0.12)
    axes.set(xlabel="share of the records that are forgotten for free", ylabel="accuracy")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, 0, " %"))
    axes.grid()
    headed(figure, content, handles, columns=4)
    longest = max(lines.values(), key=len)
    sizes = [Label(f"k = {short(point['k'])}", [(point["free"], point["accuracy"])], 8.5) for point in longest]
    place(figure, axes, [*labels, *sizes])
    return figure
