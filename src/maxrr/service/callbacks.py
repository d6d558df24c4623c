"""Tell others of the steps of requests: at least once, in their order, signed, and only where the operator allows.

The database adds a delivery for each event and each who is told of it, in the transaction of the event. Whoever takes
a delivery has it for two minutes; if nobody wrote by then what came of it, it is tried again.
"""

import http.client
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import bindparam, delete, exists, func, insert, select, update

from maxrr.errors import HostNotAllowed, NamesDestroyed
from maxrr.service import tables
from maxrr.service.problems import note
from maxrr.service.protocols import host_of
from maxrr.service.requests import SHOWN, Request, Requests, now, request_of
from maxrr.service.states import DONE
from maxrr.unlearning.actions import Guarantee

PAUSE = 0.25  # seconds between two looks
TAKEN = 120.0  # seconds for which a delivery belongs to whoever took it
TOGETHER = 100  # deliveries that are taken at once
PATIENCE, AT_MOST = 10.0, 30.0  # seconds that a receiver may take to answer: at each step, and in all
FIRST, LAST, MOST = 5.0, 21600.0, 25  # seconds before the second try, at most between two; tries, over three days


@dataclass(frozen=True)
class Step:
    """A step of a request that somebody is to be told of.

    Attributes
    ----------
    request : Request
        The request as it stands by now.
    serial, tries : int, int
        Of the delivery.
    protocol, url, sealed : str, str, bytes or None
        Who is told, and the token to call with, under the request's key.
    number, state, time, before : int, str, str, str
        Of the event; and the state before it, empty for the first.
    """

    request: Request
    serial: int
    tries: int
    protocol: str
    url: str
    sealed: bytes | None
    number: int
    state: str
    time: str
    before: str

    @property
    def is_approximate(self) -> bool:
        """Whether the request came to an end which leaves something of it in the model."""
        return self.state == DONE and self.request.guarantee == Guarantee.approximate


@dataclass(frozen=True)
class Message:
    """What is sent."""

    headers: Mapping[str, str]
    body: bytes


Teller = Callable[[Step], Message | None]
"""Says what is sent of a step by a protocol; None where there is nothing to tell."""


