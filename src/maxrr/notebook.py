"""What objects look like in a notebook: a heading, and below it facts, shares and tables. One look for all.

Everything is escaped, and nothing runs or is fetched. Notebooks may be dark: text has the colour of the notebook's own.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

GOOD, CARE, BAD, PLAIN = "#2da44e", "#d1821b", "#e5534b", "currentColor"  # readable on white and on black
COLOURS = {"core": "#1f6feb", "influential": "#d1621b", "free": "#8b949e"}  # as on the pages of `maxrr.report`
OTHERS = ("#1f6feb", "#d1621b", "#8b949e", "#1a7f37", "#8250df", "#bf3989")

Fact = str | int | Sequence[str]
"""One text or number, or several texts that stand below each other."""


def card(heading: str, *parts: str, tone: str = PLAIN) -> str:
    """A heading with parts below it, which are HTML already."""
    return (
        '<div style="font-size:14px;line-height:1.45;max-width:64em;border-left:3px solid '
        f'{tone};padding:2px 0 2px 12px;margin:4px 0;text-align:left">'
        f'<div style="font-weight:600;margin-bottom:4px;color:{tone}">{escape(heading)}</div>{"".join(parts)}</div>'
    )


def exactness(guarantee: str | None) -> str:
    """The colour of what a request comes to: exact, approximate, or refused."""
    return PLAIN if guarantee is None else GOOD if guarantee.startswith("exact") else CARE


def facts(pairs: Iterable[tuple[str, Fact]]) -> str:
    """Each fact under its name; empty ones are left out.

    >>> "12,000" in facts([("records", 12_000)]), facts([("conditions", [])])
    (True, '')
    """
    rows = "".join(
        f'<tr style="background:none"><td style="{CELL};opacity:0.65;white-space:nowrap">{escape(name)}</td>'
        f'<td style="{CELL}">{written(fact)}</td></tr>'
        for name, fact in pairs if written(fact)
    )  # fmt: skip
    return f'<table style="{TABLE}">{rows}</table>' if rows else ""


def shares(counts: Mapping[str, int]) -> str:
    """A bar of parts that are a whole together, and below it how many each is.

    >>> "core 1,000" in shares({"core": 1_000, "free": 0})
    True
    """
    parts = [
        (name, count, COLOURS.get(name, OTHERS[at % len(OTHERS)])) for at, (name, count) in enumerate(counts.items())
    ]
    bar = "".join(
        f'<span style="flex:{count} 0 2px;background:{colour}"></span>' for _, count, colour in parts if count > 0
    )
    words = "".join(
        f'<span style="white-space:nowrap;margin-right:14px"><span style="display:inline-block;width:9px;height:9px;'
        f'margin-right:5px;background:{colour}"></span>{escape(name)} {count:,}</span>'
        for name, count, colour in parts
    )
    return (
        f'<div style="display:flex;width:32em;max-width:100%;height:9px;margin:4px 0">{bar}</div>'
        f'<div style="margin-bottom:6px">{words}</div>'
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; its first column names the rows, and the others end flush."""
    sides = ["left", *["right"] * (len(headings) - 1)]
    head = "".join(
        f'<td style="{CELL};opacity:0.65;text-align:{side}">{escape(text)}</td>'
        for text, side in zip(headings, sides, strict=True)
    )
    body = "".join(
        '<tr style="background:none">' + "".join(
            f'<td style="{CELL};text-align:{side}">{escape(text)}</td>' for text, side in zip(row, sides, strict=True)
        ) + "</tr>"
        for row in rows
    )  # fmt: skip
    return f'<table style="{TABLE}"><tr style="background:none">{head}</tr>{body}</table>'


TABLE = "border-collapse:collapse;margin:2px 0;font-size:inherit;background:none"
CELL = "text-align:left;vertical-align:top;padding:1px 16px 1px 0;border:0;background:none"


def duration(seconds: float) -> str:
    """About how long, in a unit that suits.

    >>> duration(0.0658), duration(1.612), duration(75.0), duration(7_530.0)
    ('66 ms', '1.6 s', '75 s', '2.1 h')
    """
    if seconds < 1.0:
        return f"{1e3 * seconds:.0f} ms"
    if seconds < 600.0:
        return f"{seconds:.1f} s" if seconds < 10.0 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200.0 else f"{seconds / 3600:.1f} h"


def written(fact: Fact) -> str:
    """A fact as HTML."""
    if isinstance(fact, int):
        return f"{fact:,}"
    return "<br>".join(map(escape, [fact] if isinstance(fact, str) else fact))
