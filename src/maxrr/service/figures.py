"""What the pages draw: requests a day, and the versions of the model."""

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import groupby

from sqlalchemy import func, select, true

from maxrr.service import tables
from maxrr.service.database import Database
from maxrr.service.requests import today
from maxrr.unlearning import Receipt

DAYS = 30  # in a chart


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


def versions(receipts: Sequence[Receipt]) -> list[list[Receipt]]:
    """Return the receipts of each version of the model: the first one made it, and the others left it as it was."""
    return [list(some) for _, some in groupby(receipts, key=lambda each: each.model_after)]
