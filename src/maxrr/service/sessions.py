"""Sessions of the pages: who signed in with a token, and until when. The hash of the cookie is in the database."""

import secrets
import time

from fastapi import Request as Call
from fastapi import Response
from sqlalchemy import delete, insert, select, update

from maxrr.errors import NoToken
from maxrr.service import tables
from maxrr.service.database import Database
from maxrr.service.tokens import BYTES, Actor, hash_of

IDLE = 7200.0  # seconds without a call, after which a session has ended
NOTED = 60.0  # seconds by which it has to go on for that to be written
LONGEST = 12 * 3600.0  # seconds, after which it has ended in any case


def begin(database: Database, token: str) -> str:
    """Begin a session for whoever has this token, which is known to be valid, and return its cookie."""
    cookie, now, table = new_cookie(), time.time(), tables.sessions
    row = insert(table).values(hash=hash_of(cookie), token=hash_of(token), begun=now, until=now + IDLE)
    with database.write() as connection:
        connection.execute(delete(table).where(table.c.until < now))
        connection.execute(row)
    return cookie


def find(database: Database, cookie: str) -> tuple[Actor, float]:
    """Return who is signed in and until when, and let the session go on.

    Raises
    ------
    maxrr.errors.NoToken
        There is no such session, it has ended, or its token was revoked.
    """
    now, table, token = time.time(), tables.sessions, tables.tokens
    mine = table.c.hash == hash_of(cookie)
    query = (
        select(token.c.name, token.c.role, table.c.begun, table.c.until)
        .join(token, token.c.hash == table.c.token)
        .where(mine, table.c.until.between(now, now + 2 * IDLE), token.c.revoked.is_(None))
    )
    if not (found := database.rows(query)):
        raise NoToken("sign in: you were not, or too long ago")
    (row,) = found
    until = min(now + IDLE, row.begun + LONGEST)
    if until - row.until > NOTED:
        database.run(update(table).where(mine).values(until=until))
    return Actor(row.name, row.role), until


def end(database: Database, cookie: str) -> None:
    """End a session: its cookie is worth nothing any more."""
    database.run(delete(tables.sessions).where(tables.sessions.c.hash == hash_of(cookie)))


def new_cookie() -> str:
    """Return a cookie that nobody can guess."""
    return secrets.token_urlsafe(BYTES)


def cookie_name(call: Call) -> str:
    """The name of the cookie: over TLS one that browsers take from this very host alone."""
    return "__Host-maxrr" if call.url.scheme == "https" else "maxrr"


def cookie_of(call: Call) -> str:
    """The cookie of a call; empty where it has none."""
    return call.cookies.get(cookie_name(call), "")


def set_cookie(call: Call, answer: Response, cookie: str) -> None:
    """Give the browser a cookie that no script and no other site gets, until the browser is closed."""
    answer.set_cookie(cookie_name(call), cookie, httponly=True, secure=call.url.scheme == "https", samesite="strict")


def form_token(cookie: str) -> str:
    """Return what each form of a session carries: another site cannot know it, as it cannot read the cookie."""
    return hash_of(f"form {cookie}")
