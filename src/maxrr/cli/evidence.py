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
from maxrr.cli.workspaces import as_fitted, columns, ids_from, insides

if TYPE_CHECKING:
    from maxrr.data import Dataset
    from maxrr.progress import Report
    from maxrr.unlearning import Receipt
    from maxrr.workspace import Workspace

A_DAY = 86_400.0  # seconds, after which nobody goes on with an interrupted audit


def forgotten_records(
    workspace: Workspace, receipt: Receipt, training: Dataset, given: str | None, report: Report
) -> Dataset:
    """The records on a receipt, by their marks: from the place given, or from a source that still has them."""
    import numpy as np

    from maxrr.unlearning.oblivion import REPLACED, id_mark

    records = as_in_workspace(workspace, training if given is None else everything_in(workspace, given, report))
    wanted, key = set(receipt.record_marks), insides(workspace).key
    if any(id_mark(key, id_, REPLACED).hex() in wanted for id_ in records.ids.tolist()):
        raise Stop(
            FAILED, f"receipt {receipt.number} is of a record that was replaced, and no audit of that is provided"
        )
    found = np.array([id_mark(key, id_).hex() in wanted for id_ in records.ids.tolist()], dtype=bool)
    missing = len(wanted) - int(found.sum())
    if missing:
        raise Stop(
            FAILED,
            f"{given or 'the source'} lacks {missing:,} of the {len(wanted):,} records on receipt {receipt.number}: "
            "bring all of them, with their ids, by --forgotten",
        )
    return records.select(records.ids[found])


def test_records(workspace: Workspace, held_out: Dataset, given: str | None, report: Report) -> Dataset:
    """Records that no model saw: all at the place given, or those of the source that are for testing."""
    records = held_out if given is None else everything_in(workspace, given, report)
    if not len(records):
        raise Stop(FAILED, "the source has no test records, and an audit needs some: bring them by --test")
    return as_in_workspace(workspace, records)


def everything_in(workspace: Workspace, source: str, report: Report) -> Dataset:
    """All records of a source, whichever side they are on."""
    from maxrr.audit.case import joined
    from maxrr.data import load

    training, test = load(source, **columns(workspace), ids_from=ids_from(workspace), report=report)
    return joined(training, test) if len(test) else training


def as_in_workspace(workspace: Workspace, records: Dataset) -> Dataset:
    """With the workspace's classes, ids and columns: a source with few records may have few classes, too."""
    from dataclasses import replace

    import numpy as np

    present = insides(workspace).holdings.present.tolist()
    if len(records.class_names) == len(workspace.class_names) and all(
        records.class_names[label] == workspace.class_names[label] for label in present
    ):  # also where it has forgotten the names of others
        return as_fitted(workspace, replace(records, class_names=workspace.class_names))
    classes = {workspace.class_names[label]: label for label in present}
    unknown = [name for name in records.class_names if name not in classes]
    if unknown:
        raise Stop(FAILED, f"{records.name}: class {unknown[0]} is none of the workspace's: {', '.join(classes)}")
    labels = np.array([classes[name] for name in records.class_names])[records.labels]
    return as_fitted(workspace, replace(records, labels=labels, class_names=workspace.class_names))


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
