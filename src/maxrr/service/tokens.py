"""Tokens: who may call, and in which role. The database has their hashes alone."""

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, insert, select, update

from maxrr.errors import NoToken
from maxrr.service import tables
from maxrr.service.database import Database
from maxrr.service.requests import now

REQUESTER, OPERATOR, AUDITOR, PREDICTOR = ROLES = "requester", "operator", "auditor", "predictor"
PREFIX = "maxrr_"  # by which scanners for secrets know one
BYTES = 32
REMEMBERED = 2.0  # seconds, after which a token that was revoked meanwhile is not taken any more


@dataclass(frozen=True)
class Actor:
    """Who calls: the name on the token, and its role."""

    name: str
    role: str

    @property
    def sees(self) -> str | None:
        """Whose requests they see: None for all."""
        return self.name if self.role == REQUESTER else None


class Tokens:
    """The tokens of a service.

    Parameters
    ----------
    database : Database
        Where their hashes are.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._known = dict[str, tuple[float, Actor]]()

    def make(self, name: str, role: str) -> str:
        """Make a token, and return it: nobody can read it afterwards."""
        if not 0 < len(name) <= 64 or not name.isprintable():
            raise ValueError("the name of a token has 1 to 64 characters")
        token = PREFIX + secrets.token_urlsafe(BYTES)
        self.database.run(insert(tables.tokens).values(hash=hash_of(token), name=name, role=role, made=now()))
        return token

    def revoke(self, id_: str) -> Any:
        """Revoke a token, by its id or its whole text. Within two seconds it is not taken any more."""
        start = hash_of(id_) if id_.startswith(PREFIX) else id_
        found = [each for each in self.listed() if len(start) >= 8 and (each.id == start or start.startswith(each.id))]
        if not found:
            raise ValueError(f"there is no token {id_!r:.12}: maxrr token list shows their ids")
        table = tables.tokens
        mine = update(table).where(table.c.hash.startswith(found[0].id), table.c.revoked.is_(None))
        self.database.run(mine.values(revoked=now()))
        return next(each for each in self.listed() if each.id == found[0].id)

    def listed(self) -> Sequence[Any]:
        """Return of each token the beginning of its hash as `id`, its `name`, which several may share, its `role`, and
        when it was `made` and `revoked`; from the first.
        """
        table, id_ = tables.tokens.c, func.substr(tables.tokens.c.hash, 1, 12).label("id")
        return self.database.rows(select(id_, table.name, table.role, table.made, table.revoked).order_by(table.made))

    def remembered(self, token: str) -> Actor | None:
        """Return who has a token that was looked up a moment ago, without asking the database."""
        found = self._known.get(hash_of(token))
        return found[1] if found is not None and found[0] > time.monotonic() else None

    def find(self, token: str) -> Actor:
        """Return who has a token.

        Raises
        ------
        maxrr.errors.NoToken
            It is not known, or was revoked.
        """
        digest, table = hash_of(token), tables.tokens.c
        found = self.database.rows(select(table.name, table.role).where(table.hash == digest, table.revoked.is_(None)))
        if not found:
            raise NoToken("the token is not known, or was revoked")
        actor = Actor(*found[0])
        time_ = time.monotonic()
        known = {each: said for each, said in self._known.items() if said[0] > time_}
        self._known = known | {digest: (time_ + REMEMBERED, actor)}
        return actor


def hash_of(token: str) -> str:
    """Return the hash by which a token is known: it is random, so that a plain one is enough."""
    return hashlib.sha256(token.encode()).hexdigest()
