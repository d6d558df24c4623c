"""The marks of charts and legends: a shape for every group, which its colour repeats."""

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup, escape

# SVG from Python, with every text escaped unless it says that it is markup already.


Value = str | int | float | None


def tag(name: str, /, *children: str, **attributes: Value) -> Markup:
    """An element. In names of attributes `_` becomes `-`, and one at the end is dropped; None leaves them out.

    >>> tag("text", "1 < 2, ", tag("tspan", "surely"), class_="wise")
    Markup('<text class="wise">1 &lt; 2, <tspan>surely</tspan></text>')
    """
    opening = "".join(attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    return Markup(f"<{name}{opening}>{Markup().join(children)}</{name}>")


def attribute(name: str, value: Value) -> str:
    """Such as ` width="20"`, with the space before it. Coordinates need no more than two decimals."""
    if value is None:
        return ""
    return f' {name}="{number(value) if isinstance(value, float) else escape(value)}"'


def number(value: float) -> str:
    """As short as two decimals can be.

    >>> number(2.0), number(0.125), number(-0.001)
    ('2', '0.12', '0')
    """
    return f"{round(value, 2) + 0.0:g}"


Places = Iterable[tuple[float, float]]


@dataclass(frozen=True)
class Group:
    """What some of the marks have in common: a name for the legend, a class of the look, a shape."""

    name: str
    style: str
    shape: str  # "circle", "diamond" or "square"


KINDS = {
    "free": Group("free", "free", "circle"),
    "influential": Group("influential", "influential", "diamond"),
    "core": Group("core", "core", "square"),
}


def marks(shape: str, places: Places, size: float, **attributes: str) -> Markup:
    """Many marks of one shape, as one path."""
    if shape == "circle":  # a line of no length with round ends
        moves = "".join(f"M{number(x)} {number(y)}h0" for x, y in places)
        return tag("path", d=moves, stroke="currentColor", stroke_width=size, stroke_linecap="round", **attributes)
    half = size * (0.44 if shape == "square" else 0.62)
    side, step = number(2.0 * half), number(half)
    outline = f"v{side}h{side}v-{side}z" if shape == "square" else f"l{step} {step} {step}-{step}-{step}-{step}z"
    rise = half if shape == "square" else 0.0
    moves = "".join(f"M{number(x - half)} {number(y - rise)}{outline}" for x, y in places)
    return tag("path", d=moves, fill="currentColor", **attributes)


def swatch(style: str, shape: str) -> Markup:
    """A single mark, to stand beside the name of what it marks."""
    return tag(
        "svg", marks(shape, [(6.0, 6.0)], 8.0), class_=f"swatch {style}", viewBox="0 0 12 12", aria_hidden="true"
    )
