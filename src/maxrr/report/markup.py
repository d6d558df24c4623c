"""SVG from Python, with every text escaped unless it says that it is markup already."""

from markupsafe import Markup, escape

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
