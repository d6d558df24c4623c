"""Small charts as SVG in the page. Colours come from the look, by class; every group has a shape of its own too."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from maxrr.report.page import Group, marks, number, tag

CELL = 6.0  # of one mark, at most
GAP = 2.5  # between bins
AXIS, HEADROOM = 28.0, 30.0  # below and above the marks


def unit_histogram(
    values: NDArray[np.floating], groups: Sequence[tuple[Group, NDArray[np.bool_]]], marked: NDArray[np.bool_], *,
    lowest: int, edge: float, step: float, width: float, notes: tuple[str, str], label: str, style: str,
) -> Markup:  # fmt: skip
    """A histogram with one mark for each value, so that none is hidden by another; values up to `edge` are shaded.

    Bins end at `edge` and at whole steps from it, and contain their upper end; the first takes everything up to
    `lowest`. Groups are stacked in the order given; the marked values are ringed.

    Parameters
    ----------
    notes
        What to write into the shaded part and beside it.
    label
        For whoever cannot see it.
    style
        Classes of the whole.
    """
    first = ceil((lowest - edge) / step)
    bins = np.maximum(np.ceil((values - edge) / step).astype(int), first) - first
    split, last = 1 - first, max(int(bins.max()), 1 - first)
    bin_width = width / (last + 1)
    across = max(1, ceil((bin_width - GAP) / CELL))
    cell = (bin_width - GAP) / across
    columns, levels = stacked(values, bins, [members for _, members in groups], across)
    ground = HEADROOM + cell * (levels.max() + 1)
    places = np.column_stack([
        bins * bin_width + GAP / 2 + (columns + 0.5) * cell,
        ground - (levels + 0.5) * cell - 1.0,
    ])  # fmt: skip
    size = cell * 0.72
    return tag(
        "svg",
        tag("rect", x=0, y=0, width=split * bin_width, height=ground, class_="band"),
        tag("line", x1=split * bin_width, x2=split * bin_width, y1=0, y2=ground + 6.0, class_="edge"),
        tag("text", notes[0], x=split * bin_width - 12.0, y=20, text_anchor="end", class_="inside"),
        tag("text", notes[1], x=split * bin_width + 12.0, y=20),
        *(marks(group.shape, places[members & ~marked], size, class_=group.style) for group, members in groups),
        *(tag("circle", cx=x, cy=y, r=cell * 0.9, class_="ring") for x, y in places[marked].tolist()),
        *(marks(group.shape, places[members & marked], size, class_=group.style) for group, members in groups),
        *axis(lowest, edge + (first + last) * step, lowest - step, bin_width / step, ground, width),
        class_=f"chart {style}", viewBox=f"0 0 {number(width)} {number(ground + AXIS)}", role="img", aria_label=label,
    )  # fmt: skip


def stacked(
    values: NDArray[np.floating], bins: NDArray[np.int_], groups: Sequence[NDArray[np.bool_]], across: int
) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Column and level of each value in its bin, which fills row by row: group after group, small values first."""
    order = np.lexsort([values, np.argmax(groups, axis=0), bins])
    sorted_bins = bins[order]
    place = np.empty_like(bins)
    place[order] = np.arange(len(bins)) - np.searchsorted(sorted_bins, sorted_bins)
    return place % across, place // across


def axis(lowest: int, highest: float, left: float, scale: float, y: float, width: float) -> Iterable[Markup]:
    """Draw a line with whole numbers below it; the first of them stands for all lower values, too."""
    yield tag("line", x1=0, x2=width, y1=y, y2=y, class_="axis")
    for value in range(lowest, floor(highest) + 1):
        x = (value - left) * scale
        text = f"{'≤ ' if value == lowest else ''}{value}".replace("-", "−")
        if x <= width - 8.0:
            yield tag("line", x1=x, x2=x, y1=y, y2=y + 5.0, class_="axis")
            yield tag("text", text, x=x, y=y + 21.0, text_anchor="middle" if value > lowest else "end")


