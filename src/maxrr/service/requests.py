"""The requests in the database: submitted once, moved from state to state, each move an event that stays."""

import json
import uuid
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, timedelta
from threading import Lock
from typing import Any

from sqlalchemy import Connection, and_, bindparam, func, insert, or_, select, true, tuple_, update
from sqlalchemy.exc import IntegrityError

from maxrr.errors import DataError, KeyReused, NamesDestroyed, UnknownRequest, WrongState
from maxrr.service import states, tables
from maxrr.service.database import Database
from maxrr.service.sealing import RequestKeys, fingerprint, seal, unseal
from maxrr.service.states import DONE, ENDED, ERASE, EXECUTING, FAILED, LEFT, PLANNED, RECEIVED, UNANSWERED, leads_to


@dataclass(frozen=True)
class Callback:
    """Who is told of the steps of a request: by which protocol, where, and with which token of theirs."""

    protocol: str
    url: str
    token: str = ""


@dataclass(frozen=True)
class Asked:
    """What a request asks for, in the words of who asks.

    Attributes
    ----------
    body : dict
        What it names or brings: of an erasure `ids` or `subjects`, each a list. It lies in the database under a key.
    regulation : str
        The law that gives the right, in lower case; it may decide when the request is due.
    due : date
        By when it is to be answered.
    kind : str
        What is to be done: "erase", "add" or "rectify".
    callbacks : sequence of Callback
        Who is told of its steps.
    reference : str or None
        What the protocol that it came by calls it.
    arrived : date or None
        The day on which it came, where that was before, as by post.
    beside : sequence of str
        What else was said that is to be the same where the same call comes again, as the day that was named.
    """

    body: Mapping[str, Any]
    regulation: str
    due: date
    kind: str = ERASE
    callbacks: Sequence[Callback] = ()
    reference: str | None = None
    arrived: date | None = None
    beside: Sequence[str] = ()

    @property
    def said(self) -> list[Any]:
        """What is the same where the same call comes again."""
        return [dict(self.body), self.kind, self.regulation, [each.url for each in self.callbacks], *self.beside]


@dataclass(frozen=True)
class Planned:
    """What a look at the model said about a request: its state then, the policy it will be carried out under, why.

    `plan` has numbers and guarantees, and names nobody.
    """

    state: str
    policy: str | None
    plan: dict[str, Any] | None
    reason: str


@dataclass(frozen=True)
class Standing:
    """What callers see of a request as it stands: nothing that names people.

    Attributes
    ----------
    id : str
        What callers and receipts' tickets call it.
    kind, owner, state : str
        What is to be done, the name of who asked, and how far it is.
    received, due, regulation : str
        When it came, by when it is to be answered, and by which law.
    policy : str or None
        What was decided about core records, if that was necessary.
    plan : dict or None
        What the plan said; where a decision is waited for, one for each policy in `policies`.
    outcome, code : str or None
        What the workspace said at the end: "done", "already-done", "nothing-here" or "refused"; and by which error.
    guarantee : str or None
        What the receipt promises.
    ended, fetched, delivered : str or None
        When it came to an end; when its answer first reached who asked; and when that was said to have arrived with the
        person, or was fetched long ago, so that names were destroyed.
    """

    id: str
    kind: str
    owner: str
    state: str
    received: str
    due: str
    regulation: str
    policy: str | None
    plan: dict[str, Any] | None
    outcome: str | None
    code: str | None
    guarantee: str | None
    ended: str | None
    fetched: str | None
    delivered: str | None


@dataclass(frozen=True)
class Request(Standing):
    """A request as it stands in the database.

    Attributes
    ----------
    serial : int
        Its number here.
    reference : str or None
        What the protocol that it came by calls it.
    begun : int or None
        How many receipts there were when an addition or a correction was begun.
    number : int or None
        The number of the receipt.
    tries : int
        How many workers have ended while it was being carried out, and nobody had asked them to: a thousand for each
        that carried out nothing else.
    """

    serial: int
    reference: str | None
    begun: int | None
    number: int | None
    tries: int = 0

    @property
    def days_left(self) -> int:
        """Days until it is due: below zero where it is late."""
        return (date.fromisoformat(self.due) - today()).days

    @property
    def place(self) -> str:
        """Where it stands in lists, of whichever order."""
        return f"{self.due}.{self.serial}"

    @property
    def is_late(self) -> bool:
        """Whether it was due before today and has no answer yet."""
        return self.state in LEFT and self.days_left < 0


@dataclass(frozen=True)
class Event:
    """Something that happened to a request, and stays: when, what it became, by whom, and why."""

    time: str
    state: str
    actor: str
    reason: str


