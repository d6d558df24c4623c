"""The versions of the model: since when each was there, how many records it had, and how well it classifies others."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import insert, select

from maxrr.data import Dataset
from maxrr.service import tables
from maxrr.service.database import Database
from maxrr.service.requests import now
from maxrr.workspace import Workspace


@dataclass(frozen=True)
class Version:
    """A version of the model, as it was when a worker first saw it.

    Attributes
    ----------
    model, time : str
        The hash of its bytes, and when it was seen.
    receipts, records : int
        How many receipts there were, and how many records the model had.
    tested : int
        On how many records its accuracy was measured: none where the service does not know where these are.
    accuracy, recall : float or None, dict or None
        The share of them that it classifies rightly, and that share of each class.
    span : list of float or None
        The least and the greatest number in them.
    """

    model: str
    time: str
    receipts: int
    records: int
    tested: int
    accuracy: float | None
    recall: Mapping[str, float] | None
    span: list[float] | None


COLUMNS = [tables.versions.c[each.name] for each in fields(Version)]


def listed(database: Database, limit: int = 500) -> list[Version]:
    """Return the last versions that were recorded, the newest last."""
    query = select(*COLUMNS).order_by(tables.versions.c.serial.desc()).limit(limit)
    return [Version(*row) for row in database.rows(query)][::-1]


def record(database: Database, workspace: Workspace, test: Dataset | None) -> None:
    """Record the version of a snapshot, measured on these records, unless it was recorded before."""
    status = workspace.status()
    if any(each.model == status.model_hash for each in listed(database)):
        return
    model, said = workspace.model, {"model": status.model_hash, "receipts": status.requests, "records": status.records}
    scores = dict[str, Any](tested=0)
    if test is not None and len(test):
        recall = {str(name): share for name, share in model.recall(test).items()}
        span = None if test.inputs.dtype.names else [float(test.inputs.min()), float(test.inputs.max())]
        scores = {"tested": len(test), "accuracy": model.score(test), "recall": recall, "span": span}
    database.run(insert(tables.versions).values(time=now(), **said, **scores))