def bar(share: float, style: str) -> Markup:
    """Draw a bar over this share of the width, visible even if the share is tiny."""
    drawn = tag("rect", width="100%", height="100%", fill="currentColor")
    return tag("svg", drawn, class_=f"bar {style}", style=f"width: {max(100.0 * share, 0.3):.1f}%", aria_hidden="true")


def shares(parts: Sequence[tuple[Group, int]]) -> Markup:
    """One bar, divided as the numbers are; gaps tell the parts apart without colours."""
    ends = np.cumsum([0, *(size for _, size in parts)]) / sum(size for _, size in parts) * 100.0
    drawn = (
        tag(
            "rect",
            x=left,
            width=right - left - 0.3 * (right < 100.0),
            height=10,
            fill="currentColor",
            class_=group.style,
        )
        for (group, _), left, right in zip(parts, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    )
    return tag(
        "svg", *drawn, class_="bar shares", viewBox="0 0 100 10", preserveAspectRatio="none", role="img",
        aria_label=", ".join(f"{group.name}: {size:,}" for group, size in parts),
    )  # fmt: skip


def fingerprint(digest: str, style: str = "") -> Markup:
    """Draw a hash as bars, one for each byte, so that equal hashes look equal."""
    heights = [1.0 + 17.0 * byte / 255.0 for byte in bytes.fromhex(digest)]
    moves = "".join(f"M{4 * place} 18v{number(-height)}h3V18z" for place, height in enumerate(heights))
    drawn = tag("path", d=moves, fill="currentColor")
    return tag(
        "svg", drawn, class_=f"fingerprint {style}", viewBox=f"0 0 {4 * len(heights) - 1} 18", aria_hidden="true"
    )


def strip(value: float, low: float, high: float, *, left: float, right: float, tick: float | None = None) -> Markup:
    """A value beside a range of others, on a scale from `left` to `right`; a tick for where chance is."""
    places = [6.0 + 108.0 * min(max((place - left) / (right - left), 0.0), 1.0) for place in (value, low, high)]
    at, start, end = places
    drawn = [
        tag("line", x1=0, x2=120, y1=8, y2=8, class_="axis"),
        tag("rect", x=start - 1.0, width=end - start + 2.0, y=4, height=8, class_="range"),
    ]
    if tick is not None:
        x = 6.0 + 108.0 * (tick - left) / (right - left)
        drawn.append(tag("line", x1=x, x2=x, y1=1, y2=15, class_="axis"))
    mark = marks("diamond", [(at, 8.0)], 9.0)
    return tag("svg", *drawn, mark, class_="strip", viewBox="0 0 120 16", aria_hidden="true")


# ROC curves on logarithmic axes: what an attack finds where it is almost never wrong.


LOWEST = 1e-4  # the smallest rate of false positives that is shown
LEFT, TOP, BELOW = 52.0, 30.0, 44.0  # room for the axes
RIGHT = 8.0


@dataclass(frozen=True)
class Trace:
    """How one curve is drawn: a class of the look, dashes and a shape, so that it can be told without colours."""

    style: str
    dashes: str
    shape: str  # "circle", "diamond" or "square"


@dataclass(frozen=True)
class Axes:
    """The place of rates on a picture; rates below the ends of an axis lie on its end."""

    lowest_tpr: float
    width: float
    height: float

    def x(self, fpr: float) -> float:
        return LEFT + (self.width - LEFT - RIGHT) * (1.0 - log10(max(fpr, LOWEST)) / log10(LOWEST))

    def y(self, tpr: float) -> float:
        share = log10(max(tpr, self.lowest_tpr)) / log10(self.lowest_tpr)
        return TOP + (self.height - TOP - BELOW) * share

    @property
    def ground(self) -> float:
        return self.height - BELOW


def roc_chart(
    curves: Sequence[tuple[Trace, Sequence[float], Sequence[float]]], *,
    records: int, width: float, height: float, label: str, style: str,
) -> Markup:  # fmt: skip
    """Draw curves of false and true positive rates as steps: nothing is interpolated.

    Parameters
    ----------
    curves
        How each is drawn, its false and its true positives.
    records
        How many can be true positives: fewer than one of them is not shown.
    label, style
        As for `maxrr.report.charts.unit_histogram`.
    """
    axes = Axes(max(LOWEST, 10.0 ** floor(log10(0.9 / records))), width, height)
    start = max(LOWEST, axes.lowest_tpr)
    return tag(
        "svg",
        *grid(axes),
        tag("line", x1=axes.x(start), y1=axes.y(start), x2=axes.x(1.0), y2=axes.y(1.0), class_="chance"),
        *(
            tag("g", *trace(axes, how, fpr, tpr, place / len(curves)), class_=how.style)
            for place, (how, fpr, tpr) in enumerate(curves)
        ),
        class_=f"chart {style}", viewBox=f"0 0 {number(width)} {number(height)}", role="img", aria_label=label,
    )  # fmt: skip


def trace(axes: Axes, how: Trace, fpr: Sequence[float], tpr: Sequence[float], shift: float) -> Iterable[Markup]:
    """Draw one curve, with marks at places of its own: `shift` says how far into each decade."""
    corners = [(axes.x(x), axes.y(y)) for x, y in zip(fpr, tpr, strict=True) if y >= axes.lowest_tpr]
    if not corners:
        return
    moves = f"M{number(corners[0][0])} {number(axes.ground)}"
    moves += "".join(f"H{number(x)}V{number(y)}" for x, y in corners)
    yield tag("path", d=moves, class_="curve", stroke_dasharray=how.dashes or None)
    at = LOWEST * 10.0 ** (np.arange(-log10(LOWEST)) + 0.1 + shift)
    reached = np.asarray(tpr)[np.searchsorted(fpr, at, side="right") - 1]
    places = [(axes.x(x), axes.y(y)) for x, y in zip(at.tolist(), reached.tolist(), strict=True) if y > 0.0]
    yield marks(how.shape, places, 9.0)


def grid(axes: Axes) -> Iterable[Markup]:
    """Draw a line for each power of ten, with its name, and the names of the axes."""
    for x, share in decades(LOWEST, axes.x):
        yield tag("line", x1=x, x2=x, y1=TOP, y2=axes.ground, class_="grid")
        anchor = "start" if x == LEFT else "end" if share == "100 %" else "middle"
        yield tag("text", share, x=x, y=axes.ground + 18.0, text_anchor=anchor)
    for y, share in decades(axes.lowest_tpr, axes.y):
        yield tag("line", x1=LEFT, x2=axes.width - RIGHT, y1=y, y2=y, class_="grid")
        yield tag("text", share, x=LEFT - 8.0, y=y + 4.5, text_anchor="end")
    yield tag("text", "true positives", x=0, y=12)
    yield tag("text", "false positives", x=axes.width - RIGHT, y=axes.height - 6.0, text_anchor="end")


def decades(lowest: float, place: Callable[[float], float]) -> Iterable[tuple[float, str]]:
    """Where the powers of ten from `lowest` to 1 are, and what they are called."""
    for power in range(round(log10(lowest)), 1):
        yield place(10.0**power), f"{10.0 ** (power + 2):g} %"


def trace_swatch(how: Trace) -> Markup:
    """Draw a piece of a curve, to stand beside its name."""
    line = tag("path", d="M0 6H36", class_="curve", stroke_dasharray=how.dashes or None)
    return tag(
        "svg", line, marks(how.shape, [(18.0, 6.0)], 8.0),
        class_=f"line-swatch {how.style}", viewBox="0 0 36 12", aria_hidden="true",
    )  # fmt: skip


def chance_swatch() -> Markup:
    """Draw the line of guessing, to stand beside its name."""
    return tag(
        "svg", tag("path", d="M0 6H36", class_="chance"), class_="line-swatch", viewBox="0 0 36 12", aria_hidden="true"
    )
