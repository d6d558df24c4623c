"""`maxrr log`: the log of what was signed, checked by whoever has the operator's public key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from maxrr.cli import show
from maxrr.cli.options import Json
from maxrr.cli.run import FAILED, REFUTED, UNDECIDED, Stop
from maxrr.plain_text import count

if TYPE_CHECKING:
    from maxrr.evidence import Checkpoint, Log, PublicKey

Place = Annotated[Path, Argument(metavar="LOG", help="A workspace, or the folder of a log, as it is published.")]
OperatorKey = Annotated[
    Path,
    Option(help="The operator's public keys: the file that `maxrr key show --out` wrote, got in a way that you trust."),
]


def verify(place: Place, key: OperatorKey, json: Json = False) -> None:
    """Check a log: recompute every hash from the entries, and verify who signed the result. Of a workspace also check
    that each receipt is the entry of its number, names the one before it, and is signed.

    Exits with 0 if all of it holds; otherwise with 4, and names the first thing that is wrong. That nothing was taken
    back since you last looked, only the checkpoint shows that you kept then: see `maxrr log consistency`.

    Examples:

        maxrr log verify ws/ --key operator.pub
        maxrr log verify published/log --key operator.pub
    """
    from maxrr.errors import EvidenceError
    from maxrr.evidence import check_log
    from maxrr.workspace import check_receipt_log

    keys, folder = trusted(key), log_in(place)
    try:
        if folder == place:
            checkpoint, receipts = check_log(folder, None, keys), {}
        else:
            found = check_receipt_log(place, keys)
            checkpoint, receipts = found.checkpoint, {"receipts": found.checkpoint.size, "signed": found.signed}
    except EvidenceError as error:
        if json:
            show.json({"holds": False, "wrong": str(error)})
        raise Stop(REFUTED, "" if json else str(error)) from None
    if json:
        show.json({"holds": True, "wrong": "", **said_in(checkpoint, keys), **receipts})
        return
    tell(checkpoint, keys)
    if receipts:
        show.say(
            "All hashes are right, and each receipt is the entry of its number: "
            f"{count(checkpoint.size, 'receipt')}, {receipts['signed']:,} of them signed."
        )
    else:
        show.say("All hashes are right.")


def consistency(
    kept: Annotated[
        Path, Argument(metavar="OLD", help="What you kept: a file `checkpoint`, the folder of a log, or a workspace.")
    ],
    shown: Annotated[
        Path, Argument(metavar="NEW", help="What the operator shows now: the same, best with all files of the log.")
    ],
    key: OperatorKey,
    json: Json = False,
) -> None:
    """Check that a log begins with all that it had when you looked before: that nothing was changed or taken back.

    Exits with 0 if NEW extends OLD or is the same; with 4 if it is older, because an old copy was restored or entries
    were taken out, or if it is a split view, because two histories are signed; and with 5 if NEW is only a checkpoint
    and larger, so that nobody can tell.

    Examples:

        maxrr log consistency kept.checkpoint ws/ --key operator.pub
        maxrr log consistency backup/log published/log --key operator.pub
    """
    from maxrr.errors import EvidenceError
    from maxrr.evidence import compare_logs
    from maxrr.evidence.log import History

    keys = trusted(key)
    try:
        states = state_in(kept, keys), state_in(shown, keys)
        outcome = compare_logs(*states)
    except EvidenceError as error:
        if json:
            show.json({"holds": False, "outcome": "", "wrong": str(error)})
        raise Stop(REFUTED, "" if json else str(error)) from None
    old, new = (checkpoint_of(state) for state in states)
    holds = outcome in (History.same, History.extends)
    words = {
        History.same: f"{count(new.size, 'entry', 'entries')}, as before.",
        History.extends: f"The log of {count(new.size, 'entry', 'entries')} begins with the {old.size:,} that it had.",
        History.older: f"older: the log has {count(new.size, 'entry', 'entries')}, and had {old.size:,}. An old "
        "copy was restored, or "
        "entries were taken out",
        History.forked: f"split view: two histories are signed, one of {count(old.size, 'entry', 'entries')} "
        f"and one of {new.size:,}. "
        "Keep both: together they prove it",
        History.unknown: f"not known: {shown} is only a checkpoint of {count(new.size, 'entry', 'entries')}. "
        "Bring the files of its log",
    }[outcome]
    if json:
        show.json({
            "holds": holds, "outcome": outcome, "wrong": "" if holds else words, "old": said_in(old, keys),
            "new": said_in(new, keys),
        })  # fmt: skip
    elif holds:
        show.say(words)
    if not holds:
        raise Stop(UNDECIDED if outcome == History.unknown else REFUTED, "" if json else words)


def present(place: Place, key: OperatorKey, json: Json = False) -> None:
    """Show the newest checkpoint of a log: its name, how many entries it has, their root, and who signed it. Only the
    signature is checked.

    Keep the file `checkpoint` of the log: with it you will see whether anything was taken back.

    Examples:

        maxrr log show ws/ --key operator.pub
    """
    keys = trusted(key)
    checkpoint = checkpoint_of(state_in(place, keys))
    if json:
        show.json(said_in(checkpoint, keys))
    else:
        tell(checkpoint, keys)


def tell(checkpoint: Checkpoint, keys: tuple[PublicKey, ...]) -> None:
    """A checkpoint for people."""
    said = said_in(checkpoint, keys)
    show.facts([
        ("log", said["origin"]), ("entries", f"{said['entries']:,}"), ("root", said["root"]),
        ("signed by", said["key"]),
    ])  # fmt: skip


def said_in(checkpoint: Checkpoint, keys: tuple[PublicKey, ...]) -> dict[str, Any]:
    """A checkpoint for programs; of the keys the one that signed it."""
    signers = checkpoint.note.verify(checkpoint.origin, keys)
    key = next(key for key in keys if key in signers)
    return {"origin": checkpoint.origin, "entries": checkpoint.size, "root": checkpoint.root.hex(), "key": key.id}


def trusted(path: Path) -> tuple[PublicKey, ...]:
    """The keys in a file."""
    from maxrr.evidence import PublicKeys

    return PublicKeys.load(path).keys


def log_in(place: Path) -> Path:
    """The folder of a log: the one that was named, or that of the workspace that was."""
    from maxrr.evidence.log import CHECKPOINT, LOG

    if place.is_file():
        raise Stop(FAILED, f"{place} is a file: name the folder of the log, or that of the workspace")
    if (place / LOG / CHECKPOINT).is_file():
        return place / LOG
    from maxrr.workspace import Commit

    last = Commit.last(place)
    if last is None:
        if (place / CHECKPOINT).is_file():
            return place
        raise Stop(FAILED, f"{place} has no log in it")
    if last.signs:
        raise Stop(REFUTED, f"{place} is a workspace that signs its receipts, and its log is missing")
    raise Stop(FAILED, f"{place} is a workspace that does not sign its receipts, and has no log")


def state_in(place: Path, keys: tuple[PublicKey, ...]) -> Log | Checkpoint:
    """A log with its files, or a checkpoint by itself."""
    from maxrr.evidence import Checkpoint, Log
    from maxrr.evidence.checkpoints import LARGEST_CHECKPOINT
    from maxrr.files import read_regular

    if place.is_file():
        return Checkpoint.read(read_regular(place, LARGEST_CHECKPOINT), None, keys)
    return Log.open(log_in(place), None, keys)


def checkpoint_of(state: Log | Checkpoint) -> Checkpoint:
    """What was signed."""
    from maxrr.evidence import Log

    return state.checkpoint if isinstance(state, Log) else state
