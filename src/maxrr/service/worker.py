"""The worker: whoever holds the workspace carries out what is planned; others stand by, and audit and replay meanwhile.

A request is executed by a batch of the workspace, under its id as the ticket. The workspace keeps that ticket in the
commit that carries it out, so that a request which is tried again, after whatever crash, has its effect once.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sqlalchemy import delete, insert, or_, select

from maxrr import errors
from maxrr.data import Dataset
from maxrr.errors import MaxRRError
from maxrr.service import tables
from maxrr.service.changes import carry_out
from maxrr.service.jobs import AUDIT, GIVEN_UP, Jobs
from maxrr.service.planning import look, plan_of
from maxrr.service.problems import note
from maxrr.service.requests import Ending, Planned, Request, Requests
from maxrr.service.sealing import seal
from maxrr.service.settings import Settings
from maxrr.service.states import DONE, ERASE, EXECUTING, FAILED, PLANNED, RECEIVED, REFUSED, WAITING
from maxrr.service.versions import record
from maxrr.svm import ConvergenceError
from maxrr.unlearning.actions import KEEP, REFUSE, RETRAIN, Guarantee
from maxrr.unlearning.receipts import Receipt
from maxrr.workspace import Ticket, Workspace
from maxrr.workspace.batches import NOTHING_HERE

log = logging.getLogger("maxrr.service")

TOGETHER = 500  # requests in one batch
PAUSE = 0.05  # seconds between two looks for work
AGAIN = 2.0  # seconds between two tries where the workspace or the database cannot be had
FORGET_EVERY = 3600.0
BESIDE, SHARE = 1.0, 5  # seconds between two looks for what is done beside, or so many times what the last took
TOGETHER_AGAIN, ALONE, TRIES = 2, 1000, 3000  # to halve a batch at, of one alone, to give it up at
TO_REPAIR = (errors.WorkspaceError, errors.EngineError, errors.DatabaseAway, OSError, MemoryError)
"""What keeps a worker from carrying out any request, until somebody has repaired it or time has passed."""


class Worker:
    """Carries out the requests of a service for as long as it holds the workspace.

    Parameters
    ----------
    settings : Settings
        What the service was told.
    requests : Requests
        The requests.
    """

    def __init__(self, settings: Settings, requests: Requests) -> None:
        self.settings = settings
        self.requests = requests
        self.jobs = Jobs(settings, requests.database)
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.stopping = threading.Event()
        self.said = ("", "", 0.0)
        self.forgot = float("-inf")
        self.due = float("inf")  # when that begins for which others may wait
        self.held: Workspace | None = None
        self.began = set[int]()  # requests that it tried last, and that count it
        self.recorded = ""
        self.test: Dataset | None = None

    def run(self) -> None:
        """Work until `stop` is called: hold the workspace, or wait until it is free; and audit and replay meanwhile."""
        threading.Thread(target=self.beside, daemon=True).start()
        while not self.stopping.is_set():
            try:
                self.say("standing by")
                with self.settings.open(False) as workspace:
                    log.info("this worker holds the workspace")
                    self.held = workspace
                    self.reopen(workspace)
                    while not self.stopping.is_set():
                        self.say("at work")
                        if not self.turn(workspace):
                            self.stopping.wait(PAUSE)
            except Exception as error:  # nothing ends a worker but its end
                if not isinstance(error, errors.InUse):
                    self.trouble(error)
            self.held = None
            self.stopping.wait(AGAIN)

    def stop(self) -> None:
        """Ask it to end after the batch that it is at."""
        self.stopping.set()
        if self.held is not None:  # it may be killed before that; and who asks may be a signal, which waits for nobody
            threading.Thread(target=self.requests.excuse, daemon=True).start()

    def beside(self) -> None:
        """Do what a snapshot is enough for: plan while a batch takes long, audit, replay, and record versions."""
        pause = BESIDE
        while not self.stopping.wait(pause):
            pause = BESIDE
            try:
                if self.requests.listed([RECEIVED], limit=1):
                    with self.settings.open(True) as snapshot:
                        self.look_at_new(snapshot)
                if self.held is not None and self.held.model.model_hash_ != self.recorded:
                    begun = time.monotonic()
                    self.record_version()
                    pause = max(BESIDE, SHARE * (time.monotonic() - begun))
                self.jobs.turn(self.name)
            except Exception as error:  # nothing ends this but its end
                note(error)

    def record_version(self) -> None:
        """Record the version that the model has by now, and how well it classifies the records for testing."""
        with self.settings.open(True) as snapshot:
            try:
                if self.test is None and self.settings.sides is not None:
                    self.test = self.settings.sides(snapshot)[1]
                record(self.requests.database, snapshot, self.test)
            except errors.DatabaseAway:  # measured when it is back
                raise
            except Exception as error:  # whatever comes of records that cannot be read or classified: not measured then
                note(error)
                record(self.requests.database, snapshot, None)
            self.recorded = snapshot.model.model_hash_

    def reopen(self, workspace: Workspace) -> None:
        """Plan requests anew whose receipts the workspace does not have: these were done in a copy that is gone."""
        workspace.check_newest()  # or it may catch up with that one yet
        lost, table = list[int](), tables.requests.c
        latest = select(table.serial, table.number, table.answer).where(table.number.is_not(None)).limit(1)
        # each receipt says so since somebody declared a loss
        is_loss = (count := workspace.status().requests) and workspace.receipt(count).receipt.losses
        while is_loss and (rows := self.requests.database.rows(latest.order_by(table.number.desc()).offset(len(lost)))):
            if rows[0].number <= count and workspace.receipt(rows[0].number).to_bytes() == rows[0].answer:
                break
            lost.append(rows[0].serial)
        gone = dict.fromkeys(("outcome", "number", "guarantee", "answer", "ended", "fetched", "delivered"))
        self.requests.move(lost, PLANNED, self.name, "a copy of the workspace is gone in which this was done", **gone)

    def turn(self, workspace: Workspace) -> bool:
        """Do what is to be done now, and say whether there was anything.

        Requests that are executing are those that some worker has not ended, as nobody else holds the workspace.
        """
        if time.monotonic() - self.forgot > FORGET_EVERY:
            self.requests.forget(self.settings.keep)
            self.forgot = time.monotonic()
        self.look_at_new(workspace)
        begun = self.requests.listed([EXECUTING], due_first=True, limit=TOGETHER)
        some = begun or self.requests.listed([PLANNED], due_first=True, limit=TOGETHER)
        batches = [(each.policy or REFUSE, [each]) for each in some if each.kind != ERASE]  # each is a change by itself
        rest = [each for each in some if each.kind == ERASE]
        found = {kind: [each for each in rest if (each.policy or REFUSE) == kind] for kind in (REFUSE, KEEP, RETRAIN)}
        batches += (found if begun else self.arranged(workspace, found)).items()
        for policy, batch in [(policy, part) for policy, whole in batches for part in parted(whole)]:
            if self.stopping.is_set():
                break
            if mine := batch if begun else self.claimed(workspace, batch):
                serials = {each.serial for each in mine}
                self.requests.tried(serials - self.began, 1 if len(serials) > 1 else ALONE)
                self.began = serials
                self.execute(workspace, mine, policy)
        return any(batch for _, batch in batches)

    def arranged(self, workspace: Workspace, found: dict[str, list[Request]]) -> dict[str, list[Request]]:
        """Return what is carried out now of what waits under each policy, as one batch where that is cheaper.

        A training fits all heads anew. By their plans, those that would move heads cost nothing more where they share
        it, and so wait for it; those that shape nothing cost nothing in any case, and wait for nobody.
        """
        if not found[KEEP] + found[RETRAIN]:
            self.due = float("inf")
            return found
        sharing = [each for each in found[REFUSE] if found[RETRAIN] and each.plan and each.plan["influential"]]
        self.due = min(self.due, time.monotonic() + self.settings.gather)
        if time.monotonic() < self.due:  # others may be approved meanwhile
            there = {each.serial for each in sharing}
            return {REFUSE: [each for each in found[REFUSE] if each.serial not in there]}
        self.due = float("inf")
        bodies = self.requests.bodies(sharing)
        for each in sharing:
            if each.serial in bodies and is_without_core(workspace, bodies[each.serial]):
                found[REFUSE].remove(each)
                found[RETRAIN].append(each)
        return found

    def claimed(self, workspace: Workspace, some: Sequence[Request]) -> list[Request]:
        """Move requests to where they are executed, and return those that nobody else moved meanwhile."""
        if not some:
            return []
        begun = None if some[0].kind == ERASE else some[0].begun or workspace.status().requests
        mine = set(self.requests.move([each.serial for each in some], EXECUTING, self.name, begun=begun))
        return [replace(each, begun=begun) for each in some if each.serial in mine]

    def look_at_new(self, workspace: Workspace) -> None:
        """Plan what was received while no model could be looked at."""
        some = self.requests.listed([RECEIVED], due_first=True, limit=TOGETHER)
        if not some:
            return
        bodies, planned = self.requests.bodies(some), dict[int, Planned]()
        for each in some:
            try:
                body = bodies.get(each.serial, {})
                planned[each.serial] = look(workspace.model, each.kind, body, self.settings.policy)
            except (ValueError, LookupError) as error:  # its execution says so
                code = error.code if isinstance(error, MaxRRError) else "wrong-value"
                planned[each.serial] = Planned(PLANNED, None, None, code)
        self.requests.plan(planned, self.name)

    def execute(self, workspace: Workspace, some: Sequence[Request], policy: str) -> None:
        """Carry out requests as one batch, and write what became of each.

        Where a batch fails by what one of them asks for, each is carried out alone, and that one has failed. What
        somebody has to repair first, such as a full disk, is raised, and they stay as they are.
        """
        bodies = self.requests.bodies(some)
        readable = [each for each in some if each.serial in bodies and each.tries < TRIES]
        endings = [self.given_up(workspace, each) for each in some if each not in readable]
        try:
            if readable:
                endings += self.answered(workspace, readable, bodies, policy)
        except TO_REPAIR as error:
            if isinstance(error, MemoryError):  # which may be that of this request: it counts as the end of a worker
                self.began.clear()
            raise
        except Exception as error:  # whatever comes of one request keeps no others
            if len(readable) > 1:
                for each in readable:
                    self.execute(workspace, [each], policy)
            else:
                note(error)
                code = error.code if isinstance(error, MaxRRError | ConvergenceError) else "fault"
                endings += [Ending(each, FAILED, code, code=code) for each in readable]
        self.requests.end(endings, self.name)
        for ending in endings:
            if ending.guarantee == Guarantee.approximate and (some[0].kind, ending.outcome) == (ERASE, "done"):
                self.jobs.ask(ending.request.serial, AUDIT, self.name)

    def answered(
        self, workspace: Workspace, some: Sequence[Request], bodies: Mapping[int, Mapping[str, Any]], policy: str
    ) -> list[Ending]:  # fmt: skip
        """Answer requests by one batch, and return what became of each. They are carried out when this returns."""
        if some[0].kind != ERASE:
            return [self.changed(workspace, each, bodies[each.serial], policy) for each in some]
        tickets = dict[int, Ticket]()
        with workspace.batch(core_policy=policy, progress=self.progress) as batch:
            for each in some:
                body, dates = bodies[each.serial], {"received": each.received[:10], "due": each.due}
                named = {"ids": body.get("ids"), "subjects": body.get("subjects")}
                tickets[each.serial] = batch.unlearn(**named, ticket=each.id, **dates)
        if workspace.unfinished:
            log.warning("the requests were carried out, but old bytes could not be erased yet: tried again")
        return [self.ending(workspace, each, tickets[each.serial]) for each in some]

    def changed(self, workspace: Workspace, request: Request, body: Mapping[str, Any], policy: str) -> Ending:
        """Carry out an addition or a correction, and return what became of it."""
        try:
            begun = request.begun or 0
            return done(request, workspace, carry_out(workspace, request.kind, body, policy, begun, self.progress))
        except errors.CoreRefused:
            return waits(request, workspace, body)

    def given_up(self, workspace: Workspace, request: Request) -> Ending:
        """Return the end of a request over which workers ended, or of which cannot be read any more what it asks for.

        The latter is one that was answered after the copy of the database was made that is used now.
        """
        numbers = sorted(workspace.find(ticket=request.id).receipts)
        if numbers:
            return done(request, workspace, workspace.receipt(numbers[0]).receipt)
        code = errors.NamesDestroyed.code if request.tries < TRIES else GIVEN_UP
        return Ending(request, FAILED, code, code=code)

    def ending(self, workspace: Workspace, request: Request, ticket: Ticket) -> Ending:
        """Return what became of a request, by what the workspace says of its ticket."""
        if ticket.outcome == NOTHING_HERE:
            assert ticket.answer is not None
            sealed = seal(self.requests.keys.find(request.serial), request.id, ticket.answer)
            return Ending(request, DONE, "nothing here", ticket.outcome, answer=sealed)
        try:
            return done(request, workspace, ticket.receipt)
        except errors.Refused as refused:
            if refused.plans:  # the model was fitted anew since the plan
                return waits(request, workspace, self.requests.body(request))
            return Ending(request, REFUSED, refused.code, ticket.outcome, code=refused.code)

    def progress(self, what: str, done: int, total: int, **_: float) -> None:
        """Tell others how far the batch is."""
        self.say(f"{what}: {done:,} of {total:,}")

    def say(self, doing: str, code: str = "") -> None:
        """Tell others what this worker does, not more often than they look, and as far as the database can be had."""
        before, former, then = self.said
        if time.monotonic() - then < (5.0 if (before, former) == (doing, code) else 0.5 * (before != "")):
            return
        with suppress(errors.DatabaseAway, OSError), self.requests.database.write() as connection:
            table, seen = tables.workers, time.time()
            connection.execute(delete(table).where(or_(table.c.name == self.name, table.c.seen < seen - 86400)))
            connection.execute(insert(table).values(name=self.name, doing=doing[:200], code=code, seen=seen))
            self.said = doing, code, time.monotonic()

    def trouble(self, error: Exception) -> None:
        """Note what stops this worker, by its kind alone: the message may name records."""
        self.said = ("", "", 0.0)
        self.say("stopped", note(error, "the worker stops and tries again"))


def parted(batch: list[Request]) -> list[list[Request]]:
    """Halve a batch over which workers have ended: after some more the request that ends them is alone."""
    half = len(batch) // 2 if any(each.tries >= TOGETHER_AGAIN for each in batch) else 0
    return [batch[:half], batch[half:]] if half else [batch]


def is_without_core(workspace: Workspace, body: Mapping[str, Any]) -> bool:
    """Say whether what is asked for has no core records: a fit since the plan may have made them so."""
    try:
        return plan_of(workspace.model, ERASE, body, REFUSE).core == 0
    except (ValueError, LookupError):
        return False


def waits(request: Request, workspace: Workspace, body: Mapping[str, Any]) -> Ending:
    """Return the end of a try that found core records: somebody is to decide."""
    found = look(workspace.model, request.kind, body, REFUSE)
    return Ending(request, WAITING, found.reason, plan=found.plan)


def done(request: Request, workspace: Workspace, receipt: Receipt) -> Ending:
    """Return the end of a request that this receipt answers."""
    handed = workspace.receipt(receipt.number).to_bytes()
    outcome = "already-done" if receipt.requested == receipt.already_forgotten > 0 else "done"
    words = f"receipt {receipt.number}: {receipt.guarantee}"
    return Ending(request, DONE, words, outcome, number=receipt.number, guarantee=receipt.guarantee, answer=handed)
