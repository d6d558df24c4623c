"""Audits and replays: long work beside the requests, each done once, by any worker, on a snapshot of the workspace."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import and_, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from maxrr.errors import DatabaseAway, MaxRRError, RecordsMissing
from maxrr.progress import Progress
from maxrr.service import tables
from maxrr.service.database import Database
from maxrr.service.problems import note
from maxrr.service.requests import Request, now
from maxrr.service.settings import Settings
from maxrr.service.states import DONE, FAILED
from maxrr.unlearning import Receipt
from maxrr.workspace import Workspace

AUDIT, REPLAY = KINDS = "audit", "replay"
QUEUED, RUNNING = "queued", "running"
PAUSE = 2.0  # seconds between two notes of how far a job is, which keep it for its worker
TAKEN = 40.0  # seconds for which a job belongs to a worker that is not heard of
TRIES, GIVEN_UP = 3, "given-up"  # workers that may end over a job, and the result after that


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

    def ask(self, request: int, kind: str, actor: str) -> None:
        """Queue a job about the request with this serial number, if the same is not queued or running already."""
        row = {"request": request, "kind": kind, "state": QUEUED, "actor": actor, "time": now()}
        with suppress(IntegrityError):
            self.database.run(insert(tables.jobs).values(**row, progress="", result="", tries=0))

    def of(self, request: Request) -> list[Job]:
        """Return the jobs about a request, from the first."""
        query = select(*COLUMNS).where(tables.jobs.c.request == request.serial).order_by(tables.jobs.c.serial)
        return [Job(*row) for row in self.database.rows(query)]

    def turn(self, worker: str) -> bool:
        """Do the next job on a snapshot, and say whether there was one. Any worker may, whoever holds the workspace."""
        taken = self.take(worker)
        if taken is None:
            return False
        serial, kind, number = taken
        ended, said = threading.Event(), {"progress": ""}

        def write(**values: Any) -> None:
            """Note how far the job is, unless another worker has it by now."""
            table = tables.jobs
            mine = update(table).where(table.c.serial == serial, table.c.worker == worker)
            self.database.run(mine.values(time=now(), until=time.time() + TAKEN, **values))

        def keep() -> None:
            while not ended.wait(PAUSE):
                with suppress(DatabaseAway, OSError):
                    write(**said)

        def progress(what: str, done: int, total: int, **_: float) -> None:
            said["progress"] = f"{what}: {done:,} of {total:,}"

        threading.Thread(target=keep, daemon=True).start()
        try:
            with self.settings.open(True) as workspace:
                found = {"state": DONE, "result": self.do(workspace, kind, workspace.receipt(number).receipt, progress)}
        except DatabaseAway:
            raise  # some worker does it again
        except Exception as error:  # a job that fails stops no other
            note(error)
            found = {"state": FAILED, "result": error.code if isinstance(error, MaxRRError) else "fault"}
        finally:
            ended.set()
        write(**said, **found)
        return True

    def take(self, worker: str) -> tuple[int, str, int] | None:
        """Take the first job that nobody does, or of whose worker nothing was heard: not one by which many ended."""
        jobs, asked = tables.jobs.c, tables.requests.c
        is_late = ~jobs.until.between(time.time(), time.time() + 9 * TAKEN)  # or a clock was wrong
        is_free = or_(jobs.state == QUEUED, and_(jobs.state == RUNNING, is_late))
        query = select(jobs.serial, jobs.kind, jobs.tries, asked.number).join(tables.requests).where(is_free)
        first = query.order_by(jobs.serial).limit(1).with_for_update(of=tables.jobs, skip_locked=True)
        with self.database.write() as connection:
            row = connection.execute(first).first()
            if row is None:
                return None
            mine = {"state": RUNNING, "worker": worker, "until": time.time() + TAKEN, "tries": row.tries + 1}
            values = mine if row.tries < TRIES else {"state": FAILED, "result": GIVEN_UP}
            connection.execute(update(tables.jobs).where(jobs.serial == row.serial).values(time=now(), **values))
        return (row.serial, row.kind, row.number) if row.tries < TRIES else None

    def do(self, workspace: Workspace, kind: str, receipt: Receipt, progress: Progress) -> str:
        """Audit or replay a receipt, and return what was found."""
        from maxrr.audit import audit
        from maxrr.unlearning import replay

        if self.settings.sides is None:
            raise RecordsMissing("the service does not know where the raw records are")
        training, test = self.settings.sides(workspace)
        if kind == REPLAY:
            forgotten = training.ids[workspace.model.has_forgotten(training.ids)].tolist()
            return str(replay(receipt, workspace.model, training.without(forgotten)).outcome)

        named = workspace.model.on_receipt(receipt, training.ids.tolist())
        gone = training.select(training.ids[named.forgotten])
        report = audit(workspace.model, receipt, gone, test, shadows=self.settings.shadows, progress=progress)
        return report.finding.words
