"""What the pages draw: requests a day, and how the model's records and accuracy have changed."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import groupby

from markupsafe import Markup
from sqlalchemy import func, select, true

from maxrr.report.page import number, tag
from maxrr.report.words import count
from maxrr.service import tables
from maxrr.service.database import Database
from maxrr.service.requests import today
from maxrr.unlearning import Receipt

DAYS = 30  # in a chart
SIZES = {"wide": (960.0, 170.0), "narrow": (340.0, 150.0)}
LEFT, TOP, BELOW = 52.0, 14.0, 26.0  # room for the numbers and the days


def received_by_day(database: Database, owner: str | None = None) -> list[tuple[date, int]]:
    """Return how many requests were received on each of the last days, of this owner alone where one is named."""
    table, first = tables.requests.c, today() - timedelta(days=DAYS - 1)
    day = func.substr(table.received, 1, 10)
    whose = true() if owner is None else table.owner == owner
    query = select(day, func.count()).where(table.received >= first.isoformat(), whose).group_by(day)
    with database.read() as connection:
        found = {row[0]: int(row[1]) for row in connection.execute(query)}
    days = [first + timedelta(days=each) for each in range(DAYS)]
    return [(each, found.get(each.isoformat(), 0)) for each in days]


def days_chart(counts: Sequence[tuple[date, int]]) -> Markup:
    """Draw a bar for each day, in a size for wide screens and one for narrow ones."""
    most = max(1, *(many for _, many in counts))
    label = f"{count(sum(many for _, many in counts), 'request')} in {len(counts)} days, {most} a day at most"

    def drawn(width: float, height: float) -> Iterator[Markup]:
        ground, step = height - BELOW, (width - LEFT) / len(counts)
        yield from axes(width, ground, ("0", f"{most:,}"), (counts[0][0], counts[-1][0]))
        for place, (day, many) in enumerate(counts):
            high = (ground - TOP) * many / most
            bar = tag("title", f"{day.day} {day:%B}: {count(many, 'request')}")
            yield tag("rect", bar, x=LEFT + place * step + 1.5, y=ground - high, width=step - 3.0, height=high)

    return in_sizes(drawn, "chart core days", label)


def in_sizes(drawn: Callable[[float, float], Iterator[Markup]], style: str, label: str) -> Markup:
    """Draw a chart in a size for wide screens and in one for narrow ones, of which the page shows one."""
    return Markup().join(
        tag("svg", *drawn(*size), class_=f"{style} {name}", viewBox=box(size), role="img", aria_label=label)
        for name, size in SIZES.items()
    )


def course_chart(points: Sequence[tuple[str, float]], written: Callable[[float], str], what: str) -> Markup:
    """Draw how a number has changed, as steps: each version of the model has its own from its time on."""
    times = [datetime.fromisoformat(time) for time, _ in points]
    values = [value for _, value in points]
    high, span = max(values), max((times[-1] - times[0]).total_seconds(), 1.0)
    low = min(values) if min(values) < high else 0.0
    label = f"{written(values[0])} {what} at first, {written(values[-1])} now"

    def drawn(width: float, height: float) -> Iterator[Markup]:
        ground, wide = height - BELOW, width - LEFT
        yield from axes(width, ground, (written(low), written(high)), (times[0].date(), times[-1].date()))
        places = [LEFT + 0.98 * wide * (each - times[0]).total_seconds() / span for each in times]
        heights = [number(ground - (ground - TOP) * (value - low) / max(high - low, 1e-9)) for value in values]
        steps = "".join(f"H{number(x)}V{y}" for x, y in zip(places, heights, strict=True))
        yield tag("path", d=f"M{number(LEFT)} {heights[0]}{steps}H{number(width)}", class_="curve")

    return in_sizes(drawn, "chart core", label)


def versions(receipts: Sequence[Receipt]) -> list[list[Receipt]]:
    """Return the receipts of each version of the model: the first one made it, and the others left it as it was."""
    return [list(some) for _, some in groupby(receipts, key=lambda each: each.model_after)]


def axes(width: float, ground: float, ends: tuple[str, str], days: tuple[date, date]) -> Iterator[Markup]:
    """A line at the least and one at the greatest number, with both and the first and the last day beside them."""
    for y, many in {ground: ends[0], TOP: ends[1]}.items():
        yield tag("line", x1=LEFT, x2=width, y1=y, y2=y, class_="grid" if y == TOP else "axis")
        yield tag("text", many, x=LEFT - 8.0, y=y + 4.0, text_anchor="end")
    first, last = (f"{day.day} {day:%B}" for day in days)
    yield tag("text", first, x=LEFT, y=ground + 20.0)
    if last != first:
        yield tag("text", last, x=width, y=ground + 20.0, text_anchor="end")


def box(size: tuple[float, float]) -> str:
    """The part of the plane that a chart shows."""
    return f"0 0 {number(size[0])} {number(size[1])}"
