"""The latest state that was seen of each workspace, kept outside of it: so that an older copy is noticed, and refused.

One small file for each token, in `$XDG_STATE_HOME/maxrr/seen`: the number of the state, how many receipts it had, and
the root of their log. It is a help, not a safeguard: where it cannot be kept, nothing fails.
"""

import json
import os
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from maxrr.files import fits, read_regular, write_atomically


class OlderCopyWarning(UserWarning):
    """Somebody has put back an older copy of a workspace: what was forgotten since is back. Forget it again."""


warnings.simplefilter("always", OlderCopyWarning, append=True)  # on every opening, unless the caller says otherwise


@dataclass(frozen=True, order=True)
class Seen:
    """How far a workspace had come; what is later is greater.

    `since` is when the loss of a newer copy was last accepted, if one was; then come the requests carried out and the
    commits. `root` is that of the log with these receipts, where it is known.
    """

    since: str = ""
    receipts: int = 0
    state: int = 0
    root: str = ""

    def lacks(self, then: "Seen") -> int:
        """How many requests a copy that has come so far lacks of what was seen, as far as that can be told."""
        is_older = (self.since, self.receipts) < (then.since, then.receipts)
        return max(1, then.receipts - self.receipts) if is_older else 0


def place() -> Path:
    """Where programs keep such things."""
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".local" / "state") / "maxrr" / "seen"


def latest(token: str) -> Seen:
    """The latest that was seen of a workspace; the beginning if nothing was, or it cannot be told."""
    with suppress(Exception):
        found = Seen(**json.loads(read_regular(place() / f"{token}.json", most=1000)))
        if fits(found, Seen) and all(0 <= number < 10**12 for number in (found.state, found.receipts)):
            return found
    return Seen()


def keep(token: str, now: Seen) -> None:
    """Remember that this was seen, if nothing later was. Not flushed: a power cut may cost it."""
    if now > latest(token):
        with suppress(OSError, RuntimeError):  # no room, no permission, no home
            place().mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(place() / f"{token}.json", json.dumps(asdict(now)).encode(), private=True, flush=False)


def said_older(folder: Path, now: Seen, then: Seen) -> str:
    """What an older copy lacks, and what to do about it; empty where it is not known to be one."""
    undone = now.lacks(then)
    if not undone:
        return ""
    several = "requests were" if undone > 1 else "request was"
    where = f", in a log that began on {then.since}" if then.since != now.since else ""
    return (
        f"{folder} is an older copy of itself: {undone} {several} carried out after it was made{where}, and the "
        "records forgotten by then may be back. Workspace.catch_up (maxrr workspace catch-up) forgets them again by "
        f"the newer receipts, from number {now.receipts + 1} on; if they are lost, accept_loss (--accept-loss REASON) "
        "goes on without them"
    )


def warn_if_older(folder: Path, now: Seen, then: Seen) -> None:
    """Say loudly that somebody has put back an older copy."""
    said = said_older(folder, now, then)
    if not said and now.since == then.since and now.state < then.state:
        said = f"{folder} is an older copy of itself: it was fitted again after it was made. Fit it again"
    if said:
        warnings.warn(said, OlderCopyWarning, stacklevel=4)