@dataclass(frozen=True, eq=False)
class New:
    """A request that waits to be written, and what comes of that; `mark` is an HMAC of its idempotency key."""

    asked: Asked
    owner: str
    planned: Planned
    mark: str | None
    written: "Future[Request]" = field(default_factory=Future)


@dataclass(frozen=True)
class Ending:
    """What became of a request that was carried out."""

    request: Request
    state: str
    reason: str
    outcome: str | None = None
    code: str | None = None
    number: int | None = None
    guarantee: str | None = None
    answer: bytes | None = None
    plan: dict[str, Any] | None = None


LISTED = 1 << 14  # bytes of what a request names: with more, some thousand records, it is not searched
INSERT = insert(tables.requests).returning(tables.requests.c.serial, tables.requests.c.id)
WRITE, TELL = update(tables.requests).where(tables.requests.c.serial == bindparam("at")), insert(tables.events)
NAMES = [each.name for each in fields(Request)]
SHOWN = [tables.requests.c[name] for name in NAMES]
TOLD = [tables.events.c[each.name] for each in fields(Event)]


class Requests:
    """The requests of a service.

    Parameters
    ----------
    database : Database
        Where they are.
    keys : RequestKeys
        The keys of what names people in them.
    """

    def __init__(self, database: Database, keys: RequestKeys) -> None:
        self.database = database
        self.keys = keys
        self._turn, self._waiting = Lock(), deque[New]()

    # Submitting

    def submit(
        self, asked: Asked, owner: str, planned: Planned | None = None, idempotency: str | None = None
    ) -> tuple[Request, bool]:  # fmt: skip
        """Take a request, and return it and whether it is new. It is durable when this returns.

        Raises
        ------
        maxrr.errors.KeyReused
            The idempotency key came with another body before.
        """
        mark = None if idempotency is None else fingerprint(self.keys.own, [owner, idempotency])
        new = New(asked, owner, planned or Planned(RECEIVED, None, None, ""), mark)
        self._waiting.append(new)
        with self._turn:  # what came while others were written is written together: two waits for the disk for all
            if not new.written.done():
                self._write([self._waiting.popleft() for _ in range(len(self._waiting))])
        try:
            return new.written.result(), True
        except IntegrityError:  # the key came before
            if (before := self.before(asked, owner, idempotency)) is None:
                raise
            return before, False

    def _write(self, group: Sequence[New]) -> None:
        """Write requests in one transaction, or each in its own where one of them cannot be written."""
        try:
            with self.database.write() as connection:
                found = self._insert(connection, group)
                self.keys.flush()
        except BaseException as error:  # or who waits for it would wait for ever
            if isinstance(error, IntegrityError | DataError) and len(group) > 1:
                for each in group:
                    self._write([each])
            else:
                for each in group:
                    each.written.set_exception(error)
        else:
            for each, request in zip(group, found, strict=True):
                each.written.set_result(request)

    def _insert(self, connection: Connection, group: Sequence[New]) -> list[Request]:
        """Write requests, their keys and their first events: in as many statements for many as for one."""
        rows: list[dict[str, Any]] = [
            {
                "id": uuid.uuid4().hex, "kind": new.asked.kind, "owner": new.owner, "state": new.planned.state,
                "received": f"{new.asked.arrived}T00:00:00+00:00" if new.asked.arrived else now(),
                "due": new.asked.due.isoformat(), "regulation": new.asked.regulation,
                "reference": new.asked.reference, "policy": new.planned.policy, "plan": new.planned.plan,
                "idempotency": new.mark, "tries": 0,
            }
            for new in group
        ]  # fmt: skip
        serials = {row.id: row.serial for row in connection.execute(INSERT, rows)}
        under_key, steps = list[dict[str, Any]](), list[tuple[int, str, str, str]]()
        for new, row in zip(group, rows, strict=True):
            id_ = row["id"]
            serial = row["serial"] = serials[id_]
            key = self.keys.make(serial)
            sealed = seal(key, id_, json.dumps(dict(new.asked.body)).encode())
            under_key.append({"at": serial, "sealed": sealed, "fingerprint": fingerprint(key, new.asked.said)})
            for each in new.asked.callbacks:  # before the events that they are told of
                token = seal(key, id_, each.token.encode())
                callback = {"request": serial, "protocol": each.protocol, "url": each.url, "sealed": token}
                connection.execute(insert(tables.callbacks), callback)
            steps.append((serial, RECEIVED, new.owner, ""))
            planned = states.STATES[1 : states.STATES.index(new.planned.state) + 1]
            steps += [(serial, state, "plan", new.planned.reason) for state in planned]
        connection.execute(WRITE, under_key)
        tell(connection, steps)
        return [request_of([row.get(name) for name in NAMES]) for row in rows]

    def before(self, asked: Asked, owner: str, idempotency: str | None) -> Request | None:
        """Return the request that came with this idempotency key before, if its body was the same; None if none came.

        Raises
        ------
        maxrr.errors.KeyReused
            It came with another body, or names in that request were destroyed.
        """
        if idempotency is None:
            return None
        table = tables.requests.c
        same = table.owner == owner, table.idempotency == fingerprint(self.keys.own, [owner, idempotency])
        rows = self.database.rows(select(*SHOWN, table.fingerprint).where(*same))
        if not rows:
            return None
        found = request_of(rows[0])
        with suppress(NamesDestroyed):
            if fingerprint(self.keys.find(found.serial), asked.said) == rows[0].fingerprint:
                return found
        raise KeyReused(f"this idempotency key is that of request {found.id}, which asked for other things or is over")

    # Looking

    def find(self, id_: str, owner: str | None = None, *, by: str = "id") -> Request:
        """Return a request, of this owner alone where one is named; by its id, or by its "reference".

        Raises
        ------
        maxrr.errors.UnknownRequest
            There is none.
        """
        query = select(*SHOWN).where(tables.requests.c[by] == id_.replace("\0", "?"))  # PostgreSQL has no NUL
        found = self.database.rows(query if owner is None else query.where(tables.requests.c.owner == owner))
        if not found:
            raise UnknownRequest("there is no such request, or it is somebody else's")
        return request_of(found[0])

    def listed(
        self, states: Sequence[str] = (), *, owner: str | None = None, span: str = "", due_first: bool = False,
        delivered: bool | None = None, start: str = "", after: str = "", limit: int = 50,
    ) -> list[Request]:  # fmt: skip
        """Return a page of requests, the newest first, or those that are due next.

        `span` chooses those without an answer that are due in one of the `spans`; `delivered` answers that were
        delivered, or those that were not; `start` is how ids begin, `after` the `place` of the last one of the page
        before.
        """
        table, (day, _, serial) = tables.requests, (after or ".0").partition(".")
        query = select(*SHOWN).where(table.c.id.startswith(start)).limit(limit)
        if states:
            query = query.where(table.c.state.in_(states))
        if owner is not None:
            query = query.where(table.c.owner == owner)
        if span:
            query = query.where(table.c.state.in_(LEFT), table.c.due.between(*spans()[span]))
        if delivered is not None:
            query = query.where(table.c.state == DONE, table.c.delivered.is_not(None) == delivered)
        if due_first:
            query = query.order_by(table.c.due, table.c.serial)
            later = tuple_(table.c.due, table.c.serial) > tuple_(day, int(serial))
        else:
            query = query.order_by(table.c.serial.desc())
            later = table.c.serial < int(serial) if after else true()
        return [request_of(row) for row in self.database.rows(query.where(later))]

    def naming(self, names: Collection[str], owner: str | None, limit: int) -> list[Request]:
        """Return the newest requests in which a person or a record is named so, but for those with very long lists."""
        found, after = list[Request](), ""
        while len(found) < limit and (some := self.listed(owner=owner, after=after, limit=500)):
            bodies, after = self.bodies(some, LISTED), some[-1].place
            found += [each for each in some if {name for _, name in named(bodies.get(each.serial, {}))} & {*names}]
        return found[:limit]

    def events(self, serial: int) -> list[Event]:
        """Return what happened to a request, from the first."""
        query = select(*TOLD).where(tables.events.c.request == serial).order_by(tables.events.c.serial)
        return [Event(*row) for row in self.database.rows(query)]

    def counts(self, owner: str | None = None) -> dict[str, int]:
        """Return how many requests there are by state, how many without an answer are late, and due within a week, and
        how many answers were not fetched or delivered yet.
        """
        table = tables.requests.c
        whose = true() if owner is None else table.owner == owner
        counted = {name: and_(table.state.in_(LEFT), table.due.between(*span)) for name, span in spans().items()}
        for name in ("fetched", "delivered"):
            counted[f"not_{name}"] = and_(table.state == DONE, table[name].is_(None))
        by_state = select(table.state, func.count()).where(whose).group_by(table.state)
        others = select(*(func.count().filter(those).label(name) for name, those in counted.items())).where(whose)
        return dict(map(tuple, self.database.rows(by_state))) | dict(self.database.rows(others)[0]._mapping)

    def received_by_day(self, days: int, owner: str | None = None) -> list[tuple[date, int]]:
        """Return how many requests were received on each of the last days, of this owner alone where one is named."""
        table, first = tables.requests.c, today() - timedelta(days=days - 1)
        day, whose = func.substr(table.received, 1, 10), true() if owner is None else table.owner == owner
        query = select(day, func.count()).where(table.received >= first.isoformat(), whose).group_by(day)
        found = {row[0]: int(row[1]) for row in self.database.rows(query)}
        last = [first + timedelta(days=past) for past in range(days)]
        return [(each, found.get(each.isoformat(), 0)) for each in last]

    def body(self, request: Request) -> dict[str, Any]:
        """Return what a request asks for, as it came.

        Raises
        ------
        maxrr.errors.NamesDestroyed
            Its answer was delivered.
        """
        found = self.bodies([request])
        if request.serial not in found:
            raise NamesDestroyed("what named people in this request was destroyed when its answer was delivered")
        return found[request.serial]

    def bodies(self, some: Sequence[Request], most: int = 1 << 30) -> dict[int, dict[str, Any]]:
        """Return what requests ask for, by their serial numbers, as far as it can be read and has so many bytes."""
        table, found = tables.requests.c, dict[int, dict[str, Any]]()
        query = select(table.serial, table.id, table.sealed).where(table.serial.in_([each.serial for each in some]))
        for row in self.database.rows(query.where(func.length(table.sealed) <= most)):  # NULL has none
            with suppress(NamesDestroyed):
                found[row.serial] = json.loads(unseal(self.keys.find(row.serial), row.id, row.sealed))
        return found

    def answer(self, request: Request) -> bytes:
        """Return the answer of a request that was carried out: its receipt, or a statement that nothing is here.

        Raises
        ------
        maxrr.errors.WrongState
            It has none.
        maxrr.errors.NamesDestroyed
            It is a statement that names somebody, and was delivered.
        """
        query = select(tables.requests.c.answer).where(tables.requests.c.serial == request.serial)
        found: bytes | None = self.database.rows(query)[0].answer
        if found is None:
            raise WrongState(f"request {request.id} is {request.state}, and has no answer")
        return found if request.number else unseal(self.keys.find(request.serial), request.id, found)

    # Moving

    def move(self, serials: Iterable[int], state: str, actor: str, reason: str = "", **values: Any) -> list[int]:
        """Move those of some requests that can take this state now into it, and return which those are."""
        with self.database.write() as connection:
            return moved(connection, list(serials), state, actor, reason, **values)

    def plan(self, looked_at: Mapping[int, Planned], actor: str) -> None:
        """Note what a look at the model said about requests that were received."""
        with self.database.write() as connection:
            for serial, planned in looked_at.items():
                values = {"policy": planned.policy, "plan": planned.plan}
                done = moved(connection, [serial], PLANNED, actor, planned.reason, [RECEIVED], **values)
                if done and planned.state != PLANNED:  # and not where another worker has planned it meanwhile
                    moved(connection, done, planned.state, actor, planned.reason)

    def decide(self, request: Request, state: str, actor: str, reason: str, **values: Any) -> Request:
        """Take a step that somebody decided on.

        Raises
        ------
        maxrr.errors.WrongState
            The request cannot take it in the state that it is in by now.
        """
        values |= {"ended": now() if state in ENDED else None, "code": None, "tries": 0}  # a code stopped a worker
        with self.database.write() as connection:
            done = moved(connection, [request.serial], state, actor, reason, states.DECIDED[state], **values)
        if not done:
            raise WrongState(f"request {request.id} is {self.find(request.id).state}, and cannot become {state}")
        if state in UNANSWERED:
            self.keys.destroy([request.serial])
        return self.find(request.id)

    def tried(self, serials: Collection[int], count: int) -> None:
        """Count a worker that begins with requests, before it does: this stays where it ends with them."""
        table = tables.requests
        self.database.run(update(table).where(table.c.serial.in_(serials)).values(tries=table.c.tries + count))

    def excuse(self) -> None:
        """Let no try count of what is executing: something else ends the worker, or keeps it from going on."""
        self.database.run(update(tables.requests).where(tables.requests.c.state == EXECUTING).values(tries=0))

    def end(self, endings: Sequence[Ending], actor: str) -> None:
        """Write what became of requests that were executing, in one transaction."""
        table, named = tables.requests, ("state", "outcome", "code", "number", "guarantee", "answer")
        chosen = select(table.c.serial).where(table.c.serial.in_([each.request.serial for each in endings]))
        with self.database.write() as connection:  # in three statements: a worker ends hundreds at once
            here = set(connection.scalars(chosen.where(table.c.state == EXECUTING).with_for_update()))
            ended = [each for each in endings if each.request.serial in here]
            rows = [{name: vars(each)[name] for name in named} for each in ended]
            for each, row in zip(ended, rows, strict=True):
                over = now() if each.state in ENDED else None
                row |= {"at": each.request.serial, "ended": over, "plan": each.plan or each.request.plan}
            if ended:
                connection.execute(WRITE, rows)
                tell(connection, [(each.request.serial, each.state, actor, each.reason) for each in ended])
        self.keys.destroy([each.request.serial for each in endings if each.state in UNANSWERED])

    def deliver(self, request: Request, actor: str) -> Request:
        """Note that the answer of a request was delivered, and destroy what names people in it.

        Raises
        ------
        maxrr.errors.WrongState
            It has no answer yet.
        """
        if request.state != DONE:
            raise WrongState(f"request {request.id} is {request.state}: there is no answer that could be delivered")
        self._delivered([request.serial], actor)
        return self.find(request.id)

    def forget(self, days: int) -> int:
        """Destroy what names people in requests that were over so many days ago, and return in how many.

        Erasures are over when their answer was fetched, and all else when it ended; without an answer, at once.
        """
        before = (datetime.now(UTC) - timedelta(days=days)).isoformat()
        table = tables.requests.c
        fetched = and_(table.state == DONE, table.fetched < before)
        ended = and_(or_(table.state == FAILED, table.kind != ERASE), table.ended < before)
        is_over = or_(table.state.in_(UNANSWERED), fetched, ended)
        rows = self.database.rows(select(table.serial).where(table.sealed.is_not(None), is_over))
        serials = [row.serial for row in rows]
        self._delivered(serials, "service:names")
        return len(serials)

    def _delivered(self, serials: Sequence[int], actor: str) -> None:
        """Destroy keys, and note it after that: it is done again where a crash comes between."""
        self.keys.destroy(serials)
        self.note("delivered", serials, actor, sealed=None)

    def note(self, what: str, serials: Sequence[int], actor: str, **values: Any) -> None:
        """Note once when answers were "fetched" or "delivered", as an event, too, which changes no state."""
        table = tables.requests
        first = update(table).where(table.c.serial.in_(serials), table.c[what].is_(None)).returning(table.c.serial)
        with self.database.write() as connection:
            done = connection.scalars(first.values({what: now(), **values})).all()
            if done:
                tell(connection, [(serial, what, actor, "") for serial in done])


