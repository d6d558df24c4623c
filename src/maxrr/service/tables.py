"""The tables of the service, and the steps by which those of an older release become these."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from maxrr.errors import DatabaseVersion

metadata = sa.MetaData()
Kind = int | type[sa.types.TypeEngine[Any]] | sa.ForeignKey


def serial() -> sa.Column[int]:
    """Make the column that numbers the rows of a table."""
    return sa.Column("serial", sa.Integer, primary_key=True)


def key(name: str, most: int) -> sa.Column[str]:
    """Make the column of a text by which the rows of a table are known."""
    return sa.Column(name, sa.String(most), primary_key=True)


def perhaps(nullable: bool = True, **kinds: Kind) -> list[sa.Column[Any]]:
    """Make columns that may have no value: texts of at most so many characters, or others."""
    types = {name: sa.String(kind) if isinstance(kind, int) else kind for name, kind in kinds.items()}
    return [sa.Column(name, kind, nullable=nullable) for name, kind in types.items()]


always = partial(perhaps, False)  # have a value


requests = sa.Table(
    "requests", metadata, serial(), sa.Column("id", sa.String(32), nullable=False, unique=True),
    *always(kind=16, owner=64, state=16, received=32, due=10, regulation=32),
    *perhaps(
        reference=64,  # what a protocol calls it
        policy=16,  # that was decided on for core records
        plan=sa.JSON, sealed=sa.LargeBinary,  # what is asked for, under the request's key
        idempotency=64,  # an HMAC of the key that it came with, under the service's own
        fingerprint=64,  # an HMAC of the body, under the request's key
        outcome=16, code=64,
        begun=sa.Integer,  # how many receipts there were when a change was begun
        number=sa.Integer,  # of the receipt
        guarantee=32, ended=32,
        answer=sa.LargeBinary,  # the receipt; sealed where it is a statement that nothing is here
        fetched=32,  # when the answer reached who asked
        delivered=32,  # when somebody said that it was delivered: names are destroyed then
    ),
    sa.Column("tries", sa.Integer, nullable=False, server_default="0"),  # that ended with their worker
    sa.UniqueConstraint("owner", "idempotency"), sa.Index("by_state", "state", "due", "serial"),
    sqlite_autoincrement=True,
)  # fmt: skip
events = sa.Table(
    "events", metadata, serial(),
    sa.Column("request", sa.ForeignKey("requests.serial"), nullable=False, index=True),
    *always(time=32, state=16, actor=64, reason=500),
)  # fmt: skip
callbacks = sa.Table(  # who is told: of the steps of a request, or where none is named, of those of all
    "callbacks", metadata, serial(), sa.Column("request", sa.ForeignKey("requests.serial"), index=True),
    *always(protocol=16, url=1000), *perhaps(sealed=sa.LargeBinary),  # the token to call with, under the request's key
)  # fmt: skip
deliveries = sa.Table(  # each event for each who is told of it: the database adds them together with the event
    "deliveries", metadata, serial(),
    *always(
        event=sa.ForeignKey("events.serial"), request=sa.ForeignKey("requests.serial"),
        callback=sa.ForeignKey("callbacks.serial"), tries=sa.Integer,
        due=sa.Float,  # when it is tried next
        code=64,  # why it did not arrive; empty where it did
    ),
    *perhaps(ended=32),
    sa.Index("by_ended", "ended", "due", "serial"), sa.Index("by_callback", "callback", "request", "serial"),
)  # fmt: skip
tokens = sa.Table("tokens", metadata, key("hash", 64), *always(name=64, role=16, made=32), *perhaps(revoked=32))
sessions = sa.Table(  # by the hash of the cookie
    "sessions", metadata, key("hash", 64), *always(token=sa.ForeignKey("tokens.hash"), begun=sa.Float, until=sa.Float),
)  # fmt: skip
workers = sa.Table(  # the code is that of what stops it; empty where nothing does
    "workers", metadata, key("name", 128), *always(doing=200, code=64, seen=sa.Float),
)  # fmt: skip
OPEN_JOBS = sa.text("state IN ('queued', 'running')")  # of which a request has one of each kind
jobs = sa.Table(
    "jobs", metadata, serial(), sa.Column("request", sa.ForeignKey("requests.serial"), nullable=False, index=True),
    *always(kind=16, state=16, progress=200, result=200, actor=64, time=32, tries=sa.Integer),
    *perhaps(worker=128, until=sa.Float),  # who does it, until then if nothing is heard of that worker
    sa.Index("open_jobs", "request", "kind", unique=True, sqlite_where=OPEN_JOBS, postgresql_where=OPEN_JOBS),
)  # fmt: skip
versions = sa.Table(  # of the model: one row when a worker first sees it
    "versions", metadata, serial(),
    *always(model=64, time=32, receipts=sa.Integer, records=sa.Integer, tested=sa.Integer),
    *perhaps(accuracy=sa.Float, recall=sa.JSON, span=sa.JSON),
)  # fmt: skip
steps_done = sa.Table("steps", metadata, sa.Column("number", sa.Integer, primary_key=True), *always(time=32))

Step = Callable[[sa.Connection], None]


STEPS: tuple[Step, ...] = (lambda connection: None,)
"""What leads from each version of the tables to the next, the first being that of the first release."""

TELL = (
    "INSERT INTO deliveries (event, request, callback, tries, due, code) SELECT NEW.serial, NEW.request, serial, 0, 0, "
    "'' FROM callbacks WHERE request = NEW.request OR request IS NULL;"
)
TRIGGERS = {
    "sqlite": [
        "CREATE TRIGGER events_UPDATE BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are kept'); END",
        "CREATE TRIGGER events_DELETE BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are kept'); END",
        f"CREATE TRIGGER events_told AFTER INSERT ON events BEGIN {TELL} END",
    ],
    "postgresql": [
        "CREATE FUNCTION events_are_kept() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN RAISE EXCEPTION ''events are kept''; END'",
        "CREATE TRIGGER events_kept BEFORE UPDATE OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION events_are_kept()",
        "CREATE TRIGGER events_all_kept BEFORE TRUNCATE ON events EXECUTE FUNCTION events_are_kept()",
        f"CREATE FUNCTION events_are_told() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {TELL} RETURN NULL; END$$",
        "CREATE TRIGGER events_told AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION events_are_told()",
    ],
}
"""What keeps events as they are, and adds the deliveries in the transaction of the event, whichever code appends it."""


def upgrade(connection: sa.Connection, steps: Sequence[Step] = STEPS) -> int:
    """Bring the tables to this release in the caller's transaction, and return how many steps were taken.

    An empty database gets the newest tables at once.

    Raises
    ------
    maxrr.errors.DatabaseVersion
        A later release has written them.
    """
    if connection.dialect.name == "postgresql":  # others that start now wait
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7233102)"))
    steps_done.create(connection, checkfirst=True)
    done: int = connection.scalar(sa.select(sa.func.max(steps_done.c.number))) or 0
    if done > len(steps):
        raise DatabaseVersion(f"the database has version {done}, this release knows {len(steps)}: start a later one")
    if done == 0:
        metadata.create_all(connection)
        for statement in TRIGGERS[connection.dialect.name]:
            connection.execute(sa.text(statement))
    else:
        for step in steps[done:]:
            step(connection)
    now = datetime.now(UTC).isoformat()
    for number in range(done + 1, len(steps) + 1):
        connection.execute(sa.insert(steps_done).values(number=number, time=now))
    return len(steps) - done
