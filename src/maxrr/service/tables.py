"""The tables of the service, and the steps by which those of an older release become these."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import sqlalchemy as sa

from maxrr.errors import DatabaseVersion

metadata = sa.MetaData()

requests = sa.Table(
    "requests", metadata,
    sa.Column("serial", sa.Integer, primary_key=True),
    sa.Column("id", sa.String(32), nullable=False, unique=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("owner", sa.String(64), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("received", sa.String(32), nullable=False),
    sa.Column("due", sa.String(10), nullable=False),
    sa.Column("regulation", sa.String(32), nullable=False),
    sa.Column("policy", sa.String(16)),  # that was decided on for core records
    sa.Column("plan", sa.JSON),
    sa.Column("sealed", sa.LargeBinary),  # what is asked for, under the request's key
    sa.Column("reference", sa.String(64)),  # what a protocol calls it
    sa.Column("idempotency", sa.String(64)),  # an HMAC of the key that it came with, under the service's own
    sa.Column("fingerprint", sa.String(64)),  # an HMAC of the body, under the request's key
    sa.Column("outcome", sa.String(16)),
    sa.Column("code", sa.String(64)),
    sa.Column("begun", sa.Integer),  # how many receipts there were when a change was begun
    sa.Column("number", sa.Integer),  # of the receipt
    sa.Column("guarantee", sa.String(32)),
    sa.Column("answer", sa.LargeBinary),  # the receipt; sealed where it is a statement that nothing is here
    sa.Column("ended", sa.String(32)),
    sa.Column("fetched", sa.String(32)),  # when the answer reached who asked
    sa.Column("delivered", sa.String(32)),  # when somebody said that it was delivered: names are destroyed then
    sa.UniqueConstraint("owner", "idempotency"),
    sa.Index("by_state", "state", "due", "serial"),
    sqlite_autoincrement=True,
)  # fmt: skip
events = sa.Table(
    "events", metadata,
    sa.Column("serial", sa.Integer, primary_key=True),
    sa.Column("request", sa.ForeignKey("requests.serial"), nullable=False, index=True),
    sa.Column("time", sa.String(32), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("actor", sa.String(64), nullable=False),
    sa.Column("reason", sa.String(500), nullable=False),
)  # fmt: skip
callbacks = sa.Table(  # who is told: of the steps of a request, or where none is named, of those of all
    "callbacks", metadata,
    sa.Column("serial", sa.Integer, primary_key=True),
    sa.Column("request", sa.ForeignKey("requests.serial"), index=True),
    sa.Column("protocol", sa.String(16), nullable=False),
    sa.Column("url", sa.String(1000), nullable=False),
    sa.Column("sealed", sa.LargeBinary),  # the token to call with, under the request's key
)  # fmt: skip
deliveries = sa.Table(  # each event for each who is told of it: the database adds them together with the event
    "deliveries", metadata,
    sa.Column("serial", sa.Integer, primary_key=True),
    sa.Column("event", sa.ForeignKey("events.serial"), nullable=False),
    sa.Column("request", sa.ForeignKey("requests.serial"), nullable=False),
    sa.Column("callback", sa.ForeignKey("callbacks.serial"), nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("due", sa.Float, nullable=False),  # when it is tried next
    sa.Column("code", sa.String(64), nullable=False),  # of why it did not arrive; empty where it did
    sa.Column("ended", sa.String(32)),
    sa.Index("by_ended", "ended", "due", "serial"),
    sa.Index("by_callback", "callback", "request", "serial"),
)  # fmt: skip
tokens = sa.Table(
    "tokens", metadata,
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("made", sa.String(32), nullable=False),
    sa.Column("revoked", sa.String(32)),
)  # fmt: skip
sessions = sa.Table(
    "sessions", metadata,
    sa.Column("hash", sa.String(64), primary_key=True),  # of the cookie
    sa.Column("token", sa.ForeignKey("tokens.hash"), nullable=False),
    sa.Column("begun", sa.Float, nullable=False),
    sa.Column("until", sa.Float, nullable=False),
)  # fmt: skip
workers = sa.Table(
    "workers", metadata,
    sa.Column("name", sa.String(128), primary_key=True),
    sa.Column("doing", sa.String(200), nullable=False),
    sa.Column("code", sa.String(64), nullable=False),  # of what stops it; empty where nothing does
    sa.Column("seen", sa.Float, nullable=False),
)  # fmt: skip
jobs = sa.Table(
    "jobs", metadata,
    sa.Column("serial", sa.Integer, primary_key=True),
    sa.Column("request", sa.ForeignKey("requests.serial"), nullable=False, index=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("progress", sa.String(200), nullable=False),
    sa.Column("result", sa.String(200), nullable=False),
    sa.Column("actor", sa.String(64), nullable=False),
    sa.Column("time", sa.String(32), nullable=False),
    sa.Column("worker", sa.String(128)),  # who does it, until then if nothing is heard of that worker
    sa.Column("until", sa.Float),
)  # fmt: skip
versions = sa.Table(  # of the model: one row when a worker first sees it
    "versions", metadata,
    sa.Column("serial", sa.Integer, primary_key=True),
    sa.Column("model", sa.String(64), nullable=False),
    sa.Column("time", sa.String(32), nullable=False),
    sa.Column("receipts", sa.Integer, nullable=False),
    sa.Column("records", sa.Integer, nullable=False),
    sa.Column("tested", sa.Integer, nullable=False),
    sa.Column("accuracy", sa.Float),
    sa.Column("recall", sa.JSON),
)  # fmt: skip
steps_done = sa.Table(
    "steps",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("time", sa.String(32), nullable=False),
)

Step = Callable[[sa.Connection], None]
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
        raise DatabaseVersion(
            f"the database has version {done}, and this release knows {len(steps)}: start the release that wrote it"
        )
    if done == 0:
        metadata.create_all(connection)
        for statement in ONLY_APPENDED[connection.dialect.name] + TO_BE_TOLD[connection.dialect.name]:
            connection.execute(sa.text(statement))
    else:
        for step in steps[done:]:
            step(connection)
    now = datetime.now(UTC).isoformat()
    for number in range(done + 1, len(steps) + 1):
        connection.execute(sa.insert(steps_done).values(number=number, time=now))
    return len(steps) - done
