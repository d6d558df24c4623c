"""The model that a server predicts and plans with: a snapshot, replaced as a whole when the workspace has gone on."""

import threading
import time
from dataclasses import dataclass
from functools import cached_property

from maxrr.errors import MaxRRError, ModelAway
from maxrr.service.problems import note
from maxrr.service.settings import Settings
from maxrr.unlearning import MaxRR
from maxrr.workspace import Status, Workspace

PAUSE = 0.2  # seconds between two looks at the history
SHARE = 10  # a snapshot is read again after ten times as long as that takes: predictions have the machine meanwhile


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A workspace as it was at one moment, for as long as somebody has this: it holds no lock."""

    workspace: Workspace

    @property
    def model(self) -> MaxRR:
        """The model, which does not change any more."""
        return self.workspace.model

    @property
    def version(self) -> str:
        """What names the bytes of the model."""
        return self.model.model_hash_[:16]

    @cached_property
    def status(self) -> Status:
        """What is in the workspace."""
        return self.workspace.status()


class Current:
    """A snapshot of the workspace that follows it. Whoever has one keeps it: another takes its place, all at once.

    Parameters
    ----------
    settings : Settings
        What the service was told.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.code = ModelAway.code
        self.found: Snapshot | None = None
        self._read = dict[str, int]()

    @property
    def snapshot(self) -> Snapshot:
        """The latest snapshot.

        Raises
        ------
        maxrr.errors.ModelAway
            None could be read yet.
        """
        if self.found is None:
            raise ModelAway(f"the model could not be read yet ({self.code}): try again")
        return self.found

    def refresh(self) -> None:
        """Read the workspace, if it has gone on since it was read."""
        grown = {path.name: path.stat().st_size for path in self.settings.workspace.glob("history-*.bin")}
        if grown == self._read and self.found is not None:
            return
        workspace = self.settings.open(True)
        workspace.check_newest()  # an older copy would remember whom the workspace has forgotten
        workspace.check_code()
        workspace.model.plan(workspace.model.ids_of()[:1].tolist())  # makes the indexes, for which no caller waits
        self.found, self._read = Snapshot(workspace), grown

    def follow(self, stopping: threading.Event) -> None:
        """Follow the workspace until the server stops."""
        pause = PAUSE
        while not stopping.wait(pause):
            begun = time.monotonic()
            try:
                self.refresh()
                self.code = ""
            except (MaxRRError, OSError, MemoryError) as error:
                self.code = note(error, "the model could not be read")
            pause = max(PAUSE, SHARE * (time.monotonic() - begun))