def moved(
    connection: Connection, serials: Sequence[int], state: str, actor: str, reason: str = "",
    before: Sequence[str] = (), **values: Any,
) -> list[int]:  # fmt: skip
    """Move requests within a transaction: compare and set, which no two workers do to the same one.

    `before` are the states that they may be in, if not all that lead to the next one.
    """
    table = tables.requests
    those = table.c.serial.in_(serials), table.c.state.in_(before or leads_to(state))
    done = sorted(connection.scalars(update(table).where(*those).returning(table.c.serial), {"state": state, **values}))
    if done:
        tell(connection, [(serial, state, actor, reason) for serial in done])
    return done


def tell(connection: Connection, steps: Sequence[tuple[int, str, str, str]]) -> None:
    """Append events: of each the request, the state that it took, who made it so, and why."""
    former = select(func.max(tables.events.c.time)).where(tables.events.c.request.in_({step[0] for step in steps}))
    time = max(now(), connection.scalar(former) or "")  # also where the clock was ahead before
    rows = ({"request": at, "state": state, "actor": by, "reason": why[:500]} for at, state, by, why in steps)
    connection.execute(TELL, [{"time": time, **each} for each in rows])


def named(body: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the ids and people that a request names."""
    lists = {"ids": body.get("ids"), "subjects": body.get("subjects"), "id": [body["id"]] if "id" in body else None}
    return {(name, str(each)) for name, some in lists.items() for each in some or ()}


def request_of(row: Sequence[Any]) -> Request:
    """Return the request in a row, which may have more columns."""
    return Request(*row[: len(SHOWN)])


def now() -> str:
    """Return the time as the database has it: texts in the order of times."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def spans() -> dict[str, tuple[str, str]]:
    """Return between which days requests are due that are late, and those that are due within a week."""
    before, week = today() - timedelta(days=1), today() + timedelta(days=7)
    return {"late": ("", before.isoformat()), "due_soon": (today().isoformat(), week.isoformat())}


def today() -> date:
    """Return the day, by which requests are due."""
    return datetime.now(UTC).date()
