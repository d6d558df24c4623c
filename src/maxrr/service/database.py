"""The database: transactions that are durable when their block ends, and one error for all that keeps it away."""

import errno
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

from sqlalchemy import Connection, Executable, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, TimeoutError
from sqlalchemy.exc import DataError as Unfit

from maxrr.errors import DatabaseAway, DatabaseGone, DataError
from maxrr.service.sealing import check_in_place
from maxrr.service.tables import STEPS, upgrade

PATIENCE = 30  # seconds that a writer waits for others
FULL = sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR
SETUP = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON", f"busy_timeout={PATIENCE}000")


class Database:
    """A database of SQLite or PostgreSQL, with the tables of this release.

    Parameters
    ----------
    url : str
        As SQLAlchemy takes it: `sqlite:////srv/requests.sqlite`, `postgresql://user:password@host/name`.
    may_be_new : bool
        Whether tables may be made where there are none.
    """

    def __init__(self, url: str, *, may_be_new: bool = True) -> None:
        try:
            where = make_url(url)
        except ArgumentError:
            raise ValueError("say sqlite:////srv/requests.sqlite or postgresql://host/name") from None
        if where.drivername == "postgresql":
            where = where.set(drivername="postgresql+psycopg")
        self.is_file = where.get_backend_name() == "sqlite"
        options: dict[str, Any] = {"connect_args": {"timeout": PATIENCE}} if self.is_file else {
            "connect_args": {"connect_timeout": 5}, "pool_pre_ping": True, "pool_size": 20, "pool_timeout": 10,
        }  # fmt: skip
        self.engine = create_engine(where, hide_parameters=True, **options)  # which would name people in logs
        self.file: tuple[str, os.stat_result] | None = None
        self.writing = threading.Lock() if self.is_file else nullcontext()  # in turn, and not by trying again
        if self.is_file:
            event.listen(self.engine, "connect", set_up)
            event.listen(self.engine, "begin", begin)
        with ExitStack() as refused:
            refused.callback(self.close)
            with self.write() as connection:
                if upgrade(connection) == len(STEPS) and not may_be_new:
                    raise DatabaseGone("the keys of requests are here, and the database has no tables: restore it")
            refused.pop_all()
        self.file = (where.database, os.stat(where.database)) if self.is_file and where.database else None

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction: whole and durable when the block ends, undone if anything is raised."""
        with (
            self.reached(), self.writing, self.engine.connect().execution_options(write=True) as connection,
            connection.begin(),
        ):  # fmt: skip
            yield connection

    def rows(self, query: Executable) -> Sequence[Any]:
        """Return what a query finds."""
        with self.reached(), self.engine.connect() as connection:
            return connection.execute(query).all()

    def run(self, statement: Executable, values: Any = None) -> None:
        """Run one statement in a transaction of its own, once for each of some values where there are several."""
        with self.write() as connection:
            connection.execute(statement, values)

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Raise one error for a database that is away or locked, one for a full disk, one for what fits no column."""
        if self.file is not None:
            check_in_place(*self.file)
        try:
            yield
        except IntegrityError:
            raise
        except Unfit:
            raise DataError("a text has the character NUL or is too long, or a number is too large: say less") from None
        except (DBAPIError, TimeoutError) as error:
            cause = getattr(error, "orig", None) or error
            kind = type(cause).__name__
            if kind == "DiskFull" or getattr(cause, "sqlite_errorcode", 0) & 0xFF in FULL:
                raise OSError(errno.ENOSPC, "the database cannot write") from None
            raise DatabaseAway(f"the database does not answer ({kind}): try again. Nothing was changed") from None

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def set_up(connection: sqlite3.Connection, _: object) -> None:
    """Prepare a connection to SQLite: we begin transactions ourselves, and a commit has reached the disk."""
    connection.isolation_level = None
    for setting in SETUP:
        connection.execute(f"PRAGMA {setting}")


def begin(connection: Connection) -> None:
    """Begin a transaction of SQLite: one that will write waits for its turn now, not at its first write."""
    is_writer = connection.get_execution_options().get("write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writer else "BEGIN")
