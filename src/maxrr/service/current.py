"""The model that a server predicts and plans with: a snapshot, replaced as a whole when the workspace has gone on."""

import logging
import threading
import time
from dataclasses import dataclass
from functools import cached_property

from maxrr.errors import MaxRRError, ModelAway
from maxrr.service.settings import Settings
from maxrr.unlearning import MaxRR, Receipt
from maxrr.workspace import Status, Workspace

log = logging.getLogger("maxrr.service")

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

    def earlier(self, receipt: Receipt) -> list[Receipt]:
        """Return the receipts by which was forgotten what was asked for once more, the newest first."""
        gone, found = set(receipt.earlier_tombstones), list[Receipt]()
        number = min(receipt.number - 1, self.status.requests) if gone else 0
        while gone and number:
            before = self.workspace.receipt(number).receipt
            named = gone & {*before.tombstones, *(before.subject_tombstones or ())}
            found, gone, number = found + [before] * bool(named), gone - named, number - 1
        return found


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
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="snapshot", daemon=True)

    def start(self) -> None:
        """Begin to follow the workspace."""
        self._thread.start()

    def stop(self) -> None:
        """End following it."""
        self._stopping.set()
        self._thread.join()

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

    def _follow(self) -> None:
        pause = PAUSE
        while not self._stopping.wait(pause):
            begun = time.monotonic()
            try:
                self.refresh()
                self.code = ""
            except (MaxRRError, OSError, MemoryError) as error:
                self.code = error.code if isinstance(error, MaxRRError) else type(error).__name__
                log.error("the model could not be read: %s", self.code)
            pause = max(PAUSE, SHARE * (time.monotonic() - begun))
