"""The latest state that was seen of each workspace, kept outside of it: so that an older copy is noticed, and refused.

One small file for each token, in `$XDG_STATE_HOME/maxrr/seen`: the number of the state, how many receipts it had, the
hash of the last one, and the root of their log. It is a help, not a safeguard: where it cannot be kept, nothing fails.
"""

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maxrr.errors import InUse
from maxrr.files import Lock, from_plain, parse_json, read_regular, write_atomically

MOMENT = "%Y%m%dT%H%M%S.%fZ"  # how the time of an accepted loss is written: later ones are greater as text, too
PATIENCE = 60.0  # seconds to wait for another copy, which only commits meanwhile


class OlderCopyWarning(UserWarning):
    """Somebody has put back an older copy of a workspace: what was forgotten since is back. Forget it again."""


warnings.simplefilter("always", OlderCopyWarning, append=True)  # on every opening, unless the caller says otherwise


@dataclass(frozen=True, order=True)
class Position:
    """How far a copy of a workspace has come. Later positions are greater.

    `last_loss` is when the loss of a newer copy was last accepted, if one was; then come the requests carried out and
    the commits. `root` is that of the log with these receipts, where it is known. `last` is the hash of the last
    receipt, which names the one before: where it is another, so is the history.
    """

    last_loss: str = ""
    receipts: int = 0
    state: int = 0
    root: str = ""
    last: str = ""

    def lacks(self, then: "Position") -> int:
        """Return how many requests a copy at this position lacks beside the latest one, as far as that is known."""
        is_older = (self.last_loss, self.receipts) < (then.last_loss, then.receipts)
        return max(1, then.receipts - self.receipts) if is_older or self.is_fork_of(then) else 0

    def is_fork_of(self, then: "Position") -> bool:
        """Whether a copy here has as many receipts as the latest position, and another last one."""
        as_far = (self.last_loss, self.receipts) == (then.last_loss, then.receipts)
        return as_far and "" not in (self.last, then.last) and self.last != then.last


def place() -> Path:
    """Return the folder for the positions of all workspaces."""
    named = os.environ.get("XDG_STATE_HOME", "")
    return Path(named if os.path.isabs(named) else os.path.expanduser("~/.local/state"), "maxrr", "seen")


def latest(token: str) -> Position:
    """Return the latest position seen of a workspace; the first one if none is known."""
    with suppress(Exception):
        found = from_plain(Position, parse_json(read_regular(place() / f"{token}.json", most=1000).decode()))
        if found.last_loss:
            datetime.strptime(found.last_loss, MOMENT)
        if all(0 <= number < 10**12 for number in (found.state, found.receipts)):
            return found
    return Position()


@contextmanager
def only_copy_at_work(token: str, wait: float = PATIENCE) -> Iterator[Position]:
    """Lock out other copies of the workspace on this machine, where that is possible.

    Yields the latest that was seen of it.
    """
    with ExitStack() as held:
        try:
            place().mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = Lock(place() / f"{token}.lock", wait=wait)  # for as long as it has a name
            held.callback(lock.release)
        except BlockingIOError:
            raise InUse("another copy of this workspace is at work: try again. Nothing was changed") from None
        except (OSError, RuntimeError):  # as in `keep`
            pass
        yield latest(token)


def keep(token: str, now: Position, then: Position) -> None:
    """Remember a position, unless a later one is known or it is of a fork. It is not flushed: a power cut may lose it.

    For those inside `only_copy_at_work`, which says what was seen by `then`.
    """
    if now > then and not now.is_fork_of(then):
        with suppress(OSError, RuntimeError):  # no room, no permission, no home
            write_atomically(place() / f"{token}.json", json.dumps(vars(now)).encode(), private=True, flush=False)


def why_older(folder: Path, now: Position, then: Position, backup: str = "") -> str:
    """Say what an older copy lacks, and what to do about it; empty where it is not known to be one.

    One that was made as a backup says itself when.
    """
    undone = now.lacks(then)
    if not undone and not backup:
        return ""
    several = "requests were" if undone > 1 else "request was"
    said = (
        f"is an older copy of this workspace: {undone} {several} carried out after it was made, and the records "
        "forgotten by then may be back. Workspace.catch_up (maxrr catch-up) forgets them again by the newer "
        f"receipts, from number {now.receipts + 1} on"
    )
    if not undone:
        said = (
            f"is a backup, made on {backup}: what was forgotten since then may be back. Workspace.catch_up (maxrr "
            "catch-up) forgets it again by the receipts of the workspace that it is a copy of"
        )
    elif now.is_fork_of(then):
        said = "went on by itself beside another copy of this workspace: it is a fork, and cannot catch up"
    elif then.last_loss != now.last_loss:
        said = (
            f"is an older copy of this workspace: a loss was accepted on {then.last_loss}, and another copy goes on "
            "since then. If this is the one that was given up, it cannot catch up; one from before can "
            "(Workspace.catch_up)"
        )
    return f"{folder} {said}; if the other copy is gone, declare_gone (maxrr catch-up --gone REASON) goes on without it"
