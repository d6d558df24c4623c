"""The core in shards: accuracy against the expected cost of forgetting one random record, in work and in seconds."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from lab.figures.look import CORES, INK, QUIET, add_heading, error_bar, handle, sheet
from lab.parts import Json

MARK = {"markersize": 10.0, "markeredgewidth": 1.0}
NUMBER = 6.5  # points: of the number in a mark
NAMES = {"full": "all records", "middle": "middle", "hash": "hash", "frequency": "frequency"}
SISA: dict[str, Any] = {"color": INK, "marker": "o", "linestyle": (0, (4, 2)), "markerfacecolor": "white"}
SLICED: dict[str, Any] = {**SISA, "color": QUIET, "linestyle": (0, (1, 1.5))}


def draw(content: Json) -> Figure:
    """Up is more accurate, to the left is cheaper. A line is a method, and a mark on it says how many shards there are.

    Networks of the usual width; the rest is in the table.
    """
    lines = lines_of(content["work"])
    styles = {f"core {core}": CORES[core] for core in NAMES}
    styles |= {name: SISA if name == "SISA" else SLICED for name in lines if "SISA" in name}
    machines = machines_of(content["work"])
    figure = sheet(5.6)
    panels = figure.subplots(1, 1 + bool(machines), sharey=True, squeeze=False)[0]
    for number, (name, points) in enumerate(lines.items(), 3):
        styles[name] = {**styles[name], "zorder": number}  # a mark hides the number in the mark below it
        along(panels[0], points, [point["work"]["random"]["1"] for point in points], styles[name])
        if machines:
            known = [point for point in points if "random" in point["seconds"].get(machines[0], {})]
            along(panels[1], known, [point["seconds"][machines[0]]["random"]["1"] for point in known], styles[name])
    scale(panels[0], "records × epochs trained again", counts)
    panels[0].set(ylabel="accuracy on the test records", title="work for one random record")
    if machines:
        scale(panels[1], "seconds, heads included", lambda value: f"{value:g}")
        panels[1].set(title=f"on {readable(machines[0])}")
    names = {
        **{f"core {key}": f"MaxRR, {word}" for key, word in NAMES.items()},
        "SISA": "SISA's vote (1: training again)",
    }
    handles = [handle(names.get(name, f"the same, {name[5:]}"), styles[name], **MARK) for name in lines]
    add_heading(figure, content, [*handles, error_bar("± 2 standard errors")])
    return figure


def lines_of(work: list[Json]) -> dict[str, list[Json]]:
    """The points of each method by its name, from one shard on; of SISA with slices those with the most slices."""
    usual = [point for point in work if point["width"] == 1.0]
    most = max((point["slices"] for point in usual), default=1)
    found: dict[str, list[Json]] = {}
    for core in NAMES:
        mine = [point for point in usual if point["method"] == "MaxRR" and point["core"] == core]
        found |= {f"core {core}": mine} if mine else {}
    for slices in (1, most):
        name = "SISA" if slices == 1 else f"SISA {slices} slices a shard"
        mine = [point for point in usual if point["method"] == "SISA" and point["slices"] == slices]
        found |= {name: mine} if mine else {}
    return {name: sorted(points, key=lambda point: int(point["S"])) for name, points in found.items()}


def machines_of(work: list[Json]) -> list[str]:
    """Those whose seconds are known, with a graphics processor first."""
    found = dict.fromkeys(place for point in work for place, known in point["seconds"].items() if known)
    return sorted(found, key=lambda place: place.startswith("cpu"))


def readable(place: str) -> str:
    """
    >>> readable("cpu, 2 cores"), readable("NVIDIA H200")
    ('2 cores', 'one NVIDIA H200')
    """
    return place.removeprefix("cpu, ") if place.startswith("cpu") else f"one {place}"


def along(axes: Axes, points: list[Json], costs: list[float], style: dict[str, Any]) -> None:
    """A line with the number of shards in each mark, and two standard errors to either side of it."""
    errors = [2.0 * (point["stderr"] or 0.0) for point in points]
    axes.errorbar(costs, [point["accuracy"] for point in points], errors, elinewidth=1.0, **{**style, **MARK})
    hollow = "markerfacecolor" in style
    for point, cost in zip(points, costs, strict=True):
        axes.text(
            cost, point["accuracy"], str(point["S"]), ha="center", va="center_baseline", fontsize=NUMBER,
            color=style["color"] if hollow else "white", fontweight="bold", zorder=style["zorder"] + 0.5,
        ).set_in_layout(False)  # fmt: skip


def scale(axes: Axes, label: str, form: Any) -> None:
    """Costs on a logarithmic scale."""
    axes.set(xscale="log", xlabel=f"{label}, log scale")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: form(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.08, y=0.1)
    axes.grid()


def counts(value: float) -> str:
    """
    >>> counts(300), counts(30_000), counts(1_000_000)
    ('300', '30k', '1M')
    """
    return f"{value:g}" if value < 1e3 else f"{value / 1e3:g}k" if value < 1e6 else f"{value / 1e6:g}M"
