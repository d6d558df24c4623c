"""How pages are made: a template with the words, filled with values and charts that Python made.

A page is one file. It asks for nothing from elsewhere, and its policy forbids the browser to.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, UndefinedError
from markupsafe import Markup, escape

from maxrr.report import words

# SVG from Python, with every text escaped unless it says that it is markup already.


Value = str | int | float | None


def tag(name: str, /, *children: str, **attributes: Value) -> Markup:
    """Make an element. In names of attributes `_` becomes `-`, and one at the end is dropped; None leaves them out.

    >>> tag("text", "1 < 2, ", tag("tspan", "surely"), class_="wise")
    Markup('<text class="wise">1 &lt; 2, <tspan>surely</tspan></text>')
    """
    opening = "".join(attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    return Markup(f"<{name}{opening}>{Markup().join(children)}</{name}>")


def attribute(name: str, value: Value) -> str:
    """Write an attribute such as ` width="20"`, with the space before it; coordinates have two decimals at most."""
    if value is None:
        return ""
    return f' {name}="{number(value) if isinstance(value, float) else escape(value)}"'


def number(value: float) -> str:
    """A number with two decimals at most, as short as possible.

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


GENERATOR = '<meta name="generator" content="maxrr">'  # as the layout has it
FILTERS = (
    words.capitalised, words.decimals, words.digits, words.duration, words.p_value, words.percent, words.scientific,
    words.spelled, words.thousands,
)  # fmt: skip


def render(package: str, template: str, **values: Any) -> str:
    """A whole page, from a template in the `templates` of a package.

    Raises
    ------
    LookupError
        If the template asks for something that is not there.
    """
    try:
        return environment(package).get_template(template).render(values)
    except UndefinedError as error:
        raise LookupError(str(error)) from error


@cache
def environment(package: str) -> Environment:
    """Templates of a package, which build on those of this one, and the words for numbers that they use."""
    found = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("maxrr.report")]),
        autoescape=True, undefined=StrictUndefined, finalize=unparted, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.filters |= {function.__name__: function for function in FILTERS}
    found.globals |= {"count": words.count, "swatch": swatch, "kinds": KINDS}
    return found


def unparted(value: Any) -> Any:
    """Replace spaces between numbers and units by ones at which no line breaks.

    >>> unparted("5 ms, 95.5 % of 3 samples")
    '5\\xa0ms, 95.5\\xa0% of 3 samples'
    """
    if isinstance(value, str) and not isinstance(value, Markup):
        return re.sub(r"(?<=\d) (?=(ms|s|%)(?!\w))", "\u00a0", value)
    return value


def is_report(text: str) -> bool:
    """Whether this library made a page, so that another one may be written over it.

    Parameters
    ----------
    text : str
        What a file holds.

    Returns
    -------
    bool
        True if the text has the mark that every page of this library has.
    """
    return GENERATOR in text
