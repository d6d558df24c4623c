"""What an audit needs beside the model: the forgotten records, unseen ones, and a place for what is half done."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from maxrr.cli.run import FAILED, Stop
from maxrr.cli.workspaces import lasting_name, options_for

if TYPE_CHECKING:
    from maxrr.data import Dataset
    from maxrr.progress import Progress
    from maxrr.unlearning import Receipt
    from maxrr.workspace import Workspace

A_DAY = 86_400.0  # seconds, after which nobody goes on with an interrupted audit


def forgotten_records(
    workspace: Workspace, receipt: Receipt, training: Dataset, given: str | None, progress: Progress
) -> Dataset:
    """The records on a receipt, by their tombstones: from the place given, or from a source that still has them."""
    records = workspace.model.kind_.with_classes(
        training if given is None else everything_in(workspace, given, progress)
    )
    named = workspace.model.on_receipt(receipt, records.ids.tolist())
    if named.replaced.any():
        raise Stop(
            FAILED, f"receipt {receipt.number} is of a record that was replaced, and no audit of that is provided"
        )
    wanted = len(set(receipt.tombstones))
    missing = wanted - int(named.forgotten.sum())
    if missing:
        raise Stop(
            FAILED,
            f"{given or 'the source'} lacks {missing:,} of the {wanted:,} records on receipt {receipt.number}: "
            "bring all of them, with their ids, by --forgotten",
        )
    return records.select(records.ids[named.forgotten])


def test_records(workspace: Workspace, held_out: Dataset, given: str | None, progress: Progress) -> Dataset:
    """Records that no model saw: all at the place given, or those of the source that are for testing."""
    records = held_out if given is None else everything_in(workspace, given, progress)
    if not len(records):
        raise Stop(FAILED, "the source has no test records, and an audit needs some: bring them by --test")
    return workspace.model.kind_.with_classes(records)


def everything_in(workspace: Workspace, source: str, progress: Progress) -> Dataset:
    """All records of a source, whichever side they are on."""
    from maxrr.data import load

    if Path(source).suffix == ".npy" and lasting_name(source) != workspace.source.get("name"):
        raise Stop(FAILED, f"{source} does not say what its rows are: bring them in an .npz file, with ids and labels")
    records, _ = load(source, **options_for(workspace.source, source), whole=True, progress=progress)
    return records


def scratch() -> Path:
    """A folder of the user's own for what shadow models say, from where an interrupted audit goes on.

    It holds probabilities, neither records nor networks. What an audit left behind that nobody went on with is deleted.
    """
    windows = os.name == "nt"  # where the temporary folder is the user's own
    folder = Path(tempfile.gettempdir()) / ("maxrr-audit" if windows else f"maxrr-audit-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not windows and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077 or folder.is_symlink()):
        raise Stop(FAILED, f"{folder} can be read by others, and probabilities would be written there: remove it")
    for left in folder.iterdir():
        if time.time() - left.stat().st_mtime > A_DAY:
            shutil.rmtree(left, ignore_errors=True)
    return folder
