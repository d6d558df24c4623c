"""Lists of revocations: which exports still know what was forgotten since, and a served model that looks there.

A list holds ids that were drawn at random, and so tells nothing about models or records. It is not signed: keep it
where only you can write, or serve it by https.
"""

import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from maxrr.errors import RevocationsUnread, Revoked
from maxrr.files import from_plain, parse_json, read_regular, to_plain
from maxrr.files.strict_json import body_of

FORMAT, VERSION = "maxrr revocations", 1
LARGEST = 50_000_000  # bytes of a list
TIMEOUT = 5.0  # seconds to connect, and between two pieces of an answer
ADDRESS = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True)
class Revocations:
    """The exports of a workspace that still know records which were forgotten or replaced since.

    Attributes
    ----------
    workspace : str
        What names the workspace, as `maxrr.workspace.Status.token`.
    time : str
        When the list was made, in UTC.
    revoked : tuple of str
        The ids of the exports, as `maxrr.workspace.Export.id`.
    """

    workspace: str
    time: str
    revoked: tuple[str, ...]

    @classmethod
    def of(cls, folder: str | Path) -> "Revocations":
        """The list of a workspace as it is now.

        Parameters
        ----------
        folder : str or Path
            The folder of the workspace.

        Returns
        -------
        Revocations
            The list. Publish it after every request, once the servers have a newer export.

        Raises
        ------
        maxrr.errors.WorkspaceError
            The folder is not a workspace, a file is not as it was written, or it is known to be an older copy, whose
            list would lack exports (`maxrr.errors.OlderCopy`).
        """
        from maxrr.workspace import overview

        found = overview(folder, newest=True).status
        revoked = sorted(export.id for export in found.exports if export.revoked)
        return cls(found.token, datetime.now(UTC).isoformat(timespec="seconds"), tuple(revoked))

    def to_json(self) -> str:
        """The list as a text, to be published.

        Returns
        -------
        str
            JSON.
        """
        return json.dumps({"format": FORMAT, "version": VERSION, **to_plain(self)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Revocations":
        """Read a list.

        Parameters
        ----------
        text : str
            What `to_json` gave.

        Returns
        -------
        Revocations
            The list.

        Raises
        ------
        ValueError
            The text is no such list.
        """
        return from_plain(cls, body_of(parse_json(text), FORMAT, VERSION))


class Watch:
    """Looks at a list now and then, and says whether an export may answer.

    Once revoked stays revoked. Where the list cannot be read, the last one counts for `max_age` seconds.
    """

    def __init__(
        self, source: str, workspace: str, refresh: float, max_age: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if "://" in source and not ADDRESS.match(source):
            raise ValueError(f"a list of revocations is a file, or at an https:// or http:// address, not {source}")
        if not 0 <= refresh <= max_age:
            raise ValueError(f"max_age is at least refresh, and that at least 0; they are {max_age} and {refresh}")
        self.source, self.workspace, self.refresh, self.max_age, self.clock = source, workspace, refresh, max_age, clock
        self.revoked: frozenset[str] = frozenset()
        self.read_at: float | None = None
        self.tried_at: float | None = None
        self.failure = ""
        self.looking = threading.Lock()

    def check(self, export: str | None) -> None:
        """Refuse an export that is revoked, or of which that is not known."""
        if self.tried_at is None or self.clock() - self.tried_at >= self.refresh:
            self.look()
        if export in self.revoked:
            raise Revoked(
                f"this model was revoked: {self.source} lists its export {export}, because records were forgotten "
                "since. Export it again from its workspace, and reload it"
            )
        if self.read_at is None or self.clock() - self.read_at > self.max_age:
            raise RevocationsUnread(
                f"nobody knows whether this model was revoked: {self.source} cannot be read ({self.failure}). The "
                "model answers again once it can"
            )

    def look(self) -> None:
        """Read the list, unless another thread is about it."""
        if not self.looking.acquire(blocking=self.tried_at is None):
            return
        try:
            found = Revocations.from_json(fetched(self.source))
            if found.workspace != self.workspace:
                raise ValueError("it is the list of another workspace")
            self.revoked |= frozenset(found.revoked)
            self.read_at = self.clock()
        except (OSError, ValueError) as error:
            self.failure = str(error) or type(error).__name__
        finally:
            self.tried_at = self.clock()
            self.looking.release()


def fetched(source: str) -> str:
    """Read the text of a file, or of what lies at an address."""
    if not ADDRESS.match(source):
        return read_regular(source, LARGEST).decode()
    from http.client import HTTPException
    from urllib.request import urlopen

    try:
        with urlopen(source, timeout=TIMEOUT) as answer:  # which follows redirections to no file
            content = answer.read(LARGEST + 1)
    except HTTPException as error:
        raise OSError(f"the answer is invalid: {error!r:.100}") from None
    if len(content) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST:,} bytes")
    return str(content, "utf-8")
