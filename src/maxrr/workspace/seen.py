"""The latest state that was seen of each workspace, kept outside of it: so that an older copy is noticed.

One small file for each token, in `$XDG_STATE_HOME/maxrr/seen`: the number of the state and how many receipts it had. It
is a help, not a safeguard: where it cannot be kept, nothing fails.
"""

import json
import os
import secrets
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from maxrr.files import read_regular


class OlderCopyWarning(UserWarning):
    """Somebody has put back an older copy of a workspace: what was forgotten since is back. Forget it again."""


warnings.simplefilter("always", OlderCopyWarning, append=True)  # on every opening, unless the caller says otherwise


@dataclass(frozen=True)
class Seen:
    """How far a workspace had come: commits, and requests carried out."""

    state: int = 0
    receipts: int = 0


def place() -> Path:
    """Where programs keep such things."""
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".local" / "state") / "maxrr" / "seen"


def latest(token: str) -> Seen:
    """The latest that was seen of a workspace; the beginning if nothing was, or it cannot be told."""
    with suppress(Exception):
        body = json.loads(read_regular(place() / f"{token}.json", most=1000))
        if all(type(body[name]) is int and 0 <= body[name] < 10**12 for name in ("state", "receipts")):
            return Seen(body["state"], body["receipts"])
    return Seen()


def keep(token: str, now: Seen) -> None:
    """Remember that this was seen, if nothing later was. Not flushed: a power cut may cost it."""
    before = latest(token)
    then = Seen(max(before.state, now.state), max(before.receipts, now.receipts))
    if then == before:
        return
    with suppress(OSError, RuntimeError):  # no room, no permission, no home
        folder = place()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = folder / f".maxrr-{secrets.token_hex(8)}.tmp"
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.write(descriptor, json.dumps(asdict(then)).encode())
            finally:
                os.close(descriptor)
            os.replace(temporary, folder / f"{token}.json")
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def warn_if_older(folder: Path, now: Seen, then: Seen) -> None:
    """Say loudly that somebody has put back an older copy."""
    undone = then.receipts - now.receipts
    if undone > 0:
        several = "requests were" if undone > 1 else "request was"
        warnings.warn(
            f"{folder} is an older copy of itself: {undone} {several} carried out after it was made, and the records "
            f"forgotten by then may be back. Forget them again: receipts from number {now.receipts + 1} on name them "
            "by their HMACs, and Workspace.catch_up (maxrr workspace catch-up) does it with these",
            OlderCopyWarning, stacklevel=4,
        )  # fmt: skip
    elif then.state > now.state:
        warnings.warn(
            f"{folder} is an older copy of itself: it was fitted again after it was made. Fit it again",
            OlderCopyWarning, stacklevel=4,
        )  # fmt: skip
