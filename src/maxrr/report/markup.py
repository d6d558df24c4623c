"""HTML and SVG from Python, with every text escaped unless it says that it is markup already."""

import html
import re

VOID = {"img", "meta", "wbr"}

Value = str | int | float | bool | None


class Html(str):
    """Markup. A plain `str` is text, and is escaped wherever it goes."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: Value) -> Html:
    """An element. In names of attributes `_` becomes `-`, and one at the end is dropped; None and False leave them out.

    >>> tag("p", "1 < 2, ", tag("b", "surely"), class_="wise")
    '<p class="wise">1 &lt; 2, <b>surely</b></p>'
    """
    opening = "".join(attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    return Html(f"<{name}{opening}>" if name in VOID else f"<{name}{opening}>{together(*children)}</{name}>")


def together(*children: str) -> Html:
    """One after the other, without an element around them."""
    return Html("".join(child if isinstance(child, Html) else html.escape(unparted(child)) for child in children))


def to_the_letter(text: str) -> Html:
    """Text in which not even a space is changed."""
    return Html(html.escape(text))


def unparted(text: str) -> str:
    """Spaces between numbers and units become ones at which no line ends."""
    return re.sub(r"(?<=\d) (?=(ms|s|%)(?!\w))", "\u00a0", text)


def attribute(name: str, value: Value) -> str:
    """Such as ` width="20"`, with the space before it. Coordinates need no more than two decimals."""
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    return f' {name}="{number(value) if isinstance(value, float) else html.escape(str(value))}"'


def number(value: float) -> str:
    """As short as two decimals can be.

    >>> number(2.0), number(0.125), number(-0.001)
    ('2', '0.12', '0')
    """
    return f"{round(value, 2) + 0.0:g}"
