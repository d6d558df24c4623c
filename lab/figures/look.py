"""One look for all figures. Ours is filled and solid, the paper's hollow and dashed: colours only help.

The paper's mark is larger and lies below ours, so that both are seen where they coincide.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from math import ceil
from textwrap import fill
from typing import Any

import matplotlib.style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from lab.names import heading
from lab.parts import Json

LARGE = 1000.0  # from here on a number on an axis is a count
WIDTH = 8.0  # inches: at 800 pixels a point of type is 1.4 pixels
BLUE, ORANGE, INK, QUIET, PALE = "#0072b2", "#e69f00", "#1b1f24", "#5b6470", "#e8e8e8"
SHADE = "#f4f4f4"
HEADING = 85  # letters in a line

SETTINGS: dict[Any, Any] = {
    "figure.dpi": 160,
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
    "font.size": 10.5,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": PALE,
    "lines.linewidth": 1.4,
    "lines.markersize": 5,
    "legend.frameon": False,
    "legend.borderaxespad": 0.2,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign is one
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "svg.fonttype": "path",  # looks the same wherever it is shown
    "svg.hashsalt": "maxrr",  # the same drawing gives the same file
}

OURS: dict[str, Any] = {"color": BLUE, "marker": "o", "linestyle": "-", "zorder": 3}
PAPERS: dict[str, Any] = {
    "color": INK, "marker": "D", "linestyle": (0, (4, 2)), "linewidth": 1.0, "markersize": 7.5, "markeredgewidth": 1.1,
    "markerfacecolor": "white", "zorder": 2,
}  # fmt: skip

# Several things of ours in one axes: first told apart by their marks, then by their dashes, then by colour.
SERIES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "marker": "o", "linestyle": "-"},
    {"color": ORANGE, "marker": "s", "linestyle": (0, (6, 1.5))},
    {"color": INK, "marker": "^", "linestyle": (0, (1, 1))},
    {"color": "#009e73", "marker": "D", "linestyle": (0, (6, 1.5, 1, 1.5))},
    {"color": "#cc79a7", "marker": "v", "linestyle": (0, (3, 2))},
    {"color": "#d55e00", "marker": "P", "linestyle": (0, (10, 2))},
    {"color": "#56b4e9", "marker": "X", "linestyle": (0, (6, 1.5, 1, 1.5, 1, 1.5))},
    {"color": QUIET, "marker": "*", "linestyle": (0, (2, 3))},
    {"color": "#7a4a1e", "marker": "<", "linestyle": (0, (12, 2, 2, 2))},
    {"color": "#999933", "marker": "h", "linestyle": (0, (4, 4))},
)


# A core has its mark and colour in every figure; a number fits into the marks of the first four.
CORES: dict[str, dict[str, Any]] = {
    "middle": {**SERIES[0], "marker": "o"},
    "frequency": {**SERIES[4], "marker": "s"},
    "hash": {**SERIES[5], "marker": "h"},
    "full": {**SERIES[3], "marker": "p"},
    "middle of 10 runs": {**SERIES[0], "marker": "o", "markerfacecolor": "white"},
    "mixed": {**SERIES[1], "marker": "v"},
    "balanced": {**SERIES[2], "marker": "^"},
    "balanced mixed": SERIES[6],
    "EL2N": SERIES[8],
    "forgetting": {**SERIES[9], "marker": "D"},
}


def look() -> AbstractContextManager[None]:
    """The settings, whatever the user's own are; they are back when the context ends."""
    return matplotlib.style.context(["default", SETTINGS])


def sheet(height: float) -> Figure:
    """An empty figure."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def add_heading(figure: Figure, content: Json, handles: Sequence[Artist] = (), columns: int = 3) -> None:
    """The heading and below it what the marks mean, above all axes: covers nothing."""
    figure.legend(
        handles=handles, loc="outside upper left", title=fill(heading(content), HEADING), alignment="left",
        title_fontproperties={"weight": "bold"}, ncols=columns, columnspacing=1.6, handlelength=2.6,
    )  # fmt: skip


def handle(label: str, style: dict[str, Any], **changes: Any) -> Line2D:
    """An entry of the legend."""
    return Line2D([], [], label=label, **{**style, **changes})


def remark(text: str) -> Line2D:
    """An entry of the legend that is only words."""
    return Line2D([], [], linestyle="none", label=text)


def error_bar(label: str) -> Line2D:
    """An entry of the legend that says what the bars mean."""
    return handle(label, {"color": QUIET, "marker": "|", "markersize": 11, "linestyle": "none"})


def draw_interval(axes: Axes, mean: float, stderr: float | None, row: float, style: dict[str, Any]) -> None:
    """A mean with two standard errors to either side, on a row; a single run has none."""
    reach = None if stderr is None else 2.0 * stderr
    axes.errorbar([mean], [row], xerr=reach, capsize=2.5, **{**style, "linestyle": "none"})


def name_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Named rows, the first on top, with a faint line along each."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y")


def shade(axes: Axes) -> None:
    """Another background, for a scale that is not the neighbours'."""
    axes.set_facecolor(SHADE)
    axes.tick_params(grid_color="white")


def few_ticks(axes: Axes, most: int = 4) -> None:
    """So few values below the axes that they stay apart; counts are in thousands, and one value less."""
    low, high = axes.get_xlim()
    most -= high >= LARGE
    values = MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(low, high)
    inside = [value for value in values if low <= value <= high]
    axes.set_xticks(inside[:: ceil(len(inside) / most)])
    if high >= LARGE:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:g}k"))
