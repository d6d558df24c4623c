"""Accuracy after random support vectors are unlearned, by their share; the paper does not say which it took."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from lab.figures.labels import apart
from lab.figures.look import INK, PAPERS, QUIET, SERIES, add_heading, error_bar, handle, sheet
from lab.names import readable
from lab.parts import Json

LEVEL = "No"  # unlearns nothing: no share to depend on
GAP = 0.062  # between labels, of the height of the axes
AROUND = 0.06  # the shares, of all support vectors
SHIFT = 0.006  # between lines, so that their error bars stay apart


def draw(content: Json) -> Figure:
    """A line for what the records are unlearned from, and the paper's numbers as levels."""
    cells = content["cells"]
    shares = [float(name.rstrip("%")) / 100.0 for name in cells[LEVEL]]
    figure = sheet(4.6)
    axes = figure.subplots()
    handles = []
    for number, (row, by_share) in enumerate(cells.items()):
        means = [cell["mean"] for cell in by_share.values()]
        errors = [2.0 * (cell["stderr"] or 0.0) for cell in by_share.values()]
        style = {"color": QUIET, "marker": None} if row == LEVEL else SERIES[number - 1]
        style = {**style, "linestyle": "-", "zorder": 3}
        if row == LEVEL:
            axes.axhspan(means[0] - errors[0], means[0] + errors[0], color=QUIET, alpha=0.15, linewidth=0)
            axes.axhline(means[0], **style)
        else:
            axes.errorbar([share + SHIFT * (number - 2) for share in shares], means, yerr=errors, capsize=2.5, **style)
        handles.append(handle("nothing (No)" if row == LEVEL else readable(row, content), style))
    axes.set_xticks(shares, list(cells[LEVEL]))
    axes.set(xlabel="share of the support vectors that is unlearned", ylabel="accuracy")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, 0, " %"))
    axes.set_xlim(min(shares) - AROUND, max(shares) + AROUND)
    axes.margins(y=0.08)
    papers = {row: next(iter(by_share.values()))["paper"] for row, by_share in cells.items()}
    draw_levels(axes, {readable(row, content): paper for row, paper in papers.items() if paper is not None})
    if any(paper is not None for paper in papers.values()):
        handles.append(handle("the paper's (share unknown)", PAPERS, marker=None))
    handles.append(error_bar("± 2 standard errors"))
    add_heading(figure, content, handles)
    return figure


def draw_levels(axes: Axes, papers: dict[str, float]) -> None:
    """Dashed lines with their names at the right edge, which stay apart however near the lines are."""
    for value in papers.values():
        axes.axhline(value, **{**PAPERS, "marker": None})
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    places = {name: (value - low) / (high - low) for name, value in papers.items()}
    for (name, place), label in zip(places.items(), apart(list(places.values()), GAP), strict=True):
        text = f"paper's {name}: {papers[name]:.4f}"
        axes.annotate(
            text, (1.0, place), (1.04, label), xycoords="axes fraction", textcoords="axes fraction", va="center",
            arrowprops={"arrowstyle": "-", "color": INK, "linewidth": 0.7, "shrinkA": 1, "shrinkB": 0},
        )  # fmt: skip
