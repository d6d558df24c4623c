"""Audits and replays: long work beside the requests, which whoever holds the workspace does one after the other."""

import logging
import threading
import time
from dataclasses import dataclass, fields

from sqlalchemy import func, insert, select, update

from maxrr.data import Dataset
from maxrr.errors import DatabaseAway, MaxRRError, RecordsMissing, WorkspaceClosed
from maxrr.service import tables
from maxrr.service.database import Database
from maxrr.service.problems import note
from maxrr.service.requests import Request, now
from maxrr.service.settings import Settings
from maxrr.service.states import DONE, FAILED
from maxrr.unlearning import Receipt
from maxrr.workspace import Workspace

log = logging.getLogger("maxrr.service")

AUDIT, REPLAY = KINDS = "audit", "replay"
QUEUED, RUNNING = "queued", "running"
PAUSE = 1.0  # seconds between two looks for a job, and between two notes of progress


@dataclass(frozen=True)
class Job:
    """A job about a request.

    Attributes
    ----------
    kind, state : str
        "audit" or "replay"; "queued", "running", "done" or "failed".
    progress : str
        How far it is.
    result : str
        What it found: the finding of an audit, the outcome of a replay, or the code of what it failed by.
    actor, time : str
        Who asked for it, and when its state changed last.
    """

    kind: str
    state: str
    progress: str
    result: str
    actor: str
    time: str


COLUMNS = [tables.jobs.c[each.name] for each in fields(Job)]


class Jobs:
    """The jobs of a service.

    Parameters
    ----------
    settings : Settings
        What the service was told.
    database : Database
        Where they are.
    """

    def __init__(self, settings: Settings, database: Database) -> None:
        self.settings = settings
        self.database = database
        self.noted = float("-inf")

    def ask(self, request: Request, kind: str, actor: str) -> None:
        """Queue a job, if the same is not queued or running already."""
        table = tables.jobs.c
        open_ = select(func.count()).where(
            table.request == request.serial, table.kind == kind, table.state.in_([QUEUED, RUNNING])
        )
        with self.database.write() as connection:
            if not connection.scalar(open_):
                connection.execute(
                    insert(tables.jobs).values(
                        request=request.serial, kind=kind, state=QUEUED, progress="", result="", actor=actor, time=now()
                    )
                )

    def of(self, request: Request) -> list[Job]:
        """Return the jobs about a request, from the first."""
        query = select(*COLUMNS).where(tables.jobs.c.request == request.serial).order_by(tables.jobs.c.serial)
        with self.database.read() as connection:
            return [Job(*row) for row in connection.execute(query)]

    def follow(self, workspace: Workspace, ending: threading.Event) -> None:
        """Do what is queued until the event is set. What a killed worker had begun is done again."""
        again = update(tables.jobs).where(tables.jobs.c.state == RUNNING).values(state=QUEUED)
        begun = False
        while not ending.wait(PAUSE):
            try:
                if not begun:
                    with self.database.write() as connection:
                        connection.execute(again)
                    begun = True
                self.turn(workspace)
            except DatabaseAway:
                pass  # it comes back
            except WorkspaceClosed:
                return

    def turn(self, workspace: Workspace) -> bool:
        """Do the next job, and say whether there was one."""
        jobs, asked = tables.jobs.c, tables.requests.c
        query = select(jobs.serial, jobs.kind, asked.number).join(tables.requests).where(jobs.state == QUEUED)
        with self.database.read() as connection:
            row = connection.execute(query.order_by(jobs.serial).limit(1)).first()
        if row is None:
            return False
        self.write(row.serial, state=RUNNING)
        try:
            receipt = workspace.receipt(row.number).receipt
            self.write(row.serial, state=DONE, result=self.do(workspace, row.kind, receipt, row.serial))
        except (DatabaseAway, WorkspaceClosed):
            raise  # it is done again by whoever holds the workspace next
        except Exception as error:  # a job that fails stops no other
            note(error)
            self.write(row.serial, state=FAILED, result=error.code if isinstance(error, MaxRRError) else "fault")
        return True

    def do(self, workspace: Workspace, kind: str, receipt: Receipt, serial: int) -> str:
        """Audit or replay a receipt, and return what was found."""
        from maxrr.audit import audit
        from maxrr.unlearning import replay

        if self.settings.sides is None:
            raise RecordsMissing("the service does not know where the raw records are")
        training, test = self.settings.sides(workspace)
        if kind == REPLAY:
            return str(replay(receipt, workspace.model, training.without(forgotten_in(workspace, training))).outcome)

        def progress(what: str, done: int, total: int, **_: float) -> None:
            if time.monotonic() - self.noted > PAUSE:
                self.noted = time.monotonic()
                self.write(serial, progress=f"{what}: {done:,} of {total:,}")

        named = workspace.model.on_receipt(receipt, training.ids.tolist())
        gone = training.select(training.ids[named.forgotten])
        report = audit(workspace.model, receipt, gone, test, shadows=self.settings.shadows, progress=progress)
        return report.finding.words

    def write(self, serial: int, **values: str) -> None:
        """Note how far a job is."""
        with self.database.write() as connection:
            table = tables.jobs
            connection.execute(update(table).where(table.c.serial == serial).values(time=now(), **values))


def forgotten_in(workspace: Workspace, records: Dataset) -> list[int | str]:
    """Return the ids of the records that were forgotten by now."""
    found: list[int | str] = records.ids[workspace.model.has_forgotten(records.ids)].tolist()
    return found
