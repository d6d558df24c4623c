"""Public weights and a small core: accuracy against the seconds that a person's request is expected to take."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from lab.figures.look import BLUE, INK, ORANGE, QUIET, add_heading, error_bar, handle, sheet
from lab.figures.shards import MARK, NUMBER, scale
from lab.parts import Json

PEOPLE = {"1": "one record", "5": "a person with 5 records", "20": "a person with 20 records"}
STYLES: dict[str, dict[str, Any]] = {
    "public weights": {"color": BLUE, "marker": "o", "linestyle": "-"},
    "from scratch": {"color": INK, "marker": "o", "linestyle": (0, (4, 2)), "markerfacecolor": "white"},
    "several shards": {"color": ORANGE, "marker": "s", "linestyle": "none"},
    "SISA": {"color": INK, "marker": "D", "linestyle": "none"},
    "ridge head": {"color": QUIET, "marker": "D", "linestyle": "none"},
}
BY_PERSON: dict[str, Any] = {"color": QUIET, "marker": "o", "linestyle": (0, (1, 1.5)), "markerfacecolor": "white"}


def draw(content: Json) -> Figure:
    """Up is more accurate, to the left is cheaper. A mark says how large the core is."""
    figure = sheet(5.2)
    panels = figure.subplots(1, len(PEOPLE), sharey=True)
    lines = lines_of(content["work"])
    for axes, (count, title) in zip(panels, PEOPLE.items(), strict=True):
        for name, points in lines.items():
            along(axes, points, [point["expected"][count] for point in points], {**STYLES[name], "zorder": 4})
        if count != "1" and "public weights" in lines:
            points = lines["public weights"]
            along(axes, points, [point["expected by person"][count] for point in points], {**BY_PERSON, "zorder": 3})
        scale(axes, "expected time", lambda seconds: f"{seconds:g} s" if seconds >= 0.1 else f"{1e3 * seconds:g} ms")
        axes.xaxis.set_major_locator(LogLocator(numticks=4))  # a ridge head is four decades away
        axes.set(title=title)
    panels[0].set(ylabel="accuracy on the test records")
    handles = [handle(name, STYLES[name], **MARK) for name in lines]
    handles.append(handle("the same, each person wholly core or not", BY_PERSON, **MARK))
    add_heading(figure, content, [*handles, error_bar("± 2 standard errors")])
    return figure


def lines_of(work: list[Json]) -> dict[str, list[Json]]:
    """The points whose seconds are known, by what they have in common, from the smallest core on."""
    found: dict[str, list[Json]] = {}
    for point in sorted(work, key=lambda point: float(point["share"])):
        if point["expected"]:
            name = "several shards" if point["shards"] > 1 else str(point["start"])
            found.setdefault(name, []).append(point)
    return found


def along(axes: Axes, points: list[Json], costs: list[float], style: dict[str, Any]) -> None:
    """A line with the size of the core in each mark, and two standard errors to either side of it."""
    errors = [2.0 * (point["stderr"] or 0.0) for point in points]
    axes.errorbar(costs, [point["accuracy"] for point in points], errors, elinewidth=1.0, **{**style, **MARK})
    for point, cost in zip(points, costs, strict=True):
        axes.text(
            cost,
            point["accuracy"],
            f"{100 * point['share']:g}",
            ha="center",
            va="center_baseline",
            fontsize=NUMBER,
            color=style["color"] if "markerfacecolor" in style else "white",
            fontweight="bold",
            zorder=style["zorder"] + 0.5,
        ).set_in_layout(False)
