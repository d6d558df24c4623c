"""Side by side: distance to retraining against seconds, and accuracy of methods that promise something."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import Bbox

from lab.figures.look import BLUE, INK, ORANGE, QUIET, SERIES, handle, sheet
from lab.parts import Json

FLOOR, WITHOUT, TRAINED_ON = "retraining", "nothing done", "retraining, then fine-tuning"
LINES: dict[str, dict[str, Any]] = {
    FLOOR: {"color": INK, "linestyle": (0, (4, 2))}, WITHOUT: {"color": QUIET, "linestyle": (0, (1, 1))},
    TRAINED_ON: {"color": QUIET, "linestyle": (0, (6, 1, 1, 1))},
}  # fmt: skip
OURS = "MaxRR"
PLACES: tuple[dict[str, Any], ...] = (
    {"position": (0, -7), "ha": "center", "va": "top"}, {"position": (0, 7), "ha": "center", "va": "bottom"},
    {"position": (8, 0), "ha": "left", "va": "center"}, {"position": (-8, 0), "ha": "right", "va": "center"},
    {"position": (0, -20), "ha": "center", "va": "top"}, {"position": (0, 20), "ha": "center", "va": "bottom"},
)  # fmt: skip


def draw(techniques: Mapping[str, Sequence[Json]], promises: Mapping[str, Sequence[Json]]) -> Figure:
    """Draw techniques beside retraining, the dashed line, a row for each forget set, alone and below exact heads; and
    beside them methods that promise something.

    There, up is more accurate. In all panels, left is cheaper.
    """
    rows = len(techniques)
    figure = sheet(1.9 + 2.1 * rows)
    grid = figure.add_gridspec(rows, 3)
    there = {piece["method"] for pieces in techniques.values() for piece in pieces}
    names = sorted(there - LINES.keys())
    styles: dict[str, dict[str, Any]] = {
        name: {**style, "linestyle": "none", "markersize": 7} for name, style in zip(names, SERIES, strict=False)
    }
    for row, (forget_set, pieces) in enumerate(techniques.items()):
        alone = figure.add_subplot(grid[row, 0])
        below = figure.add_subplot(grid[row, 1], sharex=alone, sharey=alone)
        for axes, use in ((alone, "alone"), (below, "below exact heads")):
            panel(axes, [piece for piece in pieces if piece["use"] == use], styles)
            axes.set(title=f"{forget_set}: {use}" if use == "alone" else use)
        alone.set_xlim(left=0.0)  # after both are drawn: it fixes the right end, too
        alone.set(ylabel="KLoM, 95th percentile")
    for axes in (alone, below):
        axes.set(xlabel="seconds per request")
    ends = [round(part * rows / len(promises)) for part in range(len(promises) + 1)]
    beside = [figure.add_subplot(grid[first:end, 2]) for first, end in pairwise(ends)]
    for axes, (title, streams) in zip(beside, promises.items(), strict=True):
        methods(axes, streams)
        axes.set(title=title)
    handles = [handle(name, styles[name]) for name in names]
    handles += [handle(name, line) for name, line in LINES.items() if name in there]
    figure.legend(handles=handles, loc="outside upper left", ncols=4, fontsize=8.5)
    figure.draw_without_rendering()
    for axes, streams in zip(beside, promises.values(), strict=True):
        name_points(axes, streams)
    return figure


def panel(axes: Axes, pieces: Sequence[Json], styles: dict[str, dict[str, Any]]) -> None:
    """Techniques of one use; the floor is what retraining again gives."""
    for piece in pieces:
        distance = piece["klom"]["forgotten"]["95th"]
        if piece["method"] in styles:
            axes.plot([piece["request"]["seconds"]], [distance], **styles[piece["method"]])
        else:
            axes.axhline(distance, **LINES[piece["method"]], linewidth=1.0)
            if piece["method"] == FLOOR:
                axes.plot([piece["request"]["seconds"]], [distance], color=INK, marker="|", markersize=11)
    axes.grid()


def methods(axes: Axes, streams: Sequence[Json]) -> None:
    """Methods that promise something, at the end of the stream."""
    for piece in streams:
        ours = piece["method"].startswith(OURS)
        axes.plot(*point_of(piece), color=BLUE if ours else ORANGE, marker="o" if ours else "D", linestyle="none",
                  markersize=7, alpha=0.8)  # fmt: skip
    axes.set(xlabel="seconds per request", ylabel="accuracy")
    axes.margins(x=0.25, y=0.25)
    log_seconds(axes)


def point_of(piece: Json) -> tuple[float, float]:
    """Where a method is."""
    return piece["seconds"], piece["accuracy"]["after"]


def name_points(axes: Axes, streams: Sequence[Json]) -> None:
    """Write the methods beside their points, each at the first place that is free; the layout must be fixed."""
    points = axes.transData.transform([point_of(piece) for piece in streams])
    taken = [Bbox.from_bounds(x - 7, y - 7, 14, 14) for x, y in points]
    for piece in streams:
        text = axes.annotate(piece["method"].replace(", ", ",\n"), point_of(piece), (0, 0), fontsize=7.5,
                             textcoords="offset points")  # fmt: skip
        text.set_in_layout(False)
        for place in PLACES:
            text.set(**place)
            box = text.get_window_extent()
            inside = all(axes.bbox.contains(x, y) for x, y in box.corners())
            if inside and not any(box.overlaps(other) for other in taken):
                break
        taken.append(box)


def log_seconds(axes: Axes) -> None:
    """Seconds on a logarithmic scale, as plain numbers."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    axes.grid()
