"""ROC curves on logarithmic axes: what an attack finds where it is almost never wrong."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import floor, log10

import numpy as np
from markupsafe import Markup

from maxrr.report.marks import marks
from maxrr.report.markup import number, tag

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
    """Where rates lie on the picture; those below the ends of an axis lie on its end."""

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
    """Curves of rates of false and of true positives, both rising, as steps: nothing is interpolated.

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
    """One curve, with marks at places of its own: `shift` is how far into each decade."""
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
    """A line for each power of ten, with its name, and what the axes are."""
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
    """A piece of the curve, to stand beside its name."""
    line = tag("path", d="M0 6H36", class_="curve", stroke_dasharray=how.dashes or None)
    return tag(
        "svg", line, marks(how.shape, [(18.0, 6.0)], 8.0),
        class_=f"line-swatch {how.style}", viewBox="0 0 36 12", aria_hidden="true",
    )  # fmt: skip


def chance_swatch() -> Markup:
    """The same for the line on which an attack guesses."""
    return tag(
        "svg", tag("path", d="M0 6H36", class_="chance"), class_="line-swatch", viewBox="0 0 36 12", aria_hidden="true"
    )
