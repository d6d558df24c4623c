"""What a service is told when it starts: where its workspace and its database are, and what its limits are."""

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from maxrr.data import Dataset
from maxrr.service.protocols import Protocols
from maxrr.unlearning.actions import REFUSE
from maxrr.workspace import Workspace


@dataclass(frozen=True)
class Settings:
    """What a service is told when it starts.

    Attributes
    ----------
    workspace : Path
        The folder of the workspace.
    open : function
        Opens the workspace: called with True for reading only, with False to work in it. It waits a few seconds for who
        works there.
    database : str
        The URL of the database, as SQLAlchemy takes it. By default a file of SQLite in `folder`.
    policy : {"refuse", "retrain", "keep-extractor"}
        The standing policy for core records. "refuse", the default, lets requests for them wait for a decision.
    days : int
        How many days after it was received a request is due; `regulations` has others, by the name of a regulation.
    gather : float
        How many seconds a training waits for others that are approved meanwhile: they share it.
    keep : int
        How many days the names in a request are kept after its answer was fetched, if nobody said that it arrived.
    rate : float
        How many calls a second a token may make, counted over two seconds.
    body : int
        How many bytes the body of a call may have.
    resolver : function, optional
        Maps an identity, given by its type and its value, to a subject id, or to None where nobody is known.
    sides : function, optional
        Reads the raw records of a workspace, those that were forgotten among them, and those for testing: for audits
        and replays.
    shadows : int
        How many shadow models an audit trains.
    protocols : Protocols, optional
        The protocols that others plug in by, and whom this service may call back.
    """

    workspace: Path
    open: Callable[[bool], Workspace]
    database: str = ""
    policy: str = REFUSE
    days: int = 30
    regulations: dict[str, int] = field(default_factory=lambda: {"gdpr": 30, "ccpa": 45})
    gather: float = 5.0
    keep: int = 30
    rate: float = 500.0
    body: int = 1 << 20
    resolver: Callable[[str, str], int | str | None] | None = None
    sides: Callable[[Workspace], tuple[Dataset, Dataset]] | None = None
    shadows: int = 64
    protocols: Protocols | None = None

    @property
    def folder(self) -> Path:
        """Where the service keeps its own files, beside the workspace. It is made where it is not there."""
        folder = self.workspace.with_name(f"{self.workspace.name}.service")
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def due(self, regulation: str, since: date) -> date:
        """Return by when what came on a day is to be answered: by the GDPR within a month of the calendar.

        >>> Settings(Path("ws"), Workspace.open).due("gdpr", date(2027, 1, 31))
        datetime.date(2027, 2, 28)
        """
        due = since + timedelta(days=self.regulations.get(regulation, self.days))
        then = (since.replace(day=1) + timedelta(days=31)).replace(day=1)  # the next month
        month = then.replace(day=min(since.day, monthrange(then.year, then.month)[1]))
        return min(due, month) if regulation == "gdpr" else due

    @property
    def url(self) -> str:
        """The URL of the database."""
        return self.database or f"sqlite:///{self.folder / 'requests.sqlite'}"