class Callbacks:
    """Sends what is to be told, for as long as a server runs; several may do so on one database.

    Parameters
    ----------
    requests : Requests
        The requests.
    tellers : dict of str to Teller
        What is said by each protocol.
    hosts : dict of str to list of str
        Which hosts may be called by each.
    """

    def __init__(self, requests: Requests, tellers: Mapping[str, Teller], hosts: Mapping[str, Sequence[str]]) -> None:
        self.requests = requests
        self.tellers = tellers
        self.hosts = hosts

    def run(self, stopping: threading.Event) -> None:
        """Send until the server stops."""
        while not stopping.wait(PAUSE):
            try:
                while self.turn() and not stopping.is_set():
                    pass
            except Exception as error:  # nothing ends this but its end
                note(error, "nobody can be told now")
                stopping.wait(FIRST)

    def follow(self, urls: Sequence[str]) -> None:
        """Tell these of the steps of all requests from now on, and nobody else of more than one request."""
        callbacks, deliveries = tables.callbacks, tables.deliveries
        with self.requests.database.write() as connection:
            connection.execute(select(tables.steps_done).with_for_update())  # others that start now wait
            rows = connection.execute(select(callbacks.c.serial, callbacks.c.url).where(callbacks.c.request.is_(None)))
            known = {row.url: row.serial for row in rows}
            gone = [serial for url, serial in known.items() if url not in urls]
            connection.execute(delete(deliveries).where(deliveries.c.callback.in_(gone)))
            connection.execute(delete(callbacks).where(callbacks.c.serial.in_(gone)))
            for url in dict.fromkeys(urls):
                if url not in known:
                    connection.execute(insert(callbacks).values(protocol="webhook", url=url))

    def turn(self) -> int:
        """Send what is due, and return how many deliveries that were."""
        by_host = defaultdict[str, list[Step]](list)
        for step in self._taken():
            try:
                by_host[host_of(step.url, self.hosts.get(step.protocol, []))].append(step)
            except HostNotAllowed:
                self._write([ending(step, HostNotAllowed.code)])
        if by_host:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(self._send, by_host, by_host.values()))
        return sum(map(len, by_host.values()))

    def failures(self, limit: int = 100) -> list[dict[str, Any]]:
        """Return deliveries that did not arrive, the newest first: those that are tried again, and those given up."""
        table, callbacks, requests = tables.deliveries.c, tables.callbacks.c, tables.requests.c
        shown = requests.id.label("request"), callbacks.protocol, callbacks.url, table.tries, table.code, table.ended
        joined = requests.serial == table.request, callbacks.serial == table.callback, table.code != ""
        chosen = select(*shown).where(*joined).order_by(table.serial.desc()).limit(limit)
        return [dict(row._mapping) for row in self.requests.database.rows(chosen)]

    def _taken(self) -> list[Step]:
        """Take deliveries that are due, none before an earlier one of the same request to the same receiver."""
        table, former = tables.deliveries.c, tables.deliveries.alias()
        same = former.c.callback == table.callback, former.c.request == table.request
        waits = exists().where(*same, former.c.serial < table.serial, former.c.ended.is_(None))
        is_due = ~table.due.between(time.time(), time.time() + 2 * LAST)  # later is what a clock said that was ahead
        due = select(table.serial).where(table.ended.is_(None), is_due, ~waits).order_by(table.due, table.serial)
        with self.requests.database.write() as connection:
            serials = list(connection.scalars(due.limit(TOGETHER).with_for_update(skip_locked=True)))
            mine = update(tables.deliveries).where(table.serial.in_(serials))
            connection.execute(mine.values(due=time.time() + TAKEN))
        return self._steps(serials)

    def _steps(self, serials: Sequence[int]) -> list[Step]:
        """Read what deliveries are about."""
        table, events, callbacks, requests = tables.deliveries.c, tables.events.c, tables.callbacks.c, tables.requests.c
        former = tables.events.alias().c
        before = select(former.state).where(former.request == events.request, former.serial < events.serial)
        last = func.coalesce(before.order_by(former.serial.desc()).limit(1).scalar_subquery(), "")
        chosen = select(
            *SHOWN, table.serial, table.tries, callbacks.protocol, callbacks.url, callbacks.sealed, events.serial,
            events.state, events.time, last,
        ).where(
            table.serial.in_(serials), events.serial == table.event, callbacks.serial == table.callback,
            requests.serial == table.request,
        ).order_by(table.serial)  # fmt: skip
        return [Step(request_of(row), *row[len(SHOWN) :]) for row in self.requests.database.rows(chosen)]

    def _send(self, host: str, some: Sequence[Step]) -> None:
        """Send to one host, one after the other. Where it cannot be reached, the others wait as well."""
        endings, arrived, away, until = [], list[int](), "", time.monotonic() + TAKEN / 2
        for step in some:
            if time.monotonic() > until:
                break
            try:
                message = self.tellers[step.protocol](step)
            except NamesDestroyed as error:
                endings.append(ending(step, error.code))
                continue
            code = "" if message is None else away or send(host, step.url, message)
            away = code if code and not code.startswith("http-") else away
            endings.append(ending(step, code))
            if message is not None and not code and step.state == DONE and step.protocol != "webhook":
                arrived.append(step.request.serial)
        self._write(endings)
        if arrived:
            self.requests.note("fetched", arrived, some[0].protocol)

    def _write(self, endings: Sequence[Mapping[str, Any]]) -> None:
        table = tables.deliveries
        self.requests.database.run(update(table).where(table.c.serial == bindparam("at")), endings)


def ending(step: Step, code: str) -> dict[str, Any]:
    """Return what is written of a delivery: that it arrived, when it is tried again, or that it was given up."""
    tries = step.tries + 1
    is_over = not code or code in (HostNotAllowed.code, NamesDestroyed.code) or tries >= MOST
    due = time.time() + min(LAST, FIRST * 2**step.tries)
    return {"at": step.serial, "tries": tries, "code": code, "due": due, "ended": now() if is_over else None}


def send(host: str, url: str, message: Message) -> str:
    """Send a message, follow no redirection, and return why it did not arrive; nothing where it did."""
    place = urlsplit(host)
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    connection = kind(place.hostname or "", place.port, timeout=PATIENCE)
    late = threading.Timer(AT_MOST, cut, [connection])
    late.start()
    try:
        connection.request("POST", url.removeprefix(host), message.body, dict(message.headers))
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        late.cancel()
        connection.close()
    return "" if 200 <= status < 300 else f"http-{status}"


def cut(connection: http.client.HTTPConnection) -> None:
    """End a call whose answer comes byte by byte: those to others wait for it."""
    with suppress(OSError, AttributeError):  # it has ended by itself
        connection.sock.shutdown(socket.SHUT_RDWR)
