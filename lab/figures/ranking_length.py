"""How many runs a ranking needs: its core beside the longest one's, and the accuracy that it gives."""

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from lab.figures.look import SERIES, add_heading, error_bar, handle, sheet
from lab.names import profile, short
from lab.parts import Json


def draw(content: Json) -> Figure:
    """Both against the number of runs, whose doublings are equally far apart."""
    lines = sorted(content["lines"], key=lambda line: int(line["runs"]))
    runs = [line["runs"] for line in lines]
    figure = sheet(4.2)
    left, right = figure.subplots(1, 2)
    styles = dict(zip(map(int, lines[0]["overlap"]), SERIES, strict=False))
    for size, style in styles.items():
        left.plot(runs, [line["overlap"][str(size)] for line in lines], **style)
    large = profile(content)["large"]  # whose accuracy was measured
    errors = [2.0 * (line["stderr"] or 0.0) for line in lines]
    right.errorbar(runs, [line["accuracy"] for line in lines], yerr=errors, capsize=2.5, **styles[large])
    left.set_title("overlap with the longest ranking's core")
    left.yaxis.set_major_formatter(PercentFormatter(1.0, 0, " %"))
    right.set_title(f"accuracy with a core of {short(large)}")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(runs, [str(number) for number in runs])
        axes.minorticks_off()
        axes.margins(x=0.08, y=0.1)
        axes.grid(axis="y")
        axes.set_xlabel("runs of the ranking, log scale")
    handles = [handle(f"core of {short(size)}", style) for size, style in styles.items()]
    add_heading(figure, content, [*handles, error_bar("± 2 standard errors")])
    return figure
