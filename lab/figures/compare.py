"""Side by side: distance to retraining against seconds, and accuracy of methods that promise something."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from lab.compare.exact import FROZEN
from lab.figures.look import BLUE, INK, ORANGE, QUIET, SERIES, handle, sheet
from lab.parts import Json

FLOOR, WITHOUT = "retraining", "nothing done"
OURS = "MaxRR"


def draw(techniques: Sequence[Json], streams: Sequence[Json], forget_set: str) -> Figure:
    """Draw techniques beside retraining, the dashed line, in two panels, and methods that promise something in a third.

    In the third, up is more accurate. In all panels, left is cheaper.
    """
    figure = sheet(4.4)
    alone, below, promised = figure.subplots(1, 3)
    names = [name for name in dict.fromkeys(piece["method"] for piece in techniques) if name not in (FLOOR, WITHOUT)]
    styles: dict[str, dict[str, Any]] = {
        name: {**style, "linestyle": "none", "markersize": 7} for name, style in zip(names, SERIES, strict=False)
    }
    for axes, use, title in ((alone, "alone", "on a network"), (below, "below exact heads", "below our exact heads")):
        mine = [piece for piece in techniques if piece["use"] == use and piece["forget set"] == forget_set]
        panel(axes, mine, styles)
        axes.set(title=title, xlabel="seconds per request")
    below.sharey(alone), below.sharex(alone)
    alone.set(ylabel="distance to retraining (KLoM, 95th)")
    methods(promised, streams)
    handles = [handle(name, styles[name]) for name in names]
    handles += [handle("retraining again", {"color": INK, "linestyle": (0, (4, 2))}),
                handle("nothing done", {"color": QUIET, "linestyle": (0, (1, 1))})]  # fmt: skip
    figure.legend(handles=handles, loc="outside upper left", ncols=5, fontsize=8.5)
    return figure


def panel(axes: Axes, pieces: Sequence[Json], styles: dict[str, dict[str, Any]]) -> None:
    """Techniques of one use; the floor is what retraining again gives."""
    for piece in pieces:
        distance = piece["klom"]["forgotten"]["95th"]
        if piece["method"] in styles:
            axes.plot([piece["request"]["seconds"]], [distance], **styles[piece["method"]])
        else:
            floor = piece["method"] == FLOOR
            axes.axhline(distance, color=INK if floor else QUIET, dashes=(4, 2) if floor else (1, 1), linewidth=1.0)
            if floor:
                axes.plot([piece["request"]["seconds"]], [distance], color=INK, marker="|", markersize=11)
    axes.grid()
    axes.set_xlim(left=0.0)


def methods(axes: Axes, streams: Sequence[Json]) -> None:
    """Methods that promise something, at the end of the stream."""
    for piece in streams:
        ours, above = piece["method"].startswith(OURS), piece["method"] == FROZEN
        point = (piece["seconds"], piece["accuracy"]["after"])
        axes.plot(*point, color=BLUE if ours else ORANGE, marker="o" if ours else "D", linestyle="none", markersize=7)
        axes.annotate(piece["method"].replace(", ", ",\n"), point, xytext=(0, 7 if above else -7), fontsize=7.5,
                      textcoords="offset points", ha="center", va="bottom" if above else "top")  # fmt: skip
    axes.set(title="methods with a promise", xlabel="seconds per request", ylabel="accuracy after the stream")
    axes.margins(x=0.25, y=0.25)
    log_seconds(axes)


def log_seconds(axes: Axes) -> None:
    """Seconds on a logarithmic scale, as plain numbers."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    axes.grid()
