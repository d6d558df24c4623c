"""What two signed states of a log say about each other: whether one became the other."""

from enum import StrEnum

from maxrr.errors import EvidenceError
from maxrr.evidence.checkpoints import Checkpoint
from maxrr.evidence.log import Log


class History(StrEnum):
    """What a state of a log that is shown now is to one that somebody has kept.

    Attributes
    ----------
    same
        "same": the same entries.
    extends
        "extends": it begins with all entries of the kept one.
    older
        "older": it has fewer entries than the kept one: an old copy was restored, or entries were taken out.
    forked
        "split view": two histories are signed. Both states together prove it to anybody.
    unknown
        "not known": it has more entries, and the tiles are missing that would show whether it begins with the kept
        ones.
    """

    same = "same"
    extends = "extends"
    older = "older"
    forked = "split view"
    unknown = "not known"


def compare_logs(kept: Log | Checkpoint, shown: Log | Checkpoint) -> History:
    """Compare two signed states of a log.

    Parameters
    ----------
    kept : Log or Checkpoint
        What somebody has kept: a checkpoint alone, or a log with its tiles.
    shown : Log or Checkpoint
        What the operator shows now.

    Returns
    -------
    History
        What the second is to the first. Where one has more entries and its tiles are there, it is proved that it begins
        with those of the other, or that it does not.

    Raises
    ------
    EvidenceError
        They are of two logs, or tiles do not give the root of their checkpoint.
    """
    old, new = (each.checkpoint if isinstance(each, Log) else each for each in (kept, shown))
    if old.origin != new.origin:
        raise EvidenceError(f"these are two logs: {old.origin!r} and {new.origin!r}")
    if old.size == new.size:
        return History.same if old.root == new.root else History.forked
    grown = old.size < new.size
    (less, more), tiles = ((old, new), shown) if grown else ((new, old), kept)
    if isinstance(tiles, Log):
        proof = tiles.prove_consistency(less.size)  # which holds for the root that the tiles have at that size
        if not proof.verify(less.size, less.root, more.size, more.root):
            return History.forked
        return History.extends if grown else History.older
    return History.unknown if grown else History.older
