"""The tables of the service, and the steps by which those of an older release become these."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    func,
    insert,
    select,
    text,
)

from maxrr.errors import DatabaseVersion

metadata = MetaData()

requests = Table(
    "requests", metadata,
    Column("serial", Integer, primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),
    Column("owner", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("received", String(32), nullable=False),
    Column("due", String(10), nullable=False),
    Column("regulation", String(32), nullable=False),
    Column("policy", String(16)),  # that was decided on for core records
    Column("plan", JSON),
    Column("sealed", LargeBinary),  # what is asked for, under the request's key
    Column("idempotency", String(255)),
    Column("fingerprint", String(64)),  # an HMAC of the body, under the request's key
    Column("outcome", String(16)),
    Column("code", String(64)),
    Column("begun", Integer),  # how many receipts there were when a change was begun
    Column("number", Integer),  # of the receipt
    Column("guarantee", String(32)),
    Column("answer", LargeBinary),  # the receipt; sealed where it is a statement that nothing is here
    Column("ended", String(32)),
    Column("delivered", String(32)),
    UniqueConstraint("owner", "idempotency"),
    Index("by_state", "state", "due", "serial"),
    sqlite_autoincrement=True,
)  # fmt: skip
events = Table(
    "events", metadata,
    Column("serial", Integer, primary_key=True),
    Column("request", ForeignKey("requests.serial"), nullable=False, index=True),
    Column("time", String(32), nullable=False),
    Column("state", String(16), nullable=False),
    Column("actor", String(64), nullable=False),
    Column("reason", String(500), nullable=False),
)  # fmt: skip
callbacks = Table(  # who is told: of the steps of a request, or where none is named, of those of all
    "callbacks", metadata,
    Column("serial", Integer, primary_key=True),
    Column("request", ForeignKey("requests.serial"), index=True),
    Column("protocol", String(16), nullable=False),
    Column("url", String(1000), nullable=False),
    Column("sealed", LargeBinary),  # the token to call with, under the request's key
)  # fmt: skip
deliveries = Table(  # each event for each who is told of it: the database adds them together with the event
    "deliveries", metadata,
    Column("serial", Integer, primary_key=True),
    Column("event", ForeignKey("events.serial"), nullable=False),
    Column("request", ForeignKey("requests.serial"), nullable=False),
    Column("callback", ForeignKey("callbacks.serial"), nullable=False),
    Column("tries", Integer, nullable=False),
    Column("due", Float, nullable=False),  # when it is tried next
    Column("code", String(64), nullable=False),  # of why it did not arrive; empty where it did
    Column("ended", String(32)),
    Index("by_ended", "ended", "due", "serial"),
    Index("by_callback", "callback", "request", "serial"),
)  # fmt: skip
tokens = Table(
    "tokens", metadata,
    Column("hash", String(64), primary_key=True),
    Column("name", String(64), nullable=False),
    Column("role", String(16), nullable=False),
    Column("made", String(32), nullable=False),
    Column("revoked", String(32)),
)  # fmt: skip
sessions = Table(
    "sessions", metadata,
    Column("hash", String(64), primary_key=True),  # of the cookie
    Column("token", ForeignKey("tokens.hash"), nullable=False),
    Column("begun", Float, nullable=False),
    Column("until", Float, nullable=False),
)  # fmt: skip
workers = Table(
    "workers", metadata,
    Column("name", String(128), primary_key=True),
    Column("doing", String(200), nullable=False),
    Column("code", String(64), nullable=False),  # of what stops it; empty where nothing does
    Column("seen", Float, nullable=False),
)  # fmt: skip
jobs = Table(
    "jobs", metadata,
    Column("serial", Integer, primary_key=True),
    Column("request", ForeignKey("requests.serial"), nullable=False, index=True),
    Column("kind", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("progress", String(200), nullable=False),
    Column("result", String(200), nullable=False),
    Column("actor", String(64), nullable=False),
    Column("time", String(32), nullable=False),
)  # fmt: skip
steps_done = Table(
    "steps", metadata, Column("number", Integer, primary_key=True), Column("time", String(32), nullable=False)
)

Step = Callable[[Connection], None]
STEPS: tuple[Step, ...] = (lambda connection: None,)
"""What leads from each version of the tables to the next, the first being that of the first release."""

ONLY_APPENDED = {
    "sqlite": [
        f"CREATE TRIGGER events_{verb} BEFORE {verb} ON events BEGIN SELECT RAISE(ABORT, 'events are kept'); END"
        for verb in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE FUNCTION events_are_kept() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN RAISE EXCEPTION ''events are kept''; END'",
        "CREATE TRIGGER events_kept BEFORE UPDATE OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION events_are_kept()",
    ],
}

TELL = (
    "INSERT INTO deliveries (event, request, callback, tries, due, code) SELECT NEW.serial, NEW.request, serial, 0, 0, "
    "'' FROM callbacks WHERE request = NEW.request OR request IS NULL;"
)
TO_BE_TOLD = {
    "sqlite": [f"CREATE TRIGGER events_told AFTER INSERT ON events BEGIN {TELL} END"],
    "postgresql": [
        f"CREATE FUNCTION events_are_told() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {TELL} RETURN NULL; END$$",
        "CREATE TRIGGER events_told AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION events_are_told()",
    ],
}
"""What adds the deliveries: in the transaction of the event, whichever code appends it."""


def upgrade(connection: Connection, steps: Sequence[Step] = STEPS) -> int:
    """Bring the tables to this release in the caller's transaction, and return how many steps were taken.

    An empty database gets the newest tables at once.

    Raises
    ------
    maxrr.errors.DatabaseVersion
        A later release has written them.
    """
    if connection.dialect.name == "postgresql":  # others that start now wait
        connection.execute(text("SELECT pg_advisory_xact_lock(7233102)"))
    steps_done.create(connection, checkfirst=True)
    done: int = connection.scalar(select(func.max(steps_done.c.number))) or 0
    if done > len(steps):
        raise DatabaseVersion(
            f"the database has version {done}, and this release knows {len(steps)}: start the release that wrote it"
        )
    if done == 0:
        metadata.create_all(connection)
        for statement in ONLY_APPENDED[connection.dialect.name] + TO_BE_TOLD[connection.dialect.name]:
            connection.execute(text(statement))
    else:
        for step in steps[done:]:
            step(connection)
    now = datetime.now(UTC).isoformat()
    for number in range(done + 1, len(steps) + 1):
        connection.execute(insert(steps_done).values(number=number, time=now))
    return len(steps) - done
